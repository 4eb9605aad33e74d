// Tables of the documents that are made from the code: `<!-- table: NAME -->` to `<!-- end -->`.
//   bun scripts/docs.ts            writes them
//   bun scripts/docs.ts --check    says which are out of date, and exits 1 if any is
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { exitCodes, exitMeanings, type ExitName, stopTable } from "../src/core/outcome.ts";
import { notInThisVersion } from "../src/load/policy_keys.ts";
import { operationRows, problemRows } from "./docs_http.ts";
import { policyKeyRows, ruleKeyRows, shippedSetLines, toolRows } from "./docs_policy.ts";

const root = join(dirname(new URL(import.meta.url).pathname), "..");
const helpFolder = join(root, "src/cli/help");
const check = process.argv.includes("--check");

const tables: { readonly [name: string]: () => string } = {
  "exit-codes": () =>
    table(
      ["Code", "When"],
      (Object.keys(exitCodes) as ExitName[]).map((name) => [String(exitCodes[name]), exitMeanings[name]]),
    ),
  "stop-reasons": () =>
    table(["Reason", "Exit code"], stopTable().map(({ stop, code }) => [`\`${stop}\``, String(code)])),
  events: () => table(["Type", "Data"], eventRows()),
  "policy-keys": () => table(["Key", "Value", "Default", "Meaning"], policyKeyRows()),
  "rule-keys": () => table(["Key", "Value", "Meaning"], ruleKeyRows()),
  "shipped-sets": shippedSetLines,
  tools: () => table(["Tool", "Arguments", "Risk", "Specifier of a rule", "Enabled"], toolRows()),
  "http-operations": () => table(["Operation", "Role", "Meaning"], operationRows()),
  "http-problems": () => table(["Status", "Code", "Meaning"], problemRows()),
  "policy-not-yet": () =>
    notInThisVersion.map(({ path, when }) =>
      `\`${path.replaceAll(".*", "[]")}\`${when === undefined ? "" : " (some values)"}`
    ).join(", "),
};

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((c) => c.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

// Types are gone at run time, so the event table is read from the one place where events are declared.
function eventRows(): readonly (readonly string[])[] {
  const text = readFileSync(join(root, "src/core/event.ts"), "utf8");
  const body = /export type EventData = \{\n([\s\S]*?)\n\};/.exec(text)?.[1] ?? "";
  const starts = [...body.matchAll(/^ {2}"([a-z_.]+)":/gm)];
  return starts.map((start, index) => {
    const block = body.slice(start.index, starts[index + 1]?.index ?? body.length);
    const own = [...block.matchAll(/^ {4}readonly (\w+\??):/gm)].map((m) => m[1] ?? "");
    const names = own.length > 0 ? own : [...block.matchAll(/readonly (\w+\??):/g)].map((m) => m[1] ?? "");
    // `& NAME` joins the members of a type beside it.
    const joined = [...block.matchAll(/& (\w+)/g)].flatMap(([, type = ""]) => membersOf(text, type));
    const shown = /SessionFacts/.test(block)
      ? "version, policy, layers, provider, model, workspace, cwd, platform, sandbox, trust, actor"
      : [...new Set([...names, ...joined])].join(", ");
    return [`\`${start[1]}\``, shown];
  });
}

// Of a union the members of all alternatives, save those of what they hold.
function membersOf(text: string, type: string): readonly string[] {
  const body = new RegExp(`export type ${type} =([\\s\\S]*?);\\n\\n`).exec(text)?.[1];
  if (body === undefined) throw new Error(`src/core/event.ts: no type \`${type}\` to join`);
  return [...body.matchAll(/readonly (\w+\??):/g)].map((m) => m[1] ?? "");
}

let stale = 0;
const files = [...readdirSync(helpFolder).map((f) => join(helpFolder, f)), join(root, "README.md")];
for (const file of files) {
  const text = readFileSync(file, "utf8");
  const next = text.replace(
    /(<!-- table: ([a-z-]+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, open: string, name: string, close: string) => {
      const make = tables[name];
      if (make === undefined) throw new Error(`${file}: no table \`${name}\``);
      return `${open}${make()}\n${close}`;
    },
  );
  if (next === text) continue;
  stale++;
  if (check) console.error(`${file.slice(root.length + 1)}: a table is out of date; run bun scripts/docs.ts`);
  else writeFileSync(file, next);
}
console.log(
  check ? (stale === 0 ? "docs: ok" : `docs: ${stale} files out of date`) : `docs: wrote ${stale} files`,
);
process.exitCode = check && stale > 0 ? 1 : 0;
