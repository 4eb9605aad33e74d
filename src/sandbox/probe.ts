// A hostile command in a box, for real: whether this machine's walls hold is tried before anything is trusted to them.
import { randomUUID } from "node:crypto";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import process from "node:process";
import type { Box } from "../core/box_plan.ts";
import type { Environment } from "./environment.ts";
import { run } from "./subprocess.ts";

/** `holes`: what it could do and must not; `failure`: it did not run at all. */
export type Probe = { readonly holes: readonly string[]; readonly failure?: string };

/**
 * Tries to read and to write in `outside`, a folder that the box must not reach, to connect to this machine, and to reach this
 * very process. Never rejects.
 */
export async function probe(
  box: Box,
  at: { readonly cwd: string; readonly outside: string; readonly env: Environment },
): Promise<Probe> {
  const id = randomUUID();
  const canary = join(at.outside, `canary-${id}`);
  const made = join(at.outside, `made-${id}`);
  const server = await listen();
  let connected = false;
  server?.on("connection", (socket) => {
    connected = true;
    socket.destroy();
  });
  try {
    writeFileSync(canary, `${id}\n`, { mode: 0o600 });
    const result = await run(["bash", "--noprofile", "--norc", "-c", "--", hostile, "probe", ...[
      canary,
      made,
      String(process.pid),
      server === undefined ? "" : String(portOf(server)),
    ]], { cwd: at.cwd, env: at.env, box, timeoutMs: 10_000, maxOutput: 2000 });
    const said = result.stdout.split("\n");
    if (!said.includes("tried")) {
      const why = result.failure?.message ??
        (result.timedOut ? "it took too long" : result.stderr.trim().split("\n").at(-1) ?? "");
      return { holes: [], failure: why === "" ? `exit ${result.exit}` : why };
    }
    return {
      holes: [
        ...(said.some((line) => line.includes(id)) ? ["it read a file outside"] : []),
        ...(existsSync(made) ? ["it wrote a file outside"] : []),
        ...(connected ? ["it opened a connection"] : []),
        ...(said.includes("signal") ? ["it could send a signal to another process"] : []),
        ...(said.includes("environment") ? ["it read the environment of another process"] : []),
      ],
    };
  } catch (error) {
    return { holes: [], failure: error instanceof Error ? error.message : String(error) };
  } finally {
    server?.close();
    for (const path of [canary, made]) rmSync(path, { force: true });
  }
}

// In a box with processes of its own a low number may be that of the command itself.
const hostile = `exec 2>/dev/null
while read -r line; do echo "$line"; done < "$1"
echo x > "$2"
if [ "$3" -gt 99 ]; then
  kill -0 "$3" && echo signal
  while read -r -d "" line; do echo environment; break; done < "/proc/$3/environ"
fi
[ -n "$4" ] && exec 3<>"/dev/tcp/127.0.0.1/$4"
echo tried`;

async function listen(): Promise<Server | undefined> {
  const server = createServer();
  return await new Promise((done) => {
    server.once("error", () => done(undefined));
    server.listen(0, "127.0.0.1", () => done(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
