// Processes that are ended while they write a session, and what the next one finds.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { checkChain } from "../../src/store/chain.ts";
import { verifySession } from "../../src/store/verify.ts";
import { root } from "./runtimes.ts";

/** The program that writes, under the runtime that this process runs under. */
export function writerCommand(): readonly [string, ...string[]] {
  const script = join(root, "test/support/log_writer.ts");
  const deno = process.versions["deno"] !== undefined;
  return deno
    ? [process.execPath, "run", "-A", "--no-check", "--quiet", "--config", join(root, "deno.json"), script]
    : [process.execPath, script];
}

export type Written = {
  readonly code: number | null;
  readonly stderr: string;
  /** Seq → hash of what was acknowledged. */
  readonly acks: ReadonlyMap<number, string>;
  readonly safe: number;
  readonly failed: readonly string[];
  readonly done: boolean;
};

/** Reads what a writer said; a line that was cut off is none. */
export function readWriter(stdout: string, rest: Pick<Written, "code" | "stderr">): Written {
  const lines = stdout.split("\n").slice(0, -1).map((l) => l.split(" "));
  const of = (word: string) => lines.filter((l) => l[0] === word);
  return {
    ...rest,
    acks: new Map(of("ack").map((l) => [Number(l[1]), l[2] ?? ""])),
    safe: Math.max(0, ...of("safe").map((l) => Number(l[1]))),
    failed: of("failed").map((l) => l.slice(1).join(" ")),
    done: of("done").length > 0,
  };
}

/** Runs a writer; `killAfterMs` from the moment at which it has the session. */
export async function write(argv: readonly string[], killAfterMs?: number): Promise<Written> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (killAfterMs === undefined || timer !== undefined || !stdout.includes("open ")) return;
    timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject).on("close", resolve);
  });
  clearTimeout(timer);
  return readWriter(stdout, { code, stderr });
}

/** Acknowledged events that the log lacks or holds differently, and why it does not hold. */
export function losses(dir: string, id: string, acks: ReadonlyMap<number, string>): readonly string[] {
  const path = join(dir, id, "log.jsonl");
  const { events } = checkChain(readFileSync(path));
  const lost = [...acks].filter(([seq, hash]) => events[seq - 1]?.hash !== hash).map(([seq]) =>
    `event ${seq} was acknowledged and is not there`
  );
  return [...lost, ...verifySession(dir, { id, path }, {}).faults.map((f) => f.message)];
}

export type Crashes = {
  readonly kills: number;
  readonly acknowledged: number;
  readonly faults: readonly string[];
};

/** Ends a writer of one session so many times at moments that `seed` picks, each time resuming what it left. */
export async function crash(kills: number, seed: number): Promise<Crashes> {
  const dir = mkdtempSync(join(tmpdir(), "writ-crash-"));
  const random = sequence(seed);
  const faults: string[] = [];
  let acks = new Map<number, string>();
  let acknowledged = 0;
  // A new session now and then, so that one does not grow without end.
  const perSession = 20;
  try {
    for (let n = 0; n < kills; n++) {
      const id = `s${Math.floor(n / perSession)}`;
      if (n % perSession === 0) acks = new Map();
      const killed = await write([...writerCommand(), dir, id, "1000000"], random() * 25);
      for (const [seq, hash] of killed.acks) acks.set(seq, hash);
      acknowledged += killed.acks.size;
      // The next one finds what was acknowledged before it adds to it.
      const resumed = await write([...writerCommand(), dir, id, "1"]);
      for (const [seq, hash] of resumed.acks) acks.set(seq, hash);
      acknowledged += resumed.acks.size;
      if (!resumed.done) {
        faults.push(`kill ${n + 1}: the session does not go on: ${resumed.stderr || resumed.failed.at(-1)}`);
      }
      faults.push(...losses(dir, id, acks).map((f) => `kill ${n + 1}: ${f}`));
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return { kills, acknowledged, faults };
}

/** Numbers from 0 to below 1, the same for the same seed. */
export function sequence(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
