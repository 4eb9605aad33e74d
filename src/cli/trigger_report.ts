// What a message would load and why, what would be left out, and which tools would be open then. Nothing is loaded.
import type { StandingSkill } from "../agent/standing.ts";
import { bounds } from "../core/bound.ts";
import { estimateTokens } from "../core/budget.ts";
import type { TriggerKind } from "../core/event.ts";
import { plural } from "../core/plural.ts";
import { type ForcedSkill, type Policy, sessionForced } from "../core/policy.ts";
import { type Position, showPosition } from "../core/problem.ts";
import { renderSkill, type Skill } from "../core/skill.ts";
import { wildcard } from "../core/text.ts";
import { builtinTool, enableableTools } from "../core/tool_names.ts";
import { firstBytes, messageCap, selectByPattern } from "../core/trigger.ts";
import { compileAllowedTool } from "../load/allowed_tool.ts";
import { listing } from "./agent_parts.ts";
import type { LoadedCatalog } from "./catalog.ts";
import type { Settings } from "./settings.ts";
import { skillBodies } from "./skill_bodies.ts";
import { freshView } from "./skill_list.ts";
import { askSkills } from "./skill_words.ts";

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
  readonly skills: readonly (Reason & { readonly tokens: number })[];
  readonly skipped: readonly (Reason & { readonly code: string; readonly reason: string })[];
  /** Why there would be no turn. */
  readonly refused?: string;
  readonly catalog: { readonly skills: number; readonly tokens: number; readonly omitted: number };
  /** Of `tools.enabled`: what the skills that would be loaded leave open. */
  readonly tools: readonly {
    readonly tool: string;
    readonly open: "yes" | "in part" | "no";
    readonly by?: string;
  }[];
};

type Wanted = Reason & { readonly source: Skill; readonly arguments: string; readonly bounding: boolean };

/** For the first turn of a session, so that no skill was used before. `message` is redacted. */
export async function triggerReport(
  settings: Settings,
  loaded: LoadedCatalog,
  message: string,
): Promise<TriggerReport> {
  const { policy } = settings;
  const { catalog } = loaded;
  const asked = askSkills(freshView(policy, loaded), message, []);
  const wanted: Wanted[] = sessionForced(policy.skills).flatMap((f) => ofPolicy(f, catalog.get(f.skill)));
  const refused = asked.kind === "fault"
    ? asked.message
    : asked.kind === "turn"
    ? undefined
    : "this is no turn";
  for (const { name, arguments: text } of asked.kind === "turn" ? asked.skills : []) {
    const source = catalog.get(name);
    if (source !== undefined) {
      wanted.push({ skill: name, by: "explicit", source, arguments: text, bounding: true });
    }
  }
  for (
    const hit of refused === undefined
      ? selectByPattern(message, policy.skills.triggers, catalog, new Map())
      : []
  ) {
    if (wanted.some((w) => w.by === "explicit" && w.skill === hit.skill.name)) continue;
    wanted.push({
      skill: hit.skill.name,
      by: "pattern",
      pattern: hit.pattern,
      span: hit.span,
      ...(hit.at === undefined ? {} : { at: showPosition(hit.at) }),
      source: hit.skill,
      arguments: "",
      bounding: true,
    });
  }
  const fitted = await fit(settings, wanted);
  const stopped = refused ?? fitted.refused;
  const listed = listing(policy, loaded);
  return {
    skills: fitted.skills.map(({ source: _, arguments: _text, bounding: _bounding, ...reason }) => reason),
    skipped: [...fitted.skipped, ...absentHits(policy, loaded, message)],
    ...(stopped === undefined ? {} : { refused: stopped }),
    catalog: { skills: catalog.items.length, tokens: listed.tokens, omitted: listed.omitted.length },
    tools: openTools(settings, fitted.skills),
  };
}

function ofPolicy(forced: ForcedSkill, source: Skill | undefined): readonly Wanted[] {
  if (source === undefined) return [];
  const { skill, at, arguments: text, bounding } = forced;
  return [{ skill, by: "policy", at: showPosition(at), source, arguments: text, bounding }];
}

// By the rules of loading: a body is read, rendered and weighed; the first that does not fit is left out.
async function fit(settings: Settings, wanted: readonly Wanted[]) {
  const bodies = skillBodies(settings);
  const cap = settings.policy.skills.activeTokens;
  const skills: (Wanted & { readonly tokens: number })[] = [];
  const skipped: (Reason & { readonly code: string; readonly reason: string })[] = [];
  let used = 0;
  let refused: string | undefined;
  for (const want of wanted) {
    const { source, arguments: text, bounding: _bounding, ...reason } = want;
    const leave = (code: string, why: string) => {
      skipped.push({ ...reason, code, reason: why });
      if (want.by !== "pattern") refused ??= why;
    };
    const read = await bodies.read(source);
    if (!read.ok) {
      leave(read.code, read.message);
      continue;
    }
    const forced = skills.some((s) => s.skill === want.skill);
    const rendered = renderSkill(read.meta, read.body, text, source.tools.map((t) => t.name));
    const tokens = forced ? 0 : estimateTokens(rendered);
    if (used + tokens > cap) {
      leave(
        "skill_too_large",
        `about ${tokens} tokens; ${used} of the ${cap} of skills.active_tokens are in use`,
      );
      continue;
    }
    used += tokens;
    skills.push({ ...want, tokens });
  }
  return { skills, skipped, ...(refused === undefined ? {} : { refused }) };
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

function openTools(settings: Settings, loaded: readonly Wanted[]): TriggerReport["tools"] {
  const { policy, surroundings } = settings;
  const place = { root: policy.root, home: surroundings.home };
  const bounding = loaded.filter((s) => s.bounding);
  const inForce = bounds(
    bounding.map(({ source, by }): Parameters<typeof bounds>[0][number] => ({
      name: source.name,
      trigger: by as StandingSkill["trigger"],
      allowed: source.allowedTools === undefined || source.allowedTools.includes("*")
        ? undefined
        : source.allowedTools.map((declared) => compileAllowedTool(declared, place)),
    })),
    policy.skills,
  );
  return enableableTools.filter((tool) => policy.tools.enabled.includes(tool)).map((tool) => {
    let open: "yes" | "in part" | "no" = "yes";
    for (const bound of inForce) {
      if (bound.allowed === "read_only") {
        if (builtinTool(tool)?.reads !== true) {
          open = tool === "shell" || tool === "fetch_url" ? "in part" : "no";
        }
        if (open === "no") return { tool, open, by: bound.skill };
        continue;
      }
      const entries = bound.allowed.flatMap((a) => a.matchers === undefined ? [] : [a.matchers])
        .filter((m) => m.tools.some((glob) => wildcard(glob, tool)));
      if (entries.length === 0) return { tool, open: "no" as const, by: bound.skill };
      const whole = entries.some((m) =>
        m.command === undefined && m.path === undefined && m.host === undefined && m.risk === undefined
      );
      if (!whole) open = "in part";
    }
    return { tool, open };
  });
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
      t.by === undefined ? t.tool : `${t.tool} (${t.by})`
    );
  const tools = [["open", of("yes")], ["open in part", of("in part")], ["closed", of("no")]] as const;
  return [
    ...(report.refused === undefined ? [] : [`refused: ${report.refused}`]),
    ...report.skills.map((s) => `${s.skill}  ${why(s)}, about ${plural(s.tokens, "token")}`),
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
