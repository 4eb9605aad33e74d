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
  /** How many events it found; undefined: it never had the session. */
  readonly opened: number | undefined;
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
    opened: of("open").map((l) => Number(l[1]))[0],
    acks: new Map(of("ack").map((l) => [Number(l[1]), l[2] ?? ""])),
    safe: Math.max(0, ...of("safe").map((l) => Number(l[1]))),
    failed: of("failed").map((l) => l.slice(1).join(" ")),
    done: of("done").length > 0,
  };
}

/** Runs a writer; it is ended by SIGKILL so long after it was started, or after it has the session. */
export async function write(
  argv: readonly string[],
  kill?: { readonly afterMs: number; readonly from: "start" | "open" },
): Promise<Written> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const arm = () => timer ??= setTimeout(() => child.kill("SIGKILL"), kill?.afterMs);
  if (kill?.from === "start") arm();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (kill !== undefined && stdout.includes("open ")) arm();
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
  return [...lost(path, acks), ...verifySession(dir, { id, path }, {}).faults.map((f) => f.message)];
}

function lost(path: string, acks: ReadonlyMap<number, string>): readonly string[] {
  const { events, damage } = checkChain(readFileSync(path));
  return [
    ...[...acks].filter(([seq, hash]) => events[seq - 1]?.hash !== hash).map(([seq]) =>
      `event ${seq} was acknowledged and is not there`
    ),
    ...(damage === undefined ? [] : [`line ${damage.line}: ${damage.message}`]),
  ];
}

export type Crashes = {
  readonly kills: number;
  readonly acknowledged: number;
  readonly faults: readonly string[];
};

// A new session now and then, so that one does not grow without end.
const perSession = 20;

/**
 * Ends a writer so many times at moments that `seed` picks, or until `until` (milliseconds since 1970); each one goes on where the
 * one before was ended. Each session is ended well at last, and verified.
 */
export async function crash(kills: number, seed: number, until = Infinity): Promise<Crashes> {
  const dir = mkdtempSync(join(tmpdir(), "writ-crash-"));
  const random = sequence(seed);
  const faults: string[] = [];
  let acks = new Map<number, string>();
  let acknowledged = 0;
  let done = 0;
  const writeOn = async (id: string, turns: string, kill?: Parameters<typeof write>[1]) => {
    const expected = Math.max(0, ...acks.keys());
    const next = await write([...writerCommand(), dir, id, turns], kill);
    if (next.opened === undefined && kill?.from === "start") return [];
    if (next.opened === undefined) {
      return [`the session does not go on: ${next.stderr || next.failed.at(-1)}`];
    }
    for (const [seq, hash] of next.acks) acks.set(seq, hash);
    acknowledged += next.acks.size;
    return next.opened >= expected ? [] : [`of ${expected} events ${next.opened} were found`];
  };
  try {
    for (let id = 0; done < kills && Date.now() < until; id++) {
      const session = `s${id}`;
      acks = new Map();
      for (let n = 0; n < perSession && done < kills && Date.now() < until; n++, done++) {
        // Some while they still start, or mend what the one before left.
        const early = n > 0 && random() < 0.2;
        const found = await writeOn(session, "1000000", {
          afterMs: random() * (early ? 80 : 25),
          from: early ? "start" as const : "open" as const,
        });
        found.push(...lost(join(dir, session, "log.jsonl"), acks));
        faults.push(...found.map((f) => `kill ${done + 1}: ${f}`));
      }
      const found = [...await writeOn(session, "1"), ...losses(dir, session, acks)];
      faults.push(...found.map((f) => `after kill ${done}: ${f}`));
      rmSync(join(dir, session), { recursive: true, force: true });
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return { kills: done, acknowledged, faults };
}

/** Numbers from 0 to below 1, the same for the same seed. */
export function sequence(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
