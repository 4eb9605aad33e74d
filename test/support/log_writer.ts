// A process that writes a session until it is done or ended, for tests of what a crash or a fault of the disk leaves.
//   log_writer.ts DIR ID TURNS [TRIES] [COMMAND]
// Every turn is four events and a sync. On standard output: `open EPOCH SEQ` when it has the session, `ack SEQ HASH` for every
// event that was appended, `safe SEQ` when a sync came back, `failed CODE` for what could not be written, and `done`.
// What failed is tried so many times [50]; COMMAND, for a shell, is run at each failure: it may make room.
import { spawnSync } from "node:child_process";
import { existsSync, writeSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { LogFailure } from "../../src/agent/ports.ts";
import { openFileLock } from "../../src/session/file_lock.ts";
import { fileStore } from "../../src/store/file_store.ts";
import { createLog, resumeLog, type SessionLog } from "../../src/store/session_log.ts";
import type { Draft } from "../../src/core/event.ts";

const [dir = "", id = "", turns = "0", tries = "50", command] = process.argv.slice(2);

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

function draftsOf(turn: number): readonly Draft[] {
  const at = { ts: new Date().toISOString(), session: id, turn };
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  return [
    { ...at, type: "user.message", data: { content: `turn ${turn}`, actor: "writer" } },
    { ...at, type: "model.delta", data: { text: "x".repeat((turn * 7919) % 3000) } },
    { ...at, type: "model.delta", data: { text: "汉字".repeat(turn % 40) } },
    { ...at, type: "turn.completed", data: { stopReason: "final", usage, denied: [] } },
  ];
}

async function open(): Promise<SessionLog> {
  const lock = await openFileLock();
  const store = fileStore({ dir, ...(lock === undefined ? {} : { lock }) });
  const there = existsSync(join(dir, id, "log.jsonl"));
  const { log, events } = there ? await resumeLog(store, id) : await createLog(store, id);
  say(`open ${events.length}`);
  return log;
}

async function takeTurn(log: SessionLog, turn: number): Promise<void> {
  let last = 0;
  for (const draft of draftsOf(turn)) {
    const event = log.append(draft);
    last = event.seq;
    say(`ack ${event.seq} ${event.hash}`);
  }
  await log.sync();
  say(`safe ${last}`);
}

/** Tries again, as the next turn of a chat would. */
async function persist<T>(work: () => Promise<T>): Promise<T> {
  for (let failures = 1;; failures++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof LogFailure)) throw error;
      say(`failed ${error.code}: ${error.message}`);
      if (failures === Number(tries)) process.exit(8);
      if (command !== undefined) spawnSync("sh", ["-c", command], { stdio: "ignore" });
    }
  }
}

const log = await persist(open);
for (let turn = 1; turn <= Number(turns); turn++) await persist(() => takeTurn(log, turn));
await log.close();
say("done");
