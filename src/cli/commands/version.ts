// `writ version`: what this executable is.
import process from "node:process";
import type { CommandModule } from "../command.ts";
import { exitCodes } from "../../core/outcome.ts";
import { version } from "../../session/version.ts";
import { toJsonLine } from "../json_line.ts";

export const versionCommand: CommandModule = {
  define(command, { host, output }, done) {
    command.description("print the version").option("--json", "with the runtime, as JSON").action(
      ({ json }) => {
        const runtime = { bun: process.versions["bun"] ?? null, deno: process.versions["deno"] ?? null };
        const whole = { version, platform: host.platform, ...runtime, policyVersion: 1 };
        output.result(json === true ? toJsonLine(whole) : `writ ${version}\n`);
        done(exitCodes.done);
      },
    );
  },
};
