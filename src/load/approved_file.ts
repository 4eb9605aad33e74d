// The user's `policy.d/approved.yaml`: rules that were approved for good at the prompt. The text is made here and checked
// as any policy file is; people may edit it, and what they wrote stays.
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { Document, isMap, isSeq, parseDocument, YAMLMap, YAMLSeq } from "yaml";
import { sha256 } from "../disk/sha256.ts";
import { writeWhole } from "../disk/whole_file.ts";
import { isError, type Loaded, type Problem, showProblem } from "../core/problem.ts";
import { byteLength, canonicalJson, hasHiddenCharacters } from "../core/text.ts";
import { messageOf } from "../core/thrown.ts";
import { isMissing, realOr } from "./locate.ts";
import { loadPolicyFile, policyCap } from "./policy_file.ts";
import { compileRule } from "./policy_rules.ts";
import type { RuleMapping } from "./policy_schema.ts";

/** An allow rule for one workspace: `tool`, one of `command`, `path` and `host`, `workspace`, and `box` if need be. */
export type ApprovedEntry = { readonly tool: string; readonly workspace: string } & {
  readonly [key: string]: string;
};

export const approvedName = "approved.yaml";

const heading = ' Approved at the prompt with "always", by writ. Remove an entry to be asked again.';

/**
 * The text of the file with these rules in it. Rules that it has already are not added: then it comes back as it was.
 * A file that has faults is not touched, nor is a rule written that would not load or could not be read by a person.
 */
export function withApproved(
  text: string | undefined,
  file: string,
  entries: readonly ApprovedEntry[],
  version: string,
): Loaded<string> {
  const faults = entries.flatMap((entry) => entryFaults(entry, file));
  const before = text === undefined ? undefined : loadPolicyFile(text, file, "user", version);
  if (before?.ok === false) return before;
  if (faults.length > 0) return { ok: false, problems: faults };
  const has = new Set((before?.value.data.permissions?.allow ?? []).map((entry) => keyOf(entry)));
  const missing = entries.filter((entry) => !has.has(keyOf(entry)) && has.add(keyOf(entry)));
  if (text !== undefined && missing.length === 0) return { ok: true, value: text, problems: [] };
  const after = added(text, missing);
  if (byteLength(after) > policyCap) {
    return refused("too-large", `\`${file}\` has no room for another rule (${policyCap} bytes)`);
  }
  const checked = loadPolicyFile(after, file, "user", version);
  return checked.ok ? { ok: true, value: after, problems: [] } : checked;
}

/**
 * Adds the rules to the file in this `policy.d`, which are made when they are not there; whole or not at all, readable by
 * the user alone. Problems mean that nothing was written. Whoever calls keeps other writers out.
 */
export function storeApproved(
  folder: string,
  entries: readonly ApprovedEntry[],
  version: string,
): Loaded<string> {
  const file = join(folder, approvedName);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const before = readIfThere(file);
    const after = withApproved(before, file, entries, version);
    if (after.ok && after.value !== before) replace(realOr(file), after.value);
    return after.ok ? { ok: true, value: file, problems: [] } : after;
  } catch (error) {
    return refused(
      "unwritable",
      `\`${file}\` cannot be written: ${messageOf(error)}`,
    );
  }
}

/** The first fault in one line. */
export function firstFault(problems: readonly Problem[]): string {
  const [first] = problems.filter(isError);
  return first === undefined ? "unknown fault" : showProblem(first);
}

function entryFaults(entry: ApprovedEntry, file: string): readonly Problem[] {
  if (Object.values(entry).some((text) => hasHiddenCharacters(text) || !text.isWellFormed())) {
    return problem("hidden-characters", "the rule holds characters that nobody can see; it is not kept");
  }
  const made = compileRule(entry as RuleMapping, {
    layer: "user",
    effect: "allow",
    list: "rules",
    defaultId: idOf(entry),
    at: () => ({ file, line: 1, col: 1 }),
  }, {
    root: entry.workspace,
    home: entry.workspace,
    sets: new Map(),
    risky: [],
    serverTools: [],
    resolve: (path) => path,
  });
  return made.ok ? [] : made.problems;
}

function added(text: string | undefined, entries: readonly ApprovedEntry[]): string {
  const document = text === undefined ? fresh() : parseDocument(text);
  const permissions = mapAt(document, "permissions");
  let allow = permissions.get("allow");
  if (!isSeq(allow)) {
    allow = new YAMLSeq();
    permissions.set("allow", allow);
  }
  if (!isSeq(allow)) throw new Error("no list to add to");
  for (const entry of entries) {
    const node = document.createNode({ id: idOf(entry), ...entry }, { flow: true });
    allow.add(node);
  }
  return document.toString({ lineWidth: 0 });
}

function fresh(): Document {
  const document = new Document({ version: 1 });
  document.commentBefore = heading;
  return document;
}

function mapAt(document: Document, key: string): YAMLMap {
  const found = document.get(key);
  if (isMap(found)) return found;
  const made = new YAMLMap();
  document.set(key, made);
  return made;
}

// Ids stand in every log, so that one rule has the same id whatever else the file holds.
function idOf(entry: ApprovedEntry): string {
  return `approved-${sha256(keyOf(entry)).slice(0, 10)}`;
}

function keyOf(entry: string | { readonly [key: string]: unknown }): string {
  if (typeof entry === "string") return canonicalJson({ tool: entry });
  const { id: _, ...rule } = entry;
  return canonicalJson(rule as { [key: string]: string });
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

// Under one name, so that what a writer left behind that was stopped is gone with the next.
function replace(file: string, text: string): void {
  const draft = join(dirname(file), `.${approvedName}.new`);
  rmSync(draft, { force: true });
  writeWhole(file, text, draft);
}

function refused(code: string, message: string): Loaded<never> {
  return { ok: false, problems: problem(code, message) };
}

function problem(code: string, message: string): readonly Problem[] {
  return [{ code, severity: "error", message }];
}
