// The `trigger` field of a front matter: patterns on the user's message, and the examples that prove them.
import { compilePattern } from "./pattern.ts";
import type { Fields, Warn } from "./skill_file.ts";
import { patternFault } from "../core/pattern_fault.ts";
import type { SkillMeta } from "../core/skill.ts";
import { isObject, type Pattern } from "../core/text.ts";

const maxPatterns = 64;
const maxLength = 1000;

/**
 * The patterns that compile, and the examples. A pattern that does not compile, that matches the empty text or is too
 * long is left out with a warning; so is a `trigger` of a shape that is not `{patterns, match, no_match}`.
 */
export function readTrigger(fields: Fields, report: Warn): Pick<SkillMeta, "patterns" | "match" | "noMatch"> {
  const warn: Warn = (code, message, key = "trigger") => report(code, message, key);
  const none = { patterns: [], match: [], noMatch: [] };
  if (fields.value("triggers") !== undefined) {
    warn("trigger-form", "`triggers` is not read; write `trigger: {patterns: [...]}`", "triggers");
  }
  const trigger = fields.value("trigger");
  if (trigger === undefined) return none;
  if (!isObject(trigger)) {
    warn("trigger-form", "`trigger` is not a map and is not read; write `trigger: {patterns: [...]}`");
    return none;
  }
  if (trigger["patterns"] === undefined) warn("trigger-form", "`trigger` has no `patterns`");
  const patterns = texts(trigger["patterns"], "patterns", warn).flatMap((source) => compile(source, warn));
  const match = texts(trigger["match"], "match", warn);
  const noMatch = texts(trigger["no_match"], "no_match", warn);
  checkExamples({ patterns, match, noMatch }, warn);
  return { patterns, match, noMatch };
}

function texts(value: unknown, key: string, warn: Warn): readonly string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [value];
  const form = () => warn("trigger-form", `\`trigger.${key}\` is not a list of texts`);
  if (!Array.isArray(value)) return form(), [];
  if (value.some((item) => typeof item !== "string")) form();
  const list = value.filter((item) => typeof item === "string");
  if (list.length > maxPatterns) {
    warn("trigger-invalid", `\`trigger.${key}\` has more than ${maxPatterns} entries`);
  }
  return list.slice(0, maxPatterns);
}

function compile(source: string, warn: Warn): Pattern[] {
  const refuse = (
    why: string,
  ) => (warn("trigger-invalid", `the pattern \`${source.slice(0, 80)}\` ${why}`), []);
  if (source.length > maxLength) return refuse(`is longer than ${maxLength} characters`);
  try {
    const pattern = compilePattern(source, { ignoreCase: true });
    return pattern.test("") ? refuse("matches the empty text, so it would match every message") : [pattern];
  } catch (error) {
    const { says, hint } = patternFault(source, error);
    return refuse(`${says}; ${hint}`);
  }
}

function checkExamples(trigger: Pick<SkillMeta, "patterns" | "match" | "noMatch">, warn: Warn): void {
  const hit = (message: string) => trigger.patterns.some((pattern) => pattern.test(message));
  for (const message of trigger.match) {
    if (!hit(message)) warn("trigger-example", `no pattern matches the example \`${message.slice(0, 80)}\``);
  }
  for (const message of trigger.noMatch) {
    if (hit(message)) {
      warn(
        "trigger-example",
        `a pattern matches \`${message.slice(0, 80)}\`, which is listed in \`no_match\``,
      );
    }
  }
}
