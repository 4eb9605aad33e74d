// Runs every golden scenario and says which logs differ; with --accept it rewrites them.
//   bun scripts/golden.ts [--accept] [NAME …]
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { root, runtimes, runWith } from "../test/support/runtimes.ts";

const accept = process.argv.includes("--accept");
const wanted = process.argv.slice(2).filter((a) => !a.startsWith("--"));
const folder = join(root, "test/golden");
const [bun] = runtimes;
let different = 0;
for (const name of readdirSync(folder).sort().filter((n) => wanted.length === 0 || wanted.includes(n))) {
  const file = join(folder, name, "events.jsonl");
  const ran = runWith(bun?.command ?? [], ["__scenario", join(folder, name, "scenario.yaml")]);
  if (ran.stderr !== "") console.error(`${name}: ${ran.stderr.trim()}`);
  const before = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (ran.stdout === before) continue;
  different++;
  if (accept) writeFileSync(file, ran.stdout);
  console.log(`${name}: ${accept ? "accepted" : "differs"}`);
}
console.log(different === 0 ? "golden: ok" : `golden: ${different} ${accept ? "accepted" : "differ"}`);
process.exitCode = different > 0 && !accept ? 1 : 0;
