// What one call is to the evidence patterns of gates: matched as narrowly as an allow rule, and more narrowly where a command
// could end well without having checked anything.
import { matchesCommand, needsNaming } from "./command.ts";
import { isInner, isOperand, type PartSubject, restricts, saysAll, topParts } from "./covering.ts";
import { idleOptions } from "./evidence_options.ts";
import type { Facts } from "./facts.ts";
import type { Gate } from "./policy.ts";
import { matchesSubject, type Rule } from "./rule.ts";

export type EvidenceSite = {
  readonly root: string;
  /** Whether the program that the call starts lies where commands may write. */
  readonly writableProgram: boolean;
};

/** Evidence patterns by their marks, `<gate id>#<index>`. */
export type EvidenceClaims = {
  /** Those that the call meets if it ends well. */
  readonly marks: readonly string[];
  /** Those that speak of the call and that it does not meet, with the reason. */
  readonly nearly: { readonly [mark: string]: string };
};

export function evidenceMark(gate: Pick<Gate, "id">, index: number): string {
  return `${gate.id}#${index}`;
}

export function evidenceClaims(gates: readonly Gate[], facts: Facts, site: EvidenceSite): EvidenceClaims {
  const marks: string[] = [];
  const nearly: Record<string, string> = {};
  for (const gate of gates) {
    gate.evidence.forEach((rule, index) => {
      const reached = facts.subjects.some((s) => !isOperand(s) && restricts(rule, facts, s, site.root));
      if (!reached) return;
      const why = flaw(rule, facts, site);
      if (why === undefined) marks.push(evidenceMark(gate, index));
      else nearly[evidenceMark(gate, index)] = why;
    });
  }
  return { marks, nearly };
}

/**
 * Whether a call that meets these rules counts by its exit status; the result of any other must be neither empty nor cut. A command
 * that only reads has shown nothing when it is silent, save where each of the rules says all of its words.
 */
export function countsByStatus(facts: Facts, rules: readonly Rule[]): boolean {
  const [top] = topParts(facts);
  if (top === undefined) return false;
  if (facts.tool !== "shell" || facts.risk !== "read") return true;
  return !top.part.text.includes(">") && rules.every((rule) => saysAll(rule, top.part));
}

// Why the call is no evidence for the pattern, although that speaks of it.
function flaw(rule: Rule, facts: Facts, site: EvidenceSite): string | undefined {
  const [top, ...others] = topParts(facts);
  if (others.length > 0) return "it must be the only command in its text";
  if (facts.subjects.some(isInner) && (top === undefined || needsNaming(top.part) !== undefined)) {
    return "it must stand at the top level of the text, not inside another command";
  }
  if (top?.part.statusHidden === true) {
    return "its exit status must be that of the text: no `&`, `!`, `||`, `&&`, branch or loop";
  }
  const judged = facts.subjects.filter((s) => !isOperand(s) && !isInner(s));
  const missed = judged.find((s) => !matchesSubject(rule, facts, s, "allow", site.root));
  if (missed !== undefined) {
    return missed.kind === "path" && facts.tool === "shell"
      ? "its output must not go to a file"
      : `it must be exactly as \`${rule.text}\` says`;
  }
  return top === undefined ? undefined : commandFlaw(rule, facts, top, site);
}

function commandFlaw(
  rule: Rule,
  facts: Facts,
  { part }: PartSubject,
  site: EvidenceSite,
): string | undefined {
  if (site.writableProgram) return "its program lies where commands may write";
  // What a skill's tool runs is fixed by the skill, not by the call.
  if (facts.tool !== "shell") return undefined;
  if (rule.command === undefined && part.notUnderstood !== undefined) return part.notUnderstood;
  const unknown = part.blurs?.find((b) => b.glob !== true || /^$|^-/.test(b.pieces[0] ?? ""));
  if (unknown !== undefined) return `\`${part.argv[unknown.at]}\` could become an option`;
  const idle = idleOptions(part.argv);
  const unnamed = idle.find((at) => !isNamed(rule, facts, part, at));
  if (unnamed !== undefined) {
    return `\`${part.argv[unnamed]}\` may keep it from checking everything, and the pattern does not name it`;
  }
  const { cwd } = facts.args;
  if (rule.args?.["cwd"] === undefined && typeof cwd === "string" && !isRoot(cwd, site.root)) {
    return "it must run in the workspace root";
  }
  return undefined;
}

function isNamed(rule: Rule, facts: Facts, part: PartSubject["part"], at: number): boolean {
  return rule.command?.some((c) => at < c.words.length && matchesCommand(c, part, "allow")) === true ||
    rule.args?.["command"]?.some((text) => text === facts.args["command"]) === true;
}

function isRoot(cwd: string, root: string): boolean {
  return /^(\.\/*)?$/.test(cwd) || cwd.replace(/\/+$/, "") === root;
}
