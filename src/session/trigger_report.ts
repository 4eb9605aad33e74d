// What a message would load and why, what would be left out, and which tools would be open then. Nothing is loaded.
import type { LoadSite } from "../agent/activate.ts";
import { forceSkills } from "../agent/force.ts";
import { type ForkRequest, type ForkRun, prepareFork } from "../agent/fork.ts";
import { createRecorder } from "../agent/recorder.ts";
import { standingOf, type StandingSkill } from "../agent/standing.ts";
import { activateFor } from "../agent/triggers.ts";
import { type LeftOpen, leftOpen } from "../core/bound.ts";
import type { Catalog } from "../core/catalog.ts";
import { strongest } from "../core/command_risk.ts";
import { toolIdentity } from "../core/command_tool.ts";
import type { Risk } from "../core/decision.ts";
import type { Trigger, TriggerKind } from "../core/event.ts";
import type { Facts } from "../core/facts.ts";
import { emptyGateState, unreported } from "../core/gate_state.ts";
import { serverToolName } from "../core/mcp.ts";
import { plural } from "../core/plural.ts";
import { type Policy, sessionForced } from "../core/policy.ts";
import { type Position, showPosition } from "../core/problem.ts";
import { emptySession } from "../core/session.ts";
import type { Skill } from "../core/skill.ts";
import { wildcard } from "../core/text.ts";
import { builtinTool, enableableTools } from "../core/tool_names.ts";
import { firstBytes, messageCap } from "../core/trigger.ts";
import { compileAllowedTool } from "../load/allowed_tool.ts";
import { stateFolder } from "../load/locate.ts";
import { systemClock } from "../runtime/clock.ts";
import { placeOf } from "./agent_parts.ts";
import type { LoadedCatalog } from "./catalog.ts";
import { listing } from "./preface.ts";
import type { Settings } from "./settings.ts";
import { skillBodies } from "./skill_bodies.ts";
import { commandTools } from "./skill_side.ts";
import type { Asked } from "./skill_words.ts";

type Reason = {
  readonly skill: string;
  readonly by: TriggerKind;
  readonly pattern?: string;
  /** UTF-16 offsets into the message. */
  readonly span?: readonly [number, number];
  /** Where the policy says so; absent for a pattern of the skill itself. */
  readonly at?: string;
};
export type TriggerReport = {
  /** In the order in which they would be loaded. */
  readonly skills: readonly (Reason & {
    /** Of a fork: those of its own context. */
    readonly tokens: number;
    readonly fork?: true;
  })[];
  readonly skipped: readonly (Reason & { readonly code: string; readonly reason: string })[];
  /** Why there would be no turn. */
  readonly refused?: string;
  readonly catalog: { readonly skills: number; readonly tokens: number; readonly omitted: number };
  /** Of `tools.enabled`, tools of servers and of the skills that would be loaded: what these skills leave open. */
  readonly tools: readonly (LeftOpen & { readonly tool: string })[];
};

/**
 * For the first turn of a session, so that no skill was used before. `message` is redacted, `asked` what it says about skills. The skills are loaded as a session
 * would load them, by the same functions, and recorded nowhere.
 */
export async function triggerReport(
  settings: Settings,
  loaded: LoadedCatalog,
  message: string,
  asked: Asked,
): Promise<TriggerReport> {
  const { policy } = settings;
  const { catalog } = loaded;
  const dry = dryRun(settings, catalog);
  const refused = await load(dry, asked, message);
  const listed = listing(policy, loaded);
  return {
    skills: dry.skills,
    skipped: [...dry.skipped, ...absentHits(policy, loaded, message)],
    ...(refused === undefined ? {} : { refused }),
    catalog: { skills: catalog.items.length, tokens: listed.tokens, omitted: listed.omitted.length },
    tools: openTools(settings, catalog, dry.site.recorder.state.active),
  };
}

// Why there would be no turn, or none that comes to a request.
async function load(dry: DryRun, asked: Asked, message: string): Promise<string | undefined> {
  const [problem] = await forceSkills(dry.site);
  if (problem !== undefined) return problem.message;
  if (asked.kind === "fault") return asked.message;
  if (asked.kind !== "turn") return "this is no turn";
  dry.site.recorder.emit("user.message", { content: message, actor: "" });
  const stop = await activateFor(dry.site, asked, dry.fork);
  return stop === undefined ? undefined : stop.message ?? stop.stop;
}

type DryRun = {
  readonly site: LoadSite;
  readonly skills: TriggerReport["skills"];
  readonly skipped: TriggerReport["skipped"];
  fork(request: ForkRequest): Promise<ForkRun>;
};

// A session without a log, a model and an end.
function dryRun(settings: Settings, catalog: Catalog): DryRun {
  const { policy, surroundings } = settings;
  const skills: TriggerReport["skills"][number][] = [];
  const skipped: TriggerReport["skipped"][number][] = [];
  const codes = new Map<string, string>();
  const bodies = skillBodies(settings);
  let seq = 0;
  const recorder = createRecorder({
    log: { append: (draft) => ({ ...draft, seq: ++seq, prev: "", hash: "" }), sync: async () => {} },
    clock: systemClock,
    session: "",
    initial: emptySession,
    redact: (data) => data,
    listeners: [({ type, data }) => {
      if (type === "skill.loaded") {
        skills.push({ ...reasonOf(policy, data.name, data.trigger), tokens: data.contextTokensAdded });
      } else if (type === "skill.skipped") {
        const code = codes.get(data.name) ?? "skill_too_large";
        skipped.push({ ...reasonOf(policy, data.name, data.trigger), code, reason: data.reason });
      }
    }],
  });
  const site: LoadSite = {
    policy,
    catalog,
    recorder,
    bodies: {
      ...bodies,
      async read(skill) {
        const read = await bodies.read(skill);
        if (!read.ok) codes.set(skill.name, read.code);
        return read;
      },
    },
    commandTools: (skill) =>
      commandTools(skill, {
        state: stateFolder(surroundings),
        secrets: policy.skills.secrets,
        env: surroundings.env,
        onSecret: () => {},
      }),
    installed: new Map(),
    lastBodies: new Map(),
  };
  return {
    site,
    skills,
    skipped,
    async fork(request) {
      const prepared = await prepareFork(site, request);
      if (!prepared.ok) return prepared;
      const { name } = request.skill;
      skills.push({ ...reasonOf(policy, name, request.trigger), tokens: prepared.tokens, fork: true });
      return { ok: true, end: { skill: name, session: "", stop: "final", outcome: unreported, text: "" } };
    },
  };
}

function reasonOf({ skills }: Policy, skill: string, trigger: Trigger): Reason {
  switch (trigger.kind) {
    case "policy": {
      const entry = sessionForced(skills).find((f) => f.skill === skill);
      return { skill, by: "policy", ...(entry === undefined ? {} : { at: showPosition(entry.at) }) };
    }
    case "pattern": {
      const { kind: by, ...hit } = trigger;
      // The policy's patterns come before the skill's own.
      const at = skills.triggers.find((t) => t.skill === skill && t.pattern.source === hit.pattern)?.at;
      return { skill, by, ...hit, ...(at === undefined ? {} : { at: showPosition(at) }) };
    }
    default:
      return { skill, by: trigger.kind };
  }
}

/** Skills that a pattern meets and that cannot be had. */
function absentHits(policy: Policy, { catalog }: LoadedCatalog, message: string): TriggerReport["skipped"] {
  const text = firstBytes(message, messageCap);
  return catalog.absent.filter((a) => catalog.get(a.name) === undefined).flatMap((absent) => {
    const patterns: readonly { readonly pattern: Skill["patterns"][number]; readonly at?: Position }[] = [
      ...policy.skills.triggers.filter((t) => t.skill === absent.name),
      ...absent.patterns.map((pattern) => ({ pattern })),
    ];
    const hit = patterns.find(({ pattern }) => pattern.test(text));
    if (hit === undefined) return [];
    return [{
      skill: absent.name,
      by: "pattern" as const,
      pattern: hit.pattern.source,
      ...(hit.at === undefined ? {} : { at: showPosition(hit.at) }),
      code: absent.code,
      reason: absent.reason,
    }];
  });
}

function openTools(
  settings: Settings,
  catalog: Catalog,
  active: readonly StandingSkill[],
): TriggerReport["tools"] {
  const { policy } = settings;
  const place = placeOf(settings);
  const allowedTool = (declared: string) => compileAllowedTool(declared, place);
  const boundsOf = (tool: string, skills: readonly StandingSkill[]) =>
    standingOf({ policy, active: skills, gates: emptyGateState, allowedTool }, anyCall(tool)).bounds;
  return offeredTools(policy, catalog, active).map(({ tool, possible }) => {
    const all = leftOpen(boundsOf(tool, active), tool, possible);
    // What a gate guards its own skill does not bound.
    const wider = policy.gates.filter((gate) =>
      gate.before.some((rule) => rule.tools.some((glob) => wildcard(glob, tool))) &&
      leftOpen(boundsOf(tool, active.filter((s) => s.name !== gate.skill)), tool, possible).open !== all.open
    );
    const guarded = wider.map((gate) => `what the gate \`${gate.id}\` guards`);
    return guarded.length === 0 ? { tool, ...all } : {
      tool,
      open: "in part",
      only: [...(all.only === undefined ? [] : [all.only]), ...guarded].join(", or "),
    };
  });
}

/** A tool with the risks that a call of it can have; absent: as of every tool of its kind. */
type Offered = { readonly tool: string; readonly possible?: readonly Risk[] };

function offeredTools(
  policy: Policy,
  catalog: Catalog,
  active: readonly StandingSkill[],
): readonly Offered[] {
  return [
    ...enableableTools.filter((tool) => policy.tools.enabled.includes(tool)).map((tool) => ({ tool })),
    ...policy.mcpServers.flatMap((server) =>
      server.tools.map(({ name, risk }) => ({ tool: serverToolName(server.name, name), possible: [risk] }))
    ),
    ...active.flatMap((skill) =>
      (catalog.get(skill.name)?.tools ?? []).map(({ name, risk }) => ({
        tool: toolIdentity(skill.name, name),
        possible: [strongest("execute", risk ?? "execute")],
      }))
    ),
  ];
}

// A call of which nothing is known but its tool.
function anyCall(tool: string): Facts {
  return {
    tool,
    args: {},
    risk: builtinTool(tool)?.reads === true ? "read" : "execute",
    subjects: [{ kind: "call" }],
    box: "default",
    sourcedBy: [],
    mode: "interactive",
    errors: [],
  };
}

/** The report for people, a line each. */
export function reportLines(report: TriggerReport): readonly string[] {
  const why = (r: Reason) =>
    r.by === "policy"
      ? `forced by policy at ${r.at}`
      : r.by === "explicit"
      ? "named by the message"
      : `by pattern ${JSON.stringify(r.pattern)}${
        r.span === undefined ? "" : ` at ${r.span[0]}..${r.span[1]}`
      }${r.at === undefined ? ", its own" : `, of the policy at ${r.at}`}`;
  const of = (open: string) =>
    report.tools.filter((t) => t.open === open).map((t) =>
      t.by !== undefined ? `${t.tool} (${t.by})` : t.only === undefined ? t.tool : `${t.tool} (${t.only})`
    );
  const tools = [["open", of("yes")], ["open in part", of("in part")], ["closed", of("no")]] as const;
  return [
    ...(report.refused === undefined ? [] : [`refused: ${report.refused}`]),
    ...report.skills.map((s) =>
      `${s.skill}  ${why(s)}, about ${plural(s.tokens, "token")}${
        s.fork === true ? " in a fork of its own" : ""
      }`
    ),
    ...(report.skills.length === 0 ? ["no skill would be loaded before the first request"] : []),
    ...report.skipped.map((s) => `not loaded: ${s.skill}  ${why(s)}: ${s.reason} [${s.code}]`),
    `catalog: ${plural(report.catalog.skills, "skill")}, about ${plural(report.catalog.tokens, "token")}${
      report.catalog.omitted === 0 ? "" : `, ${report.catalog.omitted} left out`
    }`,
    ...tools.filter(([, names]) => names.length > 0).map(([what, names]) =>
      `tools ${what}: ${names.join(", ")}`
    ),
  ];
}
