// SIGKILL at any moment, then a resume: of a process that only writes a log, and of whole runs of the executable.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkChain } from "../src/store/chain.ts";
import { verifySession } from "../src/store/verify.ts";
import { crash, sequence } from "../test/support/crashes.ts";
import { eventsOf, eventually, isRunning, type Machine, withMachine } from "../test/support/machine.ts";
import { binary } from "../test/support/runtimes.ts";
import type { FaultOptions, Finding } from "./faults.ts";

export async function* killFaults({ nightly, seed, until }: FaultOptions): AsyncIterable<Finding> {
  const { kills, acknowledged, faults } = await crash(nightly ? 10_000 : 500, seed, until);
  yield { name: "a writer of a log", tried: kills, faults, note: `${acknowledged} events acknowledged` };
  if (!existsSync(binary)) {
    yield { name: "whole runs", skipped: "there is no dist/writ (bun scripts/build.ts)" };
    return;
  }
  yield await killedRuns(nightly ? 500 : 25, { seed, until });
}

// Each call adds a line of its own to a file: one that is run twice shows.
const replies =
  Array.from({ length: 12 }, (_, i) => `- call: {shell: {command: bash work.sh ${i}}}`).join("\n") +
  "\n- text: done\n";
const policy = 'sandbox: {mode: "off"}\npermissions: {allow: ["shell(bash work.sh *)"]}\n';

async function killedRuns(
  rounds: number,
  { seed, until }: Pick<FaultOptions, "seed" | "until">,
): Promise<Finding> {
  const random = sequence(seed);
  const faults: string[] = [];
  let within = 0;
  let tried = 0;
  for (; tried < rounds && Date.now() < until; tried++) {
    await withMachine(async (m) => {
      m.write("repo/work.sh", 'echo "$1" >> ran\n');
      m.write("replies.yaml", replies);
      const file = m.write(
        "policy.yaml",
        `version: 1\nmodel: {provider: script, script: replies.yaml}\n${policy}`,
      );
      const running = m.start(["run", "--policy", file, "go"]);
      await eventually(() => m.ids().length > 0 || !isRunning(running.pid));
      await new Promise((resolve) => setTimeout(resolve, random() * 400));
      running.kill("SIGKILL");
      const { signal } = await running.ended;
      if (signal !== null) within++;
      faults.push(...await resumedFaults(m, file).then((f) => f.map((text) => `run ${tried + 1}: ${text}`)));
    });
  }
  return { name: "whole runs", tried, faults, note: `${within} ended within the run` };
}

async function resumedFaults(m: Machine, policyFile: string): Promise<readonly string[]> {
  const id = m.ids()[0] ?? "";
  const before = checkChain(readFileSync(m.logPath(id))).events;
  m.write("replies.yaml", "- text: back\n");
  const resumed = await m.writ(["run", "--policy", policyFile, "--resume", id, "again"]);
  if (resumed.code !== 0) return [`the resume ended with ${resumed.code}: ${resumed.stderr}`];
  const events = m.events(id);
  const calls = eventsOf(events, "model.completed").flatMap((e) =>
    e.data.content.flatMap((b) => (b.type === "tool_use" ? [b.id] : []))
  );
  const results = events.flatMap((e) =>
    e.type === "tool.completed" || e.type === "tool.interrupted" ? [e.data.call] : []
  );
  const started = eventsOf(events, "tool.started").length;
  const ranFile = join(m.repo, "ran");
  const ran = existsSync(ranFile) ? readFileSync(ranFile, "utf8").trimEnd().split("\n") : [];
  return [
    ...verifySession(m.sessions, { id, path: m.logPath(id) }, {}).faults.map((f) => f.message),
    ...(before.every((e, i) => events[i]?.hash === e.hash) ? [] : ["an event from before is not there"]),
    ...(JSON.stringify(results) === JSON.stringify(calls)
      ? []
      : [`calls ${calls} have the results ${results}`]),
    ...(new Set(ran).size === ran.length ? [] : [`a call ran twice: ${ran}`]),
    ...(ran.length <= started ? [] : [`${ran.length} calls ran, but ${started} are recorded as started`]),
    ...(eventsOf(events, "turn.completed").length === eventsOf(events, "user.message").length
      ? []
      : ["a turn was not closed"]),
  ];
}
