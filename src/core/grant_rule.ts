// The rules that a kept answer would be: each says exactly one thing that was approved, and reads back as just that.
import { needsNaming, parseCommandPattern } from "./command.ts";
import { isInner, isOperand } from "./covering.ts";
import { decide, type Standing } from "./decide.ts";
import type { Facts, Subject } from "./facts.ts";
import { escapeGlob, unescapeGlob } from "./glob.ts";
import type { Layer } from "./policy.ts";
import type { Rule } from "./rule.ts";

/** An allow rule with one matcher and no wildcard in it. */
export type GrantRule = {
  readonly tool: string;
  readonly kind: "command" | "path" | "host";
  /** The pattern, as a policy file would have it. */
  readonly text: string;
  /** Named by the rule unless it is the default one. */
  readonly box: string;
};

/** An entry of `permissions.allow`. */
export type GrantEntry = string | { readonly [key: string]: string };

/**
 * One rule for each command, written file and host of the call, in its order and each once; undefined where no rule
 * without wildcards says them: what is not understood, is protected, or is about the arguments as a whole.
 */
export function grantRules(facts: Facts): readonly GrantRule[] | undefined {
  const rules: GrantRule[] = [];
  for (const subject of facts.subjects) {
    // Operands meet only rules that restrict; what a command runs inside is covered with the command.
    if (isOperand(subject) || isInner(subject)) continue;
    const rule = ruleFor(subject, facts);
    if (rule === undefined) return undefined;
    if (!rules.some((r) => r.tool === rule.tool && r.text === rule.text)) rules.push(rule);
  }
  return rules;
}

function ruleFor(subject: Subject, { tool, box }: Facts): GrantRule | undefined {
  switch (subject.kind) {
    case "call":
      return undefined;
    case "part": {
      const { part } = subject;
      if (needsNaming(part) !== undefined || part.argv.length === 0 || part.blurs !== undefined) {
        return undefined;
      }
      return { tool, kind: "command", text: commandText(part.argv), box };
    }
    case "path": {
      const { resolved, protectedBy } = subject.path;
      if (resolved === undefined || protectedBy !== undefined) return undefined;
      return { tool: subject.tool, kind: "path", text: escapeGlob(resolved), box };
    }
    case "host":
      return { tool, kind: "host", text: subject.host.host, box };
  }
}

/** The words as a command pattern that names just them. */
export function commandText(words: readonly string[]): string {
  return words.map((word, index) => quoted(word, index === 0)).join(" ");
}

const plain = /^[A-Za-z0-9_./:@%,=^~+-]+$/;
// As the first word these would be an assignment, or the name of a set.
const special = /^(?:[A-Za-z_][A-Za-z0-9_]*\+?=|@)/;

function quoted(word: string, first: boolean): string {
  if (plain.test(word) && !(first && special.test(word))) return word;
  return word.includes("'") ? `"${word.replace(/["\\]/g, "\\$&")}"` : `'${word}'`;
}

/** The rule as an entry of a policy file; with `workspace` it counts in that root only. */
export function grantEntry(rule: GrantRule, workspace?: string): GrantEntry {
  const { tool, kind, text, box } = rule;
  const isPlain = box === "default" && workspace === undefined && text === text.trim();
  if (isPlain) return `${tool}(${text})`;
  return {
    tool,
    [kind]: text,
    ...(box === "default" ? {} : { box }),
    ...(workspace === undefined ? {} : { workspace }),
  };
}

/** The rule as people see it: what they would write into a policy file. */
export function showGrantRule(rule: GrantRule): string {
  const entry = grantEntry(rule);
  if (typeof entry === "string") return entry;
  return `{${Object.entries(entry).map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join(", ")}}`;
}

/** Whether the call would be allowed without asking if the user's own policy had these rules as well. */
export function rulesAnswer(
  layers: readonly Layer[],
  facts: Facts,
  standing: Standing,
  rules: readonly GrantRule[],
): boolean {
  const added = rules.flatMap((rule) => compiled(rule, standing.root));
  return added.length === rules.length &&
    decide(withRules(layers, added), facts, standing).effect === "allow";
}

function withRules(layers: readonly Layer[], added: readonly Rule[]): readonly Layer[] {
  if (layers.some((l) => l.name === "user")) {
    return layers.map((l) => (l.name === "user" ? { ...l, rules: [...l.rules, ...added] } : l));
  }
  // It delegates nothing: where it stands makes no difference.
  return [...layers, { name: "user", rules: added, defaults: {}, delegates: [] }];
}

const approved = {
  id: "approved",
  effect: "allow",
  layer: "user",
  at: { file: "", line: 1, col: 1 },
} as const;

// What a loader makes of the entry; a path without wildcards needs no expression.
function compiled(rule: GrantRule, workspace: string): readonly Rule[] {
  const { tool, kind, text, box } = rule;
  const base = { ...approved, text: showGrantRule(rule), tools: [tool], workspace, box: [box] };
  switch (kind) {
    case "command": {
      const command = parseCommandPattern(text);
      return "error" in command ? [] : [{ ...base, command: [command] }];
    }
    case "path": {
      const path = unescapeGlob(text);
      const test = (other: string) => other === path;
      const find = (other: string) => test(other) ? [0, path.length] as const : undefined;
      return [{ ...base, path: [{ source: text, literal: true, pattern: { source: path, test, find } }] }];
    }
    case "host":
      return [{ ...base, host: [{ kind: "exact", host: text }] }];
  }
}
