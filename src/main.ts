// The one entry: hands the machine to the command line and ends the process with its code.
import process from "node:process";
import { runCli } from "./cli/run.ts";

process.exitCode = await runCli();
// Handles that outlive their use (a pipe that never ends, a socket kept alive) must not keep a finished run.
process.exit();
