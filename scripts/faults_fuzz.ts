// Hostile files and a hostile model: SKILL.md and policy files by grammar and changed bytes, each read in bounded time, and
// sessions with a model that calls whatever it can.
import process from "node:process";
import { chaosSession } from "../test/support/chaos.ts";
import { makeFuzzer } from "../test/support/fuzz.ts";
import type { FaultOptions, Finding } from "./faults.ts";

const longestMs = 250;

type Read = { readonly fault?: string; readonly ms: number };

// What other processes of the machine do must not count: the shorter of the time that passed and the time that was computed.
async function timed(read: () => Read | Promise<Read>): Promise<Read> {
  const before = process.cpuUsage();
  const { ms, ...rest } = await read();
  const { user, system } = process.cpuUsage(before);
  return { ...rest, ms: Math.min(ms, (user + system) / 1000) };
}

export async function* fuzzFaults({ nightly, seed, until }: FaultOptions): AsyncIterable<Finding> {
  const files = nightly ? 100_000 : 2000;
  const fuzzer = makeFuzzer();
  try {
    for (const kind of ["skill", "policy"] as const) {
      const faults: string[] = [];
      let slowest = 0;
      let n = 0;
      for (; n < files && Date.now() < until; n++) {
        const read = () => fuzzer[kind](seed + n);
        const first = await timed(read);
        const { fault } = first;
        let { ms } = first;
        // Again: the least of several is what the file itself takes.
        for (let again = 0; again < 5 && ms > longestMs; again++) ms = Math.min(ms, (await timed(read)).ms);
        if (fault !== undefined) faults.push(`seed ${seed + n}: ${fault}`);
        else if (ms > longestMs) faults.push(`seed ${seed + n}: took ${Math.round(ms)} ms`);
        slowest = Math.max(slowest, ms);
      }
      yield {
        name: `${kind} files`,
        tried: n,
        faults,
        note: `the slowest took ${Math.round(slowest)} ms`,
      };
    }
  } finally {
    fuzzer.close();
  }
}

export async function* chaosFaults({ nightly, seed, until }: FaultOptions): AsyncIterable<Finding> {
  const sessions = nightly ? 2000 : 60;
  const faults: string[] = [];
  const total = { requests: 0, calls: 0, started: 0 };
  let n = 0;
  for (; n < sessions && Date.now() < until; n++) {
    const report = await chaosSession(seed + n);
    faults.push(...report.faults.map((fault) => `seed ${seed + n}: ${fault}`));
    total.requests += report.requests;
    total.calls += report.calls;
    total.started += report.started;
  }
  const note = `${total.requests} requests, ${total.calls} calls, ${total.started} carried out`;
  yield { name: "sessions with a hostile model", tried: n, faults, note };
}
