// Started by a test: begins a long run, waits until it is up, and exits in the middle of it.
import { existsSync } from "node:fs";
import process from "node:process";
import { run } from "../../src/sandbox/subprocess.ts";

const [folder] = process.argv.slice(2);
const cwd = folder ?? ".";
const script =
  "(setsid bash -c 'echo $$ > far.tmp; mv far.tmp far; exec sleep 300' &); echo $$ > near; exec sleep 300";
run(["bash", "--noprofile", "--norc", "-c", script], {
  cwd,
  env: { PATH: process.env["PATH"] ?? "" },
  timeoutMs: 60_000,
  maxOutput: 100,
});
setInterval(() => {
  if (existsSync(`${cwd}/near`) && existsSync(`${cwd}/far`)) process.exit(7);
}, 5);
