// The parts of an agent, made from settings: model, tools, place, shell, preface.
import { resolve } from "node:path";
import type { Agent } from "../agent/agent.ts";
import type { EvidencePort, Place, ShellSettings } from "../agent/ports.ts";
import { defaultBox } from "../core/box.ts";
import type { Loaded } from "../core/problem.ts";
import { compileAllowedTool } from "../load/allowed_tool.ts";
import { stateFolder } from "../load/locate.ts";
import { systemClock } from "../runtime/clock.ts";
import { systemNetwork } from "../runtime/network.ts";
import { commandTools } from "./skill_side.ts";
import { checkArguments } from "../tools/arguments.ts";
import { contentFingerprint } from "../tools/content_fingerprint.ts";
import { isWritableProgram } from "../tools/program_place.ts";
import { builtinTools } from "../tools/registry.ts";
import type { Ground } from "./ground.ts";
import { makeModel } from "./model.ts";
import { makePreface } from "./preface.ts";
import type { Frame } from "./session.ts";
import { skillBodies } from "./skill_bodies.ts";
import type { Settings } from "./settings.ts";

/** An agent for the settings of this ground, around a recorder that may be older than it. */
export async function makeAgent(frame: Frame, ground: Ground): Promise<Loaded<Agent>> {
  const { host, options, recorder, secrets } = frame;
  const { settings, catalog } = ground;
  const { policy } = settings;
  const state = stateFolder(settings.surroundings);
  const model = await makeModel(settings, {
    env: host.env,
    ...(options.script === undefined ? {} : { script: options.script }),
    ...(options.replies === undefined ? {} : { replies: options.replies }),
    onKey: secrets.add,
  });
  if (!model.ok) return model;
  const network = options.fixed?.network ?? systemNetwork(host.env);
  const { place: boxed, shell, writable } = ground.boxes.at(settings);
  const place: Place = { ...placeOf(settings), ...boxed, network };
  const preface = { settings, catalog, redact: secrets.under(policy) };
  return {
    ok: true,
    problems: [],
    value: {
      policy,
      catalog: catalog.catalog,
      preface: {
        now: makePreface(preface, {
          recent: recorder.state.recent,
          contextTokens: policy.model.contextTokens,
        }),
      },
      makePreface: (input) => makePreface(preface, input),
      recorder,
      forks: frame.forks,
      model: model.value,
      tools: builtinTools,
      serverTools: ground.servers.tools,
      commandTools: (skill) =>
        commandTools(skill, {
          state,
          box: policy.skills.boxes.find((b) => b.skill === skill.name)?.box ?? defaultBox,
          secrets: policy.skills.secrets,
          ...(settings.trustedContent === undefined ? {} : { trustedContent: settings.trustedContent }),
          env: host.env,
          onSecret: secrets.add,
        }),
      installed: new Map(),
      approver: options.approver,
      clock: options.fixed?.clock ?? systemClock,
      random: options.fixed === undefined ? Math.random : () => 0.5,
      mode: options.mode,
      strict: options.strict === true,
      place,
      shell,
      evidence: evidencePort(settings, shell, writable),
      bodies: skillBodies(settings),
      checkArguments,
      allowedTool: (declared) => compileAllowedTool(declared, place),
      keepBefore: frame.keepBefore,
      ...(options.keeper === undefined ? {} : { keeper: options.keeper(settings) }),
      grants: [],
      seen: new Map(),
      lastBodies: new Map(),
    },
  };
}

/** Without a network and as if commands could run: for what is judged from a policy file alone. */
export function placeOf(settings: Pick<Settings, "policy" | "surroundings">): Place {
  const { policy, surroundings } = settings;
  return {
    root: policy.root,
    home: surroundings.home,
    protectedBy: (path) => policy.protect.find((p) => p.pattern.test(path))?.shown,
    boxes: policy.sandbox.boxes,
  };
}

/** `writable`: folders that commands may write to, of what matters: a program from there is not one that the operator installed. */
function evidencePort(settings: Settings, shell: ShellSettings, writable: readonly string[]): EvidencePort {
  const { root } = settings.policy;
  const { env } = shell;
  return {
    content: contentFingerprint({ root, env, look: () => shell.boxes?.look() ?? { ok: true, env } }),
    isWritable: (program, cwd) => isWritableProgram(program, { cwd: resolve(root, cwd), env, writable }),
  };
}
