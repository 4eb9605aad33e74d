// What every driver of src/store/store.ts must do, as tests: a driver's own test file calls `storeConformance` with a way to
// have an empty one.
import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { LogFailure } from "../../src/agent/ports.ts";
import type { Draft, Event } from "../../src/core/event.ts";
import { noEvents, sealEvent, type Tip } from "../../src/store/chain.ts";
import type { Sealed, Store } from "../../src/store/store.ts";

export type StoreSite = {
  /** The store, as a process that starts now sees it: another value each time, the same sessions. */
  open(): Promise<Store>;
  close(): Promise<void>;
};

export function draftOf(text: string, type: "model.delta" | "turn.completed" = "model.delta"): Draft {
  const at = { ts: "2026-01-01T00:00:00.000Z", session: "s1", turn: 1 };
  if (type === "model.delta") return { ...at, type, data: { text } };
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  return { ...at, type, data: { stopReason: "final", usage, denied: [] } };
}

/** Sealed events that follow each other, and what they follow. */
export function sealed(texts: readonly string[], after: Tip = noEvents): readonly Sealed[] {
  const made: Sealed[] = [];
  for (const text of texts) {
    const tip = made.at(-1)?.event ?? after;
    made.push(sealEvent(draftOf(text), tip.seq + 1, tip.hash));
  }
  return made;
}

function eventsOf(made: readonly Sealed[]): readonly Event[] {
  return made.map((s) => s.event);
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return (await assertRejects(() => work, LogFailure) as LogFailure).code;
}

export function storeConformance(name: string, make: () => Promise<StoreSite>): void {
  describe(`${name} as a store`, () => {
    let site: StoreSite;
    let store: Store;
    beforeEach(async () => {
      site = await make();
      store = await site.open();
    });
    afterEach(() => site.close());

    test("a new session is empty and claimed", async () => {
      assertEquals(await store.create("s1"), { epoch: 1, events: [] });
      assertEquals(await store.read("s1", 0, 10), []);
      assertEquals(await codeOf((await site.open()).claim("s1")), "session_busy");
      assertEquals(await store.renew("s1", 1), true);
    });

    test("there is no session but those that were made, and none is made twice", async () => {
      for (const id of ["s1", "../s1", "", "a/b", "."]) {
        assertEquals(await codeOf(store.claim(id)), "no_session");
      }
      assertEquals(await codeOf(store.read("s1", 0, 1)), "no_session");
      await store.create("s1");
      const made = sealed(["a"]);
      await store.append("s1", 0, 1, made);
      await store.release("s1", 1);
      await assertRejects(() => store.create("s1"), LogFailure);
      assertEquals(await store.read("s1", 0, 10), eventsOf(made));
    });

    test("append takes all of the events, behind the expected one", async () => {
      await store.create("s1");
      const made = sealed(["a", "b 汉字", "c".repeat(300_000), "d"]);
      assertEquals(await store.append("s1", 0, 1, made.slice(0, 1)), { kind: "appended", seq: 1 });
      assertEquals(await store.append("s1", 1, 1, made.slice(1)), { kind: "appended", seq: 4 });
      await store.sync("s1", 1);
      assertEquals(await (await site.open()).read("s1", 0, 10), eventsOf(made));
      assertEquals(await store.read("s1", 1, 2), eventsOf(made.slice(1, 3)));
      assertEquals(await store.read("s1", 4, 2), []);
    });

    test("append refuses what follows another event than the last, and writes nothing of it", async () => {
      await store.create("s1");
      const made = sealed(["a", "b"]);
      await store.append("s1", 0, 1, made.slice(0, 1));
      for (const expected of [0, 2]) {
        assertEquals(await store.append("s1", expected, 1, made), { kind: "conflict", lastSeq: 1 });
      }
      assertEquals(await store.read("s1", 0, 10), eventsOf(made.slice(0, 1)));
    });

    test("appends that are not waited for take effect in their order", async () => {
      await store.create("s1");
      const made = sealed(Array.from({ length: 20 }, (_, i) => `event ${i}`));
      const answers = made.map((one, i) => store.append("s1", i, 1, [one]));
      assertEquals(
        await Promise.all(answers),
        made.map((_, i) => ({ kind: "appended" as const, seq: i + 1 })),
      );
      assertEquals(await store.read("s1", 0, 100), eventsOf(made));
    });

    test("a claim sees what was recorded, under a higher epoch, and fences the one before", async () => {
      await store.create("s1");
      const made = sealed(["a", "b", "c"]);
      await store.append("s1", 0, 1, made.slice(0, 1));
      await store.release("s1", 1);
      assertEquals(await store.renew("s1", 1), false);
      assertEquals(await store.append("s1", 1, 1, made.slice(1, 2)), { kind: "fenced", epoch: 1 });

      const other = await site.open();
      const claim = await other.claim("s1");
      assertEquals(claim, { epoch: 2, events: eventsOf(made.slice(0, 1)) });
      assertEquals(await store.append("s1", 1, 1, made.slice(1, 2)), { kind: "fenced", epoch: 2 });
      // A release that comes late takes nothing from who has it now.
      await store.release("s1", 1);
      assertEquals(await other.append("s1", 1, 2, made.slice(1, 2)), { kind: "appended", seq: 2 });
      await other.release("s1", 2);

      assertEquals((await store.claim("s1")).epoch, 3);
      assertEquals(await store.append("s1", 2, 2, made.slice(2)), { kind: "fenced", epoch: 3 });
      assertEquals(await store.append("s1", 2, 3, made.slice(2)), { kind: "appended", seq: 3 });
      assertEquals(await other.read("s1", 0, 10), eventsOf(made));
    });

    test("of many claims at once one wins", async () => {
      await store.create("s1");
      await store.release("s1", 1);
      const stores = await Promise.all(Array.from({ length: 5 }, () => site.open()));
      const claims = await Promise.allSettled(stores.map((s) => s.claim("s1")));
      assertEquals(claims.filter((c) => c.status === "fulfilled").length, 1);
    });

    test("a tail gives every event once and in order, from where it is asked, until it is ended", async () => {
      await store.create("s1");
      const made = sealed(Array.from({ length: 30 }, (_, i) => `event ${i}`));
      await store.append("s1", 0, 1, made.slice(0, 10));
      const stop = new AbortController();
      const seen: Event[] = [];
      const reader = await site.open();
      const reading = (async () => {
        for await (const event of reader.tail("s1", 4, stop.signal)) {
          seen.push(event);
          if (event.seq === 30) stop.abort();
        }
      })();
      for (let at = 10; at < 30; at++) {
        await store.append("s1", at, 1, made.slice(at, at + 1));
        if (at % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      }
      await reading;
      assertEquals(seen, eventsOf(made.slice(4)));
    });

    test("a session that was removed is gone, and its id is free", async () => {
      await store.create("s1");
      await store.append("s1", 0, 1, sealed(["a"]));
      assertEquals(await codeOf((await site.open()).remove("s1", 1)), "session_busy");
      await store.remove("s1", 1);
      assertEquals(await codeOf(store.claim("s1")), "no_session");
      const again = await store.create("s1");
      assertEquals(again.events, []);
      assert(again.epoch >= 1);
    });
  });
}
