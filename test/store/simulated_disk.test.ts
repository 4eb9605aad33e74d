// The disk that simulations run on keeps to what every store must do, and loses what it says that it loses.
import { test } from "bun:test";
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { LogFailure } from "../../src/agent/ports.ts";
import { createLog, resumeLog } from "../../src/store/session_log.ts";
import { ProcessEnded, simulatedDisk } from "../support/simulated_disk.ts";
import { draftOf, storeConformance } from "./conformance.ts";

for (const later of [false, true]) {
  storeConformance(later ? "a simulated disk that answers later" : "a simulated disk", async () => {
    const disk = simulatedDisk();
    return {
      open: async () => disk.open({ append: () => "done", sync: () => "done", later }),
      close: async () => {},
    };
  });
}

test("what no sync secured goes with the power, whole or in the middle of a line", async () => {
  const disk = simulatedDisk();
  const { log } = await createLog(disk.open(), "s1");
  log.append(draftOf("a"));
  await log.sync();
  log.append(draftOf("b"));
  disk.crash(0.5);
  assertThrows(() => log.append(draftOf("c")), ProcessEnded);
  const { events, recovered } = await resumeLog(disk.open(), "s1");
  assertEquals([events.length, (recovered?.bytes ?? 0) > 0], [1, true]);
});

test("appends and syncs fail, and processes end, when they are told to", async () => {
  const disk = simulatedDisk();
  const fates = ["done", "fails", "done", { torn: 0.5 }] as const;
  let next = 0;
  const store = disk.open({ append: () => fates[next++] ?? "done", sync: () => "fails" });
  const { log } = await createLog(store, "s1");
  assertEquals(log.append(draftOf("a")).seq, 1);
  assertThrows(() => log.append(draftOf("b")), LogFailure);
  assertEquals(log.append(draftOf("b")).seq, 2);
  await assertRejects(() => log.sync(), LogFailure);
  assertThrows(() => log.append(draftOf("c")), ProcessEnded);
  disk.crash(1);
  const { events, recovered } = await resumeLog(disk.open(), "s1");
  assertEquals([events.length, (recovered?.bytes ?? 0) > 0], [2, true]);
});
