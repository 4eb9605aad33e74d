// Time that jumps by 400 days, between turns of one session and in the middle of a run: events are ordered by number, ids stay
// unique, and no time limit ends early, late or never.
import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import type { Event } from "../src/core/event.ts";
import { verifySession } from "../src/store/verify.ts";
import { eventsOf, eventually, type Machine, type Running, withMachine } from "../test/support/machine.ts";
import { binary } from "../test/support/runtimes.ts";
import type { FaultOptions, Finding } from "./faults.ts";

const dayMs = 86_400_000;

export async function* clockFaults({ nightly, until }: FaultOptions): AsyncIterable<Finding> {
  const told = spawnSync("faketime", ["-f", "+0d", "sh", "-c", 'printf %s "$LD_PRELOAD"'], {
    encoding: "utf8",
  });
  if (told.error !== undefined) {
    yield { name: "jumps of 400 days", skipped: "there is no faketime" };
    return;
  }
  if (!existsSync(binary)) {
    yield { name: "jumps of 400 days", skipped: "there is no dist/writ (bun scripts/build.ts)" };
    return;
  }
  yield await betweenTurns(nightly ? 100 : 6, until);
  yield await withinRuns(nightly ? 10 : 1, until, told.stdout);
}

async function betweenTurns(turns: number, until: number): Promise<Finding> {
  const faults: string[] = [];
  let tried = 0;
  await withMachine(async (m) => {
    m.write("replies.yaml", "- call: {read_file: {path: src/a.txt}}\n- text: done\n");
    const file = m.write("policy.yaml", "version: 1\nmodel: {provider: script, script: replies.yaml}\n");
    const offsets: number[] = [];
    for (; tried < turns && Date.now() < until; tried++) {
      const days = [0, 400, -400][tried % 3] ?? 0;
      offsets.push(days * dayMs);
      const how = tried === 0 ? [] : ["--continue"];
      const offset = `${days >= 0 ? "+" : ""}${days}d`;
      const argv = ["faketime", "-f", offset, binary, "run", "--policy", file, ...how, "go"] as const;
      const ran = await m.program([...argv]);
      if (ran.code !== 0) faults.push(`turn ${tried + 1} at ${offset}: ${ran.code}: ${ran.stderr}`);
    }
    if (tried === 0) return;
    faults.push(...brokenIn(m));
    const messages = eventsOf(m.events(), "user.message");
    if (messages.length !== tried) faults.push(`${messages.length} turns of ${tried} are in the log`);
    // The program did see the other time.
    const seen = messages.map((e, i) => Date.parse(e.ts) - Date.now() - (offsets[i] ?? 0));
    if (seen.some((ms) => Math.abs(ms) > dayMs)) faults.push(`the clock was not set: ${seen}`);
  });
  return { name: "jumps of 400 days between turns", tried, faults };
}

// A command within its time, one that goes beyond it, and a limit of the whole turn, while the clock jumps ahead and back.
const policy = `version: 1
model: {provider: script, script: replies.yaml}
sandbox: {mode: "off"}
limits: {wall_time: 60s}
permissions: {allow: ["shell(sleep *)"]}
`;
const replies = `- call: {shell: {command: sleep 1}}
- call: {shell: {command: sleep 30, timeout: 2}}
- text: done
`;

async function withinRuns(rounds: number, until: number, library: string): Promise<Finding> {
  const faults: string[] = [];
  let round = 0;
  for (; round < rounds && Date.now() < until; round++) {
    await withMachine(async (m) => {
      const jumps = round % 2 === 0 ? ["+400d", "-400d"] : ["-400d", "+400d"];
      const clock = m.write("clock", "+0d\n");
      m.write("replies.yaml", replies);
      const file = m.write("policy.yaml", policy);
      const running = m.start(["run", "--policy", file, "go"], {
        env: {
          LD_PRELOAD: library,
          FAKETIME_TIMESTAMP_FILE: clock,
          FAKETIME_NO_CACHE: "1",
          // A clock that counts from the start of the machine never jumps.
          DONT_FAKE_MONOTONIC: "1",
        },
      });
      for (const [at, jump] of jumps.entries()) {
        await started(m, running, at + 1);
        writeFileSync(clock, `${jump}\n`);
      }
      const { code, stderr } = await running.ended;
      if (code !== 0) faults.push(`round ${round + 1}: ${code}: ${stderr}`);
      faults.push(...[...brokenIn(m), ...timingFaults(m.events())].map((f) => `round ${round + 1}: ${f}`));
    });
  }
  return { name: "jumps of 400 days while a command runs", tried: round, faults };
}

async function started(m: Machine, running: Running, calls: number): Promise<void> {
  let over = false;
  void running.ended.then(() => over = true);
  await eventually(() =>
    over || (m.ids().length > 0 && eventsOf(m.events(), "tool.started").length >= calls)
  );
}

function timingFaults(events: readonly Event[]): readonly string[] {
  const times = events.map((e) => Date.parse(e.ts));
  const span = Math.max(...times) - Math.min(...times);
  const ends = eventsOf(events, "tool.completed").map((e) => [e.data.ok, e.data.code, e.data.durationMs]);
  const [within, beyond] = eventsOf(events, "tool.completed").map((e) => e.data);
  return [
    ...(span > 700 * dayMs ? [] : [`the clock did not jump: ${span / dayMs} days`]),
    ...(within?.ok === true && beyond?.code === "timeout"
      ? []
      : [`the calls ended with ${JSON.stringify(ends)}`]),
    ...((within?.durationMs ?? 0) >= 990 && (beyond?.durationMs ?? 0) >= 1990 ? [] : [
      `a call ended early: ${JSON.stringify(ends)}`,
    ]),
    // The command itself takes 30 s: its limit ended it.
    ...((beyond?.durationMs ?? Infinity) < 25_000 ? [] : [`a call ended late: ${JSON.stringify(ends)}`]),
  ];
}

function brokenIn(m: Machine): readonly string[] {
  const [id = "", ...others] = m.ids();
  const events = m.events(id);
  return [
    ...(others.length > 0 ? ["a turn began a session of its own"] : []),
    ...verifySession(m.sessions, { id, path: m.logPath(id) }, {}).faults.map((f) => f.message),
    ...(events.every((e, i) => e.seq === i + 1) ? [] : ["events are not numbered in order"]),
  ];
}
