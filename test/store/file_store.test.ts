import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openFileLock } from "../../src/session/file_lock.ts";
import { LogFailure } from "../../src/agent/ports.ts";
import { fileStore } from "../../src/store/file_store.ts";
import { isSigned, readHead, signer } from "../../src/store/head_file.ts";
import { createLog, resumeLog } from "../../src/store/session_log.ts";
import { draftOf, sealed, storeConformance } from "./conformance.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "writ-store-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

for (const locked of [true, false]) {
  storeConformance(locked ? "files" : "files without a lock of the system", async () => {
    const top = mkdtempSync(join(tmpdir(), "writ-store-"));
    const lock = locked ? await openFileLock() : undefined;
    return {
      open: async () => fileStore({ dir: top, ...(lock === undefined ? {} : { lock }) }),
      close: async () => rmSync(top, { recursive: true, force: true }),
    };
  });
}

describe("fileStore()", () => {
  test("a session is for its owner only, and holds log and head", async () => {
    const store = fileStore({ dir });
    await store.create("s1");
    await store.release("s1", 1);
    assertEquals(readdirSync(join(dir, "s1")).sort(), ["head.json", "log.jsonl"]);
    const modes = ["s1", "s1/log.jsonl", "s1/head.json"].map((p) =>
      (statSync(join(dir, p)).mode & 0o777).toString(8)
    );
    assertEquals(modes, ["700", "600", "600"]);
  });

  test("a session that could not be made leaves nothing", async () => {
    const lock = () => false;
    await assertRejects(() => fileStore({ dir, lock }).create("s1"), LogFailure);
    assertEquals(readdirSync(dir), []);
  });

  test("where names say that nobody has it, the system's lock still counts", async () => {
    const lock = await openFileLock();
    if (lock === undefined) return;
    const store = fileStore({ dir, lock });
    await store.create("s1");
    // As a process of another container does, whose number here is that of nobody.
    for (const name of readdirSync(join(dir, "s1"))) {
      if (name.startsWith("lock.")) rmSync(join(dir, "s1", name));
    }
    const error = await assertRejects(() => fileStore({ dir, lock }).claim("s1"), LogFailure) as LogFailure;
    assertEquals(error.code, "session_busy");
    assertStringIncludes(error.message, "in a process that cannot be seen from here");
    await store.release("s1", 1);
    assertEquals((await fileStore({ dir, lock }).claim("s1")).epoch, 2);
  });

  test("the head is written when a turn has ended and is on disk, and at the end", async () => {
    const sign = signer("0123456789abcdef");
    const store = fileStore({ dir, sign });
    const { log } = await createLog(store, "s1");
    const head = () => readHead(join(dir, "s1"));
    const size = () => statSync(join(dir, "s1/log.jsonl")).size;
    log.append(draftOf("a"));
    await log.sync();
    assertEquals(head()?.seq, 0);
    const end = log.append(draftOf("", "turn.completed"));
    assertEquals(head()?.seq, 0);
    await log.sync();
    const atEnd = { session: "s1", epoch: 1, seq: 2, hash: end.hash, size: size() };
    assertEquals(head(), { ...atEnd, mac: sign(atEnd) });
    assertEquals(isSigned(sign, atEnd), false);
    const last = log.append(draftOf("b"));
    assertEquals(head()?.seq, 2);
    await log.close();
    assertEquals([head()?.seq, head()?.hash, head()?.size], [3, last.hash, size()]);
  });

  test("a log that was cut at the border of an event is refused and stays as it is", async () => {
    const store = fileStore({ dir });
    await store.create("s1");
    const made = sealed(["a", "b", "c"]);
    store.append("s1", 0, 1, made);
    await store.release("s1", 1);
    const path = join(dir, "s1/log.jsonl");
    const cut = readFileSync(path).subarray(0, -(made[2]?.line.length ?? 0));
    writeFileSync(path, cut);
    const error = await assertRejects(() => store.claim("s1"), LogFailure) as LogFailure;
    assertEquals(error.code, "log_damaged");
    assertStringIncludes(error.message, "log.jsonl:2: the log ends here, but its head names event 3");
    assertEquals(new Uint8Array(readFileSync(path)), new Uint8Array(cut));
  });

  test("a tail that was torn is cut, and what the head says is missing is counted", async () => {
    const store = fileStore({ dir });
    await store.create("s1");
    const made = sealed(["a", "b", "c", "d"]);
    store.append("s1", 0, 1, made);
    await store.release("s1", 1);
    const path = join(dir, "s1/log.jsonl");
    const whole = readFileSync(path);
    const two = made.slice(0, 2).reduce((sum, s) => sum + s.line.length, 0);
    writeFileSync(path, whole.subarray(0, two + 5));
    const claim = await store.claim("s1");
    assertEquals(claim.recovered, { bytes: 5, savedAs: `${path}.torn-${two}`, lost: 2 });
    assertEquals(readHead(join(dir, "s1"))?.seq, 2);
    await store.release("s1", claim.epoch);
    assertEquals((await store.claim("s1")).recovered, undefined);
  });

  test("a head that is empty, garbage or gone is no fault", async () => {
    const store = fileStore({ dir });
    await store.create("s1");
    store.append("s1", 0, 1, sealed(["a"]));
    await store.release("s1", 1);
    for (const text of ["", "{", "[]", '{"seq":"9"}']) {
      writeFileSync(join(dir, "s1/head.json"), text);
      const { epoch, events } = await store.claim("s1");
      assertEquals(events.length, 1);
      await store.release("s1", epoch);
      assertEquals(readHead(join(dir, "s1"))?.seq, 1);
    }
  });

  test("what is glued behind a torn write while nobody looks is damage, not a tail", async () => {
    const store = fileStore({ dir });
    const { log } = await createLog(store, "s1");
    log.append(draftOf("a"));
    await log.close();
    const path = join(dir, "s1/log.jsonl");
    appendFileSync(path, `{"seq":2,"ts${readFileSync(path, "utf8")}`);
    const error = await assertRejects(() => resumeLog(store, "s1"), LogFailure) as LogFailure;
    assertStringIncludes(error.message, "log.jsonl:2: ");
  });
});
