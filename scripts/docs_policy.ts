// Rows of the tables about policies that documents show: every key with what it takes, and what rules can say. Read from the
// schema, from an empty policy and from the tables of the code, so that none of them can fall behind.
import { expectedWords } from "../src/load/check_value.ts";
import { inThisVersion } from "../src/load/policy_keys.ts";
import { mergePolicy } from "../src/load/policy_merge.ts";
import { policySchema } from "../src/load/policy_schema.ts";
import { decide } from "../src/core/decide.ts";
import { type Risk, risks } from "../src/core/decision.ts";
import type { Facts } from "../src/core/facts.ts";
import { shippedSets } from "../src/core/shipped_sets.ts";
import { builtins, type Matcher } from "../src/core/tool_names.ts";
import { builtinTools } from "../src/tools/registry.ts";

export type Row = readonly string[];

type Schema = {
  readonly type?: string;
  readonly entries?: { readonly [key: string]: Schema };
  readonly wrapped?: Schema;
  readonly item?: Schema;
  readonly value?: Schema;
  readonly options?: readonly (Schema | string)[];
  readonly pipe?: readonly (Schema & { readonly description?: string })[];
};

/** Key, what it takes, what holds when nobody sets it, meaning. `[]` is an entry of a list, `NAME` any name. */
export function policyKeyRows(): readonly Row[] {
  const defaults = embeddedValues();
  return keyRows(policySchema as unknown as Schema, []).map(({ path, needed, value, meaning }) => {
    const key = path.join(".").replaceAll(".*", "[]").replaceAll(".NAME[]", ".NAME");
    return [code(key), value, needed ? "must be set" : defaults.get(key) ?? "–", meaning];
  });
}

/** Key, what it takes, meaning: of a rule that is a mapping. */
export function ruleKeyRows(): readonly Row[] {
  const path = ["permissions", "deny", "*"];
  const entry = path.reduce<Schema | undefined>(
    (schema, step) => step === "*" ? inner(schema)?.item : inner(schema)?.entries?.[step],
    policySchema as unknown as Schema,
  );
  const mapping = alternatives(entry).find((option) => option.entries !== undefined);
  return Object.entries(mapping?.entries ?? {}).filter(([key]) => inThisVersion([...path, key])).map((
    [key, schema],
  ) => [code(key), wordsOf(schema, [...path, key]), meaningOf(schema) ?? ""]);
}

/** One paragraph a set: name, what it lists, entries. */
export function shippedSetLines(): string {
  const kinds: Readonly<Record<Matcher, string>> = {
    path: "paths",
    command: "commands",
    host: "hosts",
    skill: "skills",
  };
  return Object.entries(shippedSets).map(([name, { matcher, entries }]) => {
    // What holds hosts is written in code; its one entry is its own name.
    const shown = matcher === "host"
      ? "loopback, link-local and private addresses, and names that lead there"
      : entries.map(code).join(", ");
    return wrapped(`- ${code(`@${name}`)} (${kinds[matcher]}): ${shown}`, "  ");
  }).join("\n");
}

// At blanks outside of code spans, so that no entry is torn.
function wrapped(text: string, indent: string): string {
  let line = "";
  const lines: string[] = [];
  for (const part of text.match(/`[^`]*`\S*|\S+/g) ?? []) {
    if (line !== "" && line.length + part.length >= 118) {
      lines.push(line);
      line = indent + part;
    } else line = line === "" ? part : `${line} ${part}`;
  }
  return [...lines, line].join("\n");
}

/** Name, arguments, risk, what a specifier is, whether it is offered without a word of the policy. */
export function toolRows(): readonly Row[] {
  return builtins.map((tool) => {
    const schema = builtinTools.find((t) => t.name === tool.name)?.inputSchema;
    const required = [schema?.["required"] ?? []].flat() as readonly unknown[];
    const args = Object.keys(schema?.properties ?? {}).filter((name) =>
      tool.name !== "shell" || name !== "box"
    ).map((
      name,
    ) => required.includes(name) ? code(name) : `[${code(name)}]`);
    const offered = tool.engine ? "when of use" : tool.enabledByDefault ? "yes" : "no";
    return [code(tool.name), args.join(" "), riskOf(tool), specifierOf(tool), offered];
  });
}

function riskOf({ reads, matcher }: (typeof builtins)[number]): string {
  if (reads) return "read";
  if (matcher === "path") return "write";
  return matcher === "host" ? "network" : "what the command does, at most destructive";
}

function specifierOf({ name, matcher, mainArgument }: (typeof builtins)[number]): string {
  switch (matcher) {
    case "path":
      return `a path glob over ${code(mainArgument)}: ${code(`${name}(src/**)`)}`;
    case "command":
      return `a command pattern over each command in ${code(mainArgument)}: ${code(`${name}(git diff *)`)}`;
    case "host":
      return `a host pattern over the host of ${code(mainArgument)}: ${code(`${name}(docs.example.com)`)}`;
    case "skill":
      return `a glob over the name in ${code(mainArgument)}: ${code(`${name}(release-*)`)}`;
  }
}

type KeyRow = {
  readonly path: readonly string[];
  readonly needed: boolean;
  readonly value: string;
  readonly meaning: string;
};

function keyRows(schema: Schema, path: readonly string[]): KeyRow[] {
  if (!inThisVersion(path)) return [];
  const meaning = meaningOf(schema);
  const needed = path.length > 0 && schema.type !== "exact_optional";
  const own = meaning === undefined ? [] : [{ path, needed, value: wordsOf(schema, path), meaning }];
  const below = [schema, ...alternatives(inner(schema))].flatMap((option) => {
    const { entries, item, value } = inner(option) ?? {};
    // What a rule may say is a table of its own.
    if (entries?.["tool"] !== undefined) return [];
    return [
      ...Object.entries(entries ?? {}).flatMap(([key, member]) => keyRows(member, [...path, key])),
      ...(item === undefined ? [] : keyRows(item, [...path, "*"])),
      ...(value === undefined ? [] : keyRows(value, [...path, "NAME"])),
    ];
  });
  return [...own, ...below];
}

function wordsOf(schema: Schema, path: readonly string[]): string {
  const known = inner(schema);
  const words = expectedWords(known, path, inThisVersion).replace(/, above zero and at most.*/, "");
  if (known?.value === undefined) return words;
  const value = inner(known.value);
  if (value?.entries !== undefined) return `${words} of names to mappings`;
  return value?.type === "unknown"
    ? words
    : `${words} of names to ${expectedWords(value, path, inThisVersion)}`;
}

// What is in force when no file says anything; lists have one entry an item.
function embeddedValues(): ReadonlyMap<string, string> {
  const merged = mergePolicy({
    files: [],
    revision: "",
    root: "/ws",
    home: "/home/u",
    protect: { skillFolders: [], gitFolders: [], own: [] },
  });
  if (!merged.ok) throw new Error("an empty policy does not load");
  const shown = new Map<string, string[]>();
  for (const { key, value } of merged.value.origin) {
    shown.set(key, [...(shown.get(key) ?? []), ...[value].flat().map(written)]);
  }
  for (const risk of risks) shown.set(`permissions.default.${risk}`, [embeddedEffect(risk)]);
  return new Map([...shown].map(([key, values]) => [key, values.map(code).join(", ")]));
}

function written(value: unknown): string {
  return typeof value === "object"
    ? JSON.stringify(value).replaceAll('"', "").replaceAll(":", ": ")
    : String(value);
}

function embeddedEffect(risk: Risk): string {
  const facts: Facts = {
    tool: "any",
    args: {},
    risk,
    subjects: [{ kind: "call" }],
    errors: [],
    box: "default",
    sourcedBy: [],
    mode: "interactive",
  };
  return decide([], facts, { root: "/ws", active: [], bounds: [], blocks: [] }).effect;
}

function inner(schema: Schema | undefined): Schema | undefined {
  return schema?.wrapped === undefined ? schema : inner(schema.wrapped);
}

function alternatives(schema: Schema | undefined): readonly Schema[] {
  return (inner(schema)?.options ?? []).filter((o) => typeof o !== "string");
}

function meaningOf(schema: Schema): string | undefined {
  return inner(schema)?.pipe?.find((step) => step.type === "description")?.description;
}

function code(text: string): string {
  return `\`${text}\``;
}
