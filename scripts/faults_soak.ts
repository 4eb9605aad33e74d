// Turn after turn in one process: what it holds of memory, open files and timers stays the same.
import { existsSync, readdirSync } from "node:fs";
import process from "node:process";
import { calls, makeSite, openLive, says } from "../test/support/skill_session.ts";
import type { FaultOptions, Finding } from "./faults.ts";

const perSession = 25;
const policy = `version: 1
model: {provider: script}
skills: {forced: [{skill: commit, when: session}]}
`;
const name = "turns in one process";
/** Below which two halves of them say nothing of a slope. */
const fewestSessions = 8;
/** Two halves of a run may differ by so much: what is collected is not collected at once. */
const mostGrowthMb = 48;

export async function* soakFaults({ nightly, until }: FaultOptions): AsyncIterable<Finding> {
  const turns = nightly ? 100_000 : 750;
  const site = makeSite(policy);
  site.put("ws/a.txt", "one\ntwo\n");
  const held: Held[] = [];
  let done = 0;
  let failed = 0;
  try {
    while (done < turns && Date.now() < until) {
      const replies = Array.from({ length: perSession }, () => [
        calls("read_file", { path: "a.txt" }),
        calls("search_text", { pattern: "two" }),
        says("done"),
      ]).flat();
      const live = await openLive(site, replies);
      for (let n = 0; n < perSession; n++) if (await live.turn("go") !== "done") failed++;
      await live.session.close();
      site.drop(`home/.local/state/writ/sessions/${live.session.id}`);
      done += perSession;
      held.push(now());
    }
  } finally {
    site.remove();
  }
  if (held.length < fewestSessions) {
    yield { name, skipped: `no time for the ${fewestSessions} sessions that show a slope` };
    return;
  }
  // The first sessions bring in what stays.
  const settled = held.slice(Math.floor(held.length / 4));
  const half = Math.floor(settled.length / 2);
  const [first, second] = [settled.slice(0, half), settled.slice(half)].map((part) => ({
    mb: Math.min(...part.map((h) => h.mb)),
    files: Math.min(...part.map((h) => h.files)),
    timers: Math.min(...part.map((h) => h.timers)),
  }));
  const grown = {
    mb: Math.round((second?.mb ?? 0) - (first?.mb ?? 0)),
    files: (second?.files ?? 0) - (first?.files ?? 0),
    timers: (second?.timers ?? 0) - (first?.timers ?? 0),
  };
  const faults = [
    ...(failed === 0 ? [] : [`${failed} turns did not end well`]),
    ...(grown.mb <= mostGrowthMb ? [] : [`memory grew by ${grown.mb} MB`]),
    ...(grown.files <= 0 ? [] : [`${grown.files} more files are open`]),
    ...(grown.timers <= 0 ? [] : [`${grown.timers} more timers run`]),
  ];
  const note = `memory ${grown.mb >= 0 ? "+" : ""}${grown.mb} MB from one half to the other, ${
    Math.round(second?.mb ?? 0)
  } MB at least; ${second?.files} files open`;
  yield { name, tried: done, faults, note };
}

type Held = { readonly mb: number; readonly files: number; readonly timers: number };

function now(): Held {
  return {
    mb: process.memoryUsage().rss / 1e6,
    files: existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd").length : 0,
    timers: process.getActiveResourcesInfo().filter((name) => name === "Timeout").length,
  };
}
