// The places of an error in the executable, as places in the source. Reads the lines that Writ printed.
//   bun scripts/trace.ts [FILE.maps.json] < LINES
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";

type Maps = { readonly [file: string]: ConstructorParameters<typeof SourceMap>[0] };

const root = join(dirname(new URL(import.meta.url).pathname), "..");
const maps: Maps = JSON.parse(readFileSync(process.argv[2] ?? join(root, "dist/writ.maps.json"), "utf8"));
const made = new Map<string, SourceMap>();

function placeOf(file: string, line: number, column: number): string | undefined {
  const payload = maps[file];
  if (payload === undefined) return undefined;
  const map = made.get(file) ?? new SourceMap(payload);
  made.set(file, map);
  const entry = map.findEntry(line - 1, column - 1);
  return "originalSource" in entry
    ? `${entry.originalSource.replace(/^(\.\.\/)+/, "")}:${entry.originalLine + 1}:${
      entry.originalColumn + 1
    }`
    : undefined;
}

const lines = readFileSync(0, "utf8").replace(
  /\/\$bunfs\/root\/([\w.-]+):(\d+):(\d+)/g,
  (whole, file: string, line: string, column: string) => placeOf(file, Number(line), Number(column)) ?? whole,
);
process.stdout.write(lines);
