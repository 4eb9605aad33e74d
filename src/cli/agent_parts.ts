// The parts of an agent, made from settings: model, tools, place, shell, stable text.
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import type { Agent } from "../agent/agent.ts";
import type { EvidencePort, Place, ShellSettings, ToolContext } from "../agent/ports.ts";
import type { Recorder } from "../agent/recorder.ts";
import { type Listing, renderListing, shownBy } from "../core/listing.ts";
import { type Policy, sessionForced } from "../core/policy.ts";
import type { Loaded } from "../core/problem.ts";
import type { SessionState } from "../core/session.ts";
import { compileAllowedTool } from "../load/allowed_tool.ts";
import { stateFolder } from "../load/locate.ts";
import { systemClock } from "../runtime/clock.ts";
import { systemNetwork } from "../runtime/network.ts";
import { childEnvironment } from "../sandbox/environment.ts";
import { commandTools } from "./skill_side.ts";
import { checkArguments } from "../tools/arguments.ts";
import { contentFingerprint } from "../tools/content_fingerprint.ts";
import { isWritableProgram } from "../tools/program_place.ts";
import { builtinTools } from "../tools/registry.ts";
import { answerKeeper } from "./answer_keeper.ts";
import type { LoadedCatalog } from "./catalog.ts";
import type { Context } from "./command.ts";
import type { SessionOptions } from "./compose.ts";
import { makeModel } from "./model.ts";
import { skillBodies } from "./skill_bodies.ts";
import type { Settings } from "./settings.ts";
import { stableText } from "./stable_text.ts";

/** What of the session's own folder and secrets an agent touches. */
export type AgentSite = {
  readonly forks: Agent["forks"];
  readonly serverTools: Agent["serverTools"];
  onKey(key: string): void;
  readonly keepBefore: ToolContext["keepBefore"];
  /** For texts that reach the model without having been an event. */
  redact(text: string): string;
};

/** An agent for these settings around a recorder that may be older than it. */
export async function makeAgent(
  context: Context,
  settings: Settings,
  options: SessionOptions,
  catalog: LoadedCatalog,
  recorder: Recorder,
  site: AgentSite,
): Promise<Loaded<Agent>> {
  const { policy } = settings;
  const state = stateFolder(settings.surroundings);
  const model = await makeModel(policy.model, {
    env: context.host.env,
    ...(options.script === undefined ? {} : { script: options.script }),
    ...(options.replies === undefined ? {} : { replies: options.replies }),
    onKey: site.onKey,
  });
  if (!model.ok) return model;
  const network = options.fixed?.network ?? systemNetwork(context.host.env);
  const place: Place = { ...placeOf(settings), network };
  const shell = shellOf(context, settings);
  const listed = listing(policy, catalog, recorder.state.recent);
  return {
    ok: true,
    problems: [],
    value: {
      policy,
      catalog: catalog.catalog,
      shown: shownBy(listed),
      stable: stableText(
        settings,
        listed,
        () => listing(policy, catalog, recorder.state.recent, Infinity),
        site.redact,
      ),
      recorder,
      forks: site.forks,
      model: model.value,
      tools: builtinTools,
      serverTools: site.serverTools,
      commandTools: (skill) =>
        commandTools(skill, {
          state,
          secrets: policy.skills.secrets,
          ...(settings.trustedContent === undefined ? {} : { trustedContent: settings.trustedContent }),
          env: context.host.env,
          onSecret: site.onKey,
        }),
      installed: new Map(),
      approver: options.approver,
      clock: options.fixed?.clock ?? systemClock,
      random: options.fixed === undefined ? Math.random : () => 0.5,
      mode: options.mode,
      strict: options.strict === true,
      place,
      shell,
      evidence: evidencePort(settings, shell),
      bodies: skillBodies(settings),
      checkArguments,
      allowedTool: (declared) => compileAllowedTool(declared, place),
      keepBefore: site.keepBefore,
      ...(options.keepsAnswers === true ? { keeper: answerKeeper(settings, context.output) } : {}),
      grants: [],
      seen: new Map(),
      lastBodies: new Map(),
    },
  };
}

/** Without a network: what is judged from a policy file alone looks nothing up. */
export function placeOf(settings: Pick<Settings, "policy" | "surroundings">): Place {
  const { policy, surroundings } = settings;
  const refused = policy.sandbox.mode === "off"
    ? undefined
    : 'sandbox.mode is `required` and this version has no sandbox; a machine or user policy may say `sandbox: {mode: "off"}` to run commands without one';
  return {
    root: policy.root,
    home: surroundings.home,
    protectedBy: (path) => policy.protect.find((p) => p.pattern.test(path))?.shown,
    ...(refused === undefined ? {} : { shellRefused: refused }),
  };
}

export function shellOf(context: Context, settings: Settings): ShellSettings {
  const { shell } = settings.policy.tools;
  return {
    env: childEnvironment(context.host.env, {
      allow: settings.policy.shellEnv,
      home: settings.surroundings.home,
      tmp: tmpdir(),
      writable: writableFolders(settings),
    }),
    timeoutMs: shell.timeoutMs,
    maxTimeoutMs: shell.maxTimeoutMs,
    maxOutput: shell.maxOutput,
  };
}

/** Where commands may write, of what matters: a program from there is not one that the operator installed. */
function writableFolders({ policy }: Settings): readonly string[] {
  return [policy.root];
}

function evidencePort(settings: Settings, { env }: ShellSettings): EvidencePort {
  const { root } = settings.policy;
  return {
    content: contentFingerprint({ root, env }),
    isWritable: (program, cwd) =>
      isWritableProgram(program, {
        cwd: resolve(root, cwd),
        env,
        writable: writableFolders(settings),
      }),
  };
}

/** The catalog as the model sees it, and what had no room in it. */
export function listing(
  policy: Policy,
  { catalog }: LoadedCatalog,
  recent: SessionState["recent"] = {},
  budgetTokens = policy.skills.listingTokens,
): Listing {
  const session = sessionForced(policy.skills).map((f) => f.skill);
  return renderListing(catalog.items, {
    budgetTokens,
    forcedNames: new Set(policy.skills.forced.map((f) => f.skill)),
    sessionNames: new Set(session),
    recent: new Map(Object.entries(recent)),
  });
}
