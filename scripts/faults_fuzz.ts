// Hostile files and a hostile model: SKILL.md and policy files by grammar and changed bytes, each read in bounded time, and
// sessions with a model that calls whatever it can.
import { chaosSession } from "../test/support/chaos.ts";
import { makeFuzzer } from "../test/support/fuzz.ts";
import type { FaultOptions, Finding } from "./faults.ts";

const longestMs = 250;

export async function* fuzzFaults({ nightly, seed }: FaultOptions): AsyncIterable<Finding> {
  const files = nightly ? 100_000 : 2000;
  const fuzzer = makeFuzzer();
  try {
    for (const kind of ["skill", "policy"] as const) {
      const faults: string[] = [];
      let slowest = 0;
      for (let n = 0; n < files; n++) {
        const first = await fuzzer[kind](seed + n);
        const { fault } = first;
        let { ms } = first;
        // Again: something else may have run on the machine.
        for (let again = 0; again < 5 && ms > longestMs; again++) {
          ms = Math.min(ms, (await fuzzer[kind](seed + n)).ms);
        }
        if (fault !== undefined) faults.push(`seed ${seed + n}: ${fault}`);
        else if (ms > longestMs) faults.push(`seed ${seed + n}: took ${Math.round(ms)} ms`);
        slowest = Math.max(slowest, ms);
      }
      yield {
        name: `${kind} files`,
        tried: files,
        faults,
        note: `the slowest took ${Math.round(slowest)} ms`,
      };
    }
  } finally {
    fuzzer.close();
  }
}

export async function* chaosFaults({ nightly, seed }: FaultOptions): AsyncIterable<Finding> {
  const sessions = nightly ? 2000 : 60;
  const faults: string[] = [];
  const total = { requests: 0, calls: 0, started: 0 };
  for (let n = 0; n < sessions; n++) {
    const report = await chaosSession(seed + n);
    faults.push(...report.faults.map((fault) => `seed ${seed + n}: ${fault}`));
    total.requests += report.requests;
    total.calls += report.calls;
    total.started += report.started;
  }
  const note = `${total.requests} requests, ${total.calls} calls, ${total.started} carried out`;
  yield { name: "sessions with a hostile model", tried: sessions, faults, note };
}
