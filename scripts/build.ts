// Builds the executable, or with --all every release target, with checksums. The same tree gives the same bytes.
//   bun scripts/build.ts [--all] [--out FOLDER]
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
// `bunfig.toml`, `package.json` and `tsconfig.json` from being read (and run) by us.
const recipe = [
  "build",
  "--compile",
  "--minify",
  "--bytecode",
  "--splitting",
  "--format=esm",
  "--sourcemap=linked",
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
  const targetArgs = target === undefined ? [] : [`--target=${target}`];
  execFileSync(process.execPath, [...recipe, ...targetArgs, "src/main.ts", "--outfile", file], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
  // The maps are inside the executable; those beside it are of no use.
  for (const name of readdirSync(folder)) if (name.endsWith(".map")) rmSync(join(folder, name));
  return file;
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
