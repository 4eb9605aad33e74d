// Builds the executable, or with --all every release target, with checksums. The same tree gives the same bytes. Beside each
// stands `writ.maps.json`, with which scripts/trace.ts reads the places of an error.
//   bun scripts/build.ts [--all] [--out FOLDER]
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";

const root = join(dirname(new URL(import.meta.url).pathname), "..");
const args = process.argv.slice(2);
const out = args.includes("--out") ? args[args.indexOf("--out") + 1] ?? "dist" : "dist";
const releases = [
  "bun-linux-x64",
  "bun-linux-x64-baseline",
  "bun-linux-x64-musl",
  "bun-linux-arm64",
  "bun-linux-arm64-musl",
  "bun-darwin-x64",
  "bun-darwin-arm64",
  "bun-windows-x64",
];

// Splitting keeps a lazy import lazy; bytecode spares the parse; the autoload flags keep a checkout's `.env`,
// `bunfig.toml`, `package.json` and `tsconfig.json` from being read (and run) by us. The condition picks the variant of the
// MCP client with the small JSON Schema validator (none of it is used); no other package knows it. Source maps stand beside
// the executable: inside, they are 2.7 MB that nobody runs.
const recipe = [
  "build",
  "--compile",
  "--minify",
  "--bytecode",
  "--splitting",
  "--format=esm",
  "--conditions=workerd",
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
  "--no-compile-autoload-tsconfig",
  "--no-compile-autoload-package-json",
  "--asset=./skills",
];

function build(target: string | undefined, folder: string): string {
  const name = target?.includes("windows") === true ? "writ.exe" : "writ";
  mkdirSync(folder, { recursive: true });
  const file = join(folder, name);
  compile(target, file, []);
  writeFileSync(join(folder, "writ.maps.json"), sourceMaps(target, name));
  return file;
}

function compile(target: string | undefined, file: string, more: readonly string[]): void {
  const targetArgs = target === undefined ? [] : [`--target=${target}`];
  execFileSync(process.execPath, [...recipe, ...more, ...targetArgs, "src/main.ts", "--outfile", file], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

// The parts have the same names with maps and without. The sources themselves are in the repository.
function sourceMaps(target: string | undefined, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), "writ-maps-"));
  try {
    compile(target, join(folder, name), ["--sourcemap=external"]);
    const files = readdirSync(folder).filter((f) => f.endsWith(".map")).sort();
    return JSON.stringify(Object.fromEntries(files.map((f) => {
      const { sourcesContent: _, ...map } = JSON.parse(readFileSync(join(folder, f), "utf8"));
      return [f.slice(0, -4), map];
    })));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function checksum(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

if (args.includes("--all")) {
  const lines = releases.map((target) => {
    const file = build(target, join(out, target.replace(/^bun-/, "")));
    console.log(`built ${file}`);
    return `${checksum(file)}  ${file.slice(out.length + 1)}`;
  });
  writeFileSync(join(out, "SHA256SUMS"), `${lines.join("\n")}\n`);
} else {
  console.log(`built ${build(undefined, out)}`);
}
