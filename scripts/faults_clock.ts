// Time that jumps by years between turns of one session: events are ordered by number, ids stay unique, nothing ends early.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { verifySession } from "../src/store/verify.ts";
import { withMachine } from "../test/support/machine.ts";
import { binary } from "../test/support/runtimes.ts";
import type { FaultOptions, Finding } from "./faults.ts";

export async function* clockFaults({ nightly }: FaultOptions): AsyncIterable<Finding> {
  if (spawnSync("faketime", ["--version"]).error !== undefined) {
    yield { name: "jumps of 400 days", skipped: "there is no faketime" };
    return;
  }
  if (!existsSync(binary)) {
    yield { name: "jumps of 400 days", skipped: "there is no dist/writ (bun scripts/build.ts)" };
    return;
  }
  yield await jumps(nightly ? 100 : 6);
}

async function jumps(turns: number): Promise<Finding> {
  const faults: string[] = [];
  await withMachine(async (m) => {
    m.write("replies.yaml", "- call: {read_file: {path: src/a.txt}}\n- text: done\n");
    const file = m.write("policy.yaml", "version: 1\nmodel: {provider: script, script: replies.yaml}\n");
    for (let turn = 0; turn < turns; turn++) {
      const days = [0, 400, -400][turn % 3] ?? 0;
      const how = turn === 0 ? [] : ["--continue"];
      const ran = await m.program([
        "faketime",
        "-f",
        `${days >= 0 ? "+" : ""}${days}d`,
        binary,
        "run",
        "--policy",
        file,
        ...how,
        "go",
      ]);
      if (ran.code !== 0) faults.push(`turn ${turn + 1} at ${days} days: ${ran.code}: ${ran.stderr}`);
    }
    const [id = "", ...others] = m.ids();
    if (others.length > 0) faults.push("a turn began a session of its own");
    const verdict = verifySession(m.sessions, { id, path: m.logPath(id) }, {});
    faults.push(...verdict.faults.map((f) => f.message));
    const calls = m.events(id).flatMap((e) => e.type === "tool.started" ? [e.data.call] : []);
    if (calls.length !== turns) faults.push(`${calls.length} calls of ${turns} turns`);
  });
  return { name: "jumps of 400 days", tried: turns, faults };
}
