// Evidence of gates that a skill's own upper limit keeps from being gathered: told when a policy is checked, and to the model
// when such a call is refused. Nothing here makes a bound wider.
import { type AllowedTool, type Bound, bounds } from "./bound.ts";
import type { Catalog } from "./catalog.ts";
import { compareText } from "./collection.ts";
import type { CommandPattern } from "./command.ts";
import { splitIdentity } from "./command_tool.ts";
import { commandRisk } from "./command_risk.ts";
import { type McpServer, serverToolName } from "./mcp.ts";
import type { Gate, SkillSettings } from "./policy.ts";
import { type Position, type Problem, showPosition } from "./problem.ts";
import type { Rule } from "./rule.ts";
import { coversRule } from "./rule_cover.ts";
import { isUndeclared, type Skill } from "./skill.ts";
import { escapeLine, wildcard } from "./text.ts";
import { builtinTool, engineTools } from "./tool_names.ts";

export type GateBoundSite = {
  readonly policy: {
    readonly gates: readonly Gate[];
    readonly root: string;
    readonly mcpServers: readonly McpServer[];
    readonly skills: Pick<SkillSettings, "forced" | "triggers" | "modelChoice" | "undeclaredTools">;
  };
  readonly home: string;
  readonly catalog: Catalog;
  /** An entry of allowed_tools in the words of Writ. */
  allowedTool(declared: string): AllowedTool;
  /** Where the skill says what it allows. */
  boundAt(skill: Skill): Position;
};

/**
 * A warning for each piece of evidence that the skill of its gate, or of another gate on the same calls, does not allow, wherever
 * something may load that skill so that it bounds. Silent where it is not sure. In the order of gates, evidence and names of skills.
 */
export function boundedEvidence(site: GateBoundSite): readonly Problem[] {
  return site.policy.gates.flatMap((gate) => {
    const skills = skillsBeside(gate, site);
    return gate.evidence.flatMap((rule) =>
      skills.flatMap((skill): Problem[] => {
        const when = whenInTheWay(skill, gate, site);
        const [bound] = when === undefined ? [] : boundOf(skill, site);
        if (when === undefined || bound === undefined || mayFit(bound, rule, site)) return [];
        return [problemOf(gate, rule, skill, when, site)];
      })
    );
  });
}

function problemOf(
  gate: Gate,
  rule: Rule,
  skill: Skill,
  { when, instead }: InTheWay,
  site: GateBoundSite,
): Problem {
  const evidence = escapeLine(rule.text);
  const own = gate.skill === skill.name
    ? `its skill \`${skill.name}\``
    : `\`${skill.name}\`, the skill of another gate on the same calls,`;
  const add = skill.tier === "builtin"
    ? `let the gate name a skill of your own that has \`${evidence}\` in its \`allowed_tools\``
    : `add \`${evidence}\` to those \`allowed_tools\``;
  return {
    code: "gate-bound",
    severity: "warning",
    message: `the gate \`${gate.id}\` waits for \`${evidence}\`, which ${own} does not allow ` +
      `(\`allowed_tools\` at ${showPosition(site.boundAt(skill))}): ${when}`,
    at: rule.at,
    hint: `${add}${instead === undefined ? "" : `; ${instead}`} (\`writ help gates\`)`,
  };
}

function skillsBeside(gate: Gate, { policy, home, catalog }: GateBoundSite): readonly Skill[] {
  const base = { root: policy.root, home };
  const both = { wide: "restrict", narrow: "restrict" } as const;
  const meets = (a: Rule, b: Rule) =>
    a.text === b.text || coversRule(a, b, both, base) || coversRule(b, a, both, base);
  const beside = policy.gates.filter((other) =>
    other === gate || (other.finish !== undefined && gate.finish !== undefined) ||
    other.before.some((a) => gate.before.some((b) => meets(a, b)))
  );
  const names = [...new Set(beside.flatMap((g) => g.skill ?? []))].sort(compareText);
  return names.flatMap((name) => catalog.get(name) ?? []);
}

function boundOf(skill: Skill, { policy, allowedTool }: GateBoundSite): readonly Bound[] {
  const allowed = isUndeclared(skill) ? undefined : skill.allowedTools?.map(allowedTool);
  const { undeclaredTools } = policy.skills;
  return bounds([{ name: skill.name, trigger: "model", allowed }], {
    undeclaredTools,
    combineBounds: "intersection",
  });
}

type InTheWay = { readonly when: string; readonly instead?: string };

// A gate itself loads its skill without a bound, so that it is somebody else's loading that comes in the way.
function whenInTheWay(skill: Skill, gate: Gate, { policy }: GateBoundSite): InTheWay | undefined {
  const entries = policy.skills.forced.filter((f) => f.skill === skill.name && f.bounding);
  if (entries.some((f) => f.when.at === "session")) {
    return {
      when: "it bounds the whole session, so that the gate never opens",
      instead: "or take `bounding` away",
    };
  }
  if (skill.mode === "fork") {
    if (gate.skill !== skill.name || gate.verdict === undefined || skill.history === "full") return undefined;
    return {
      when:
        "it runs as a fork, and only what it has gathered itself counts for its verdict, so that the gate never opens",
      instead: "or ask for the verdict and for this evidence in two gates",
    };
  }
  const ways = loaders(skill, policy.skills);
  if (entries.length === 0 && ways.length === 0) return undefined;
  const who = entries.length > 0
    ? "once its gate has refused something"
    : `once ${ways.join(" or ")} has loaded it`;
  return {
    when: `${who}, this evidence cannot be had until the skill ends`,
    instead: "or gather it before, in a turn that does not load the skill",
  };
}

function loaders(
  skill: Skill,
  { triggers, modelChoice }: Pick<SkillSettings, "triggers" | "modelChoice">,
): readonly string[] {
  return [
    ...(skill.patterns.length > 0 || triggers.some((t) => t.skill === skill.name) ? ["a message"] : []),
    ...(skill.userInvocable ? ["`/skill`"] : []),
    ...(skill.modelInvocable && modelChoice ? ["the model"] : []),
  ];
}

// Whether some call that meets the pattern may be within the bound.
function mayFit(bound: Bound, rule: Rule, { policy }: GateBoundSite): boolean {
  return rule.tools.some((tool) => {
    if (engineTools.includes(tool) || splitIdentity(tool)?.skill === bound.skill) return true;
    if (bound.allowed === "read_only") return mayRead(tool, rule, policy.mcpServers);
    return bound.allowed.some(({ matchers }) =>
      matchers !== undefined && matchers.tools.some((glob) => toolsMeet(glob, tool)) &&
      commandsMeet(matchers.command, rule.command)
    );
  });
}

function toolsMeet(a: string, b: string): boolean {
  return wildcard(a, b) || wildcard(b, a) || (a.includes("*") && b.includes("*"));
}

function commandsMeet(
  allowed: readonly CommandPattern[] | undefined,
  wanted: readonly CommandPattern[] | undefined,
): boolean {
  if (allowed === undefined || wanted === undefined) return true;
  return allowed.some((a) => wanted.some((b) => startsAlike(a, b)));
}

function startsAlike(a: CommandPattern, b: CommandPattern): boolean {
  const [short, long] = a.words.length <= b.words.length ? [a, b] : [b, a];
  return short.words.every((word, at) => word === long.words[at]) &&
    (short.rest || short.words.length === long.words.length);
}

function mayRead(tool: string, rule: Rule, servers: readonly McpServer[]): boolean {
  if (tool.includes("*")) return true;
  const listed = servers.flatMap((s) => s.tools.filter((t) => serverToolName(s.name, t.name) === tool));
  if (listed.length > 0) return listed.some((t) => t.risk === "read");
  const builtin = builtinTool(tool);
  if (builtin === undefined) return splitIdentity(tool) === undefined;
  if (tool !== "shell") return builtin.reads;
  // Of a program alone, what follows decides.
  return rule.command === undefined || rule.command.some((c) =>
    (c.rest && c.words.length < 2) ||
    commandRisk({ argv: c.words, text: c.source, assignments: c.assignments, level: "top" }) === "read"
  );
}

/** A skill that refused a call, and how long it bounds. */
export type Bounding = { readonly skill: string; readonly lasts: "turn" | "session" | "policy" | "fork" };

/**
 * What the model is told of a call that would be evidence and that nothing but bounds refused: that no other spelling helps now, and how
 * to go on. Neither list is empty.
 */
export function boundedText(gates: readonly string[], by: readonly Bounding[]): string {
  const names = (all: readonly string[]) => all.map((name) => `\`${name}\``).join(" and ");
  const skills = names(by.map((b) => b.skill));
  const start =
    `This call would be evidence for the gate ${
      names(gates)
    }. Only the bound of the skill ${skills} refuses it; ` +
    "neither `complete_skill` nor another spelling of the call lifts that.";
  const [lasting] = (["policy", "fork", "session", "turn"] as const).filter((l) =>
    by.some((b) => b.lasts === l)
  );
  const mend =
    `To have it allowed for good, the person adds it to \`allowed_tools\` of ${skills} (\`writ policy check\` names the places).`;
  const then =
    "Make this call first in the next one, before the gated call and before anything loads the skill; do not load it yourself: " +
    "the gate does when it refuses.";
  switch (lasting) {
    case "policy":
      return `${start} The policy keeps it in force for the whole session: say so, and stop trying. ${mend}`;
    case "fork":
      return `${start} It lasts as long as this fork: say which call is missing and end, so that the conversation around it makes it. ${mend}`;
    case "session": {
      const clear = by.filter((b) => b.lasts === "session").map((b) => `\`/skill clear ${b.skill}\``).join(
        " and ",
      );
      return `${start} It lasts until the person writes ${clear}: ask for that, and end the turn. ${then} ${mend}`;
    }
    default:
      return `${start} It lasts until this turn ends: end it, and ask for a next one in words that do not load the skill. ${then} ${mend}`;
  }
}
