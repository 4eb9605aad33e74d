// The one entry: hands the machine to the command line and ends the process with its code.
import process from "node:process";

// A process that is about to confine itself loads no more than it needs for that.
process.exitCode = process.argv[2] === "__sandbox"
  ? await (await import("./sandbox/landlock_helper.ts")).becomeConfined(process.argv.slice(3))
  : await (await import("./cli/run.ts")).runCli();
// Handles that outlive their use (a pipe that never ends, a socket kept alive) must not keep a finished run.
process.exit();
