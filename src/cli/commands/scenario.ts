// `writ __scenario FILE`: the real loop on a scenario, with a standing clock and fixed ids; prints the log it made.
import { readFileSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { runTurn } from "../../agent/turn.ts";
import type { Approver } from "../../agent/ports.ts";
import { exitCodes } from "../../core/outcome.ts";
import { fixedClock } from "../../runtime/clock.ts";
import { fixedNetwork } from "../../runtime/network.ts";
import { nobody } from "../approver.ts";
import type { CommandModule, Context } from "../command.ts";
import { loadCatalog } from "../../session/catalog.ts";
import { openSession } from "../../session/open.ts";
import type { Host } from "../host.ts";
import { exitOf, reportProblems } from "../result.ts";
import { type Approval, loadScenario, type Scenario } from "../scenario_file.ts";
import { layOut, type ScenarioFolder } from "../scenario_folder.ts";
import { loadSettings } from "../settings.ts";
import { viewOf } from "../../session/skill_list.ts";
import { askSkills } from "../../session/skill_words.ts";

export const scenario: CommandModule = {
  define(command, context, done) {
    command.argument("<file>", "a scenario").description(
      "run a scenario with a standing clock and print its log",
    )
      .action(async (file: string) => done(await runScenario(context, resolve(context.host.cwd, file))));
  },
};

const startOfTime = Date.UTC(2026, 0, 1);

async function runScenario(context: Context, file: string): Promise<number> {
  const loaded = loadScenario(readFileSync(file, "utf8"), file);
  if (!loaded.ok) return reportProblems(context.output, loaded.problems, false);
  const folder = await layOut(loaded.value, context.host.env["PATH"]);
  try {
    return await play(context, loaded.value, folder);
  } finally {
    rmSync(folder.top, { recursive: true, force: true });
  }
}

async function play(context: Context, scenario: Scenario, folder: ScenarioFolder): Promise<number> {
  const host: Host = {
    ...context.host,
    cwd: folder.workspace,
    env: folder.env,
    home: `${folder.top}/home`,
    machineFolder: `${folder.top}/machine`,
  };
  const inner: Context = { ...context, host };
  const settings = await loadSettings(inner, { policy: [folder.policy] }, undefined);
  if (!settings.ok) return reportProblems(context.output, settings.problems, false);
  const opened = await openSession(inner.host, settings.value, loadCatalog(settings.value), {
    mode: scenario.approvals === undefined ? "unattended" : "interactive",
    approver: scenario.approvals === undefined ? nobody : scriptedApprover(scenario.approvals),
    listeners: [],
    strict: scenario.strict === true,
    replies: scenario.model,
    fixed: {
      clock: fixedClock(startOfTime),
      network: fixedNetwork(scenario.hosts ?? {}),
      session: "scenario",
      platform: "any",
      actor: "user",
      aliases: [{ value: folder.top, as: "/scenario" }],
    },
  });
  if (!opened.ok) return reportProblems(context.output, opened.problems, false);
  const session = opened.value;
  let code: number = exitCodes.done;
  for (const message of typeof scenario.user === "string" ? [scenario.user] : scenario.user) {
    if (session.agent.recorder.state.turn.number > 0) await session.adopt(settings.value);
    const asked = askSkills(viewOf(session.agent), message, scenario.load ?? []);
    if (asked.kind !== "turn") {
      context.output.note(asked.kind === "fault" ? asked.message : `not a turn: ${message}`);
      code = exitCodes.usage;
      continue;
    }
    const end = await runTurn(session.agent, {
      message,
      actor: "user",
      skills: asked.skills,
      signal: new AbortController().signal,
    });
    code = exitCodes[exitOf(end)];
  }
  await session.close();
  context.output.result(readFileSync(session.logPath, "utf8"));
  return code;
}

function scriptedApprover(answers: readonly Approval[]): Approver {
  let next = 0;
  return {
    async ask(approval) {
      const answer = answers[next++];
      if (answer === "allow") return { allow: true, answer: { by: "script", scope: "once" } };
      if (answer === "session" && approval.grant !== undefined) {
        return { allow: true, answer: { by: "script", scope: "session", rule: approval.grant } };
      }
      const reason = answer === undefined
        ? "the scenario has no answer left"
        : typeof answer === "object"
        ? answer.deny
        : undefined;
      return { allow: false, answer: { by: "script", ...(reason === undefined ? {} : { reason }) } };
    },
  };
}
