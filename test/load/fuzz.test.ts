import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import process from "node:process";
import { type Fuzzed, makeFuzzer } from "../support/fuzz.ts";

// A share of what `scripts/faults fuzz` does; FUZZ_FILES=N tries more.
const files = Number(process.env["FUZZ_FILES"] ?? 1000);

for (const kind of ["skill", "policy"] as const) {
  test(`no ${kind} file crashes its reader: ${files} made by grammar and by changed bytes`, async () => {
    const fuzzer = makeFuzzer();
    try {
      let taken = 0;
      for (let seed = 1; seed <= files; seed++) {
        const { fault, text, ...rest }: Fuzzed = await fuzzer[kind](seed);
        assertEquals(fault, undefined, `seed ${seed}: ${fault}\n${JSON.stringify(text.slice(0, 500))}`);
        if (rest.taken) taken++;
      }
      // Some get through the whole of it, and most do not.
      assert(taken > 0 && taken < files, `${taken} of ${files} were taken`);
    } finally {
      fuzzer.close();
    }
  });
}
