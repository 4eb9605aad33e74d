// The one place where Writ starts a process: no shell, own group, own deadline, bounded output, nothing left behind.
import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { randomUUID } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf, messageOf } from "../core/thrown.ts";
import { beforeCut } from "../core/text.ts";
import { cappedText } from "./capped_text.ts";
import type { Environment } from "./environment.ts";
import { familyMark, familyOf, holdFamily, isFamilyAlive, signalFamily } from "./process_family.ts";
import { findProgram, type NoProgram } from "./program.ts";
import type { Box, EnclosedCall } from "../core/box_plan.ts";

export type RunOptions = {
  readonly cwd: string;
  readonly env: Environment;
  /** Absent: the program runs as Writ itself does. */
  readonly box?: Box;
  /** Absent: the child reads from /dev/null. */
  readonly stdin?: string | Uint8Array;
  readonly timeoutMs: number;
  /** Characters that are kept of each of stdout and stderr: half from the start, half from the end. */
  readonly maxOutput: number;
  /** Bytes after which a child that does not stop writing is stopped; 64 MiB unless said otherwise. */
  readonly maxRead?: number;
  readonly signal?: AbortSignal;
  /** From the polite signal to the other one; 2 s unless said otherwise. */
  readonly killGraceMs?: number;
};

export type RunFailure = {
  readonly code: NoProgram["code"] | "spawn_failed";
  readonly message: string;
};

export type RunResult = {
  /** Null when a signal ended it, or when it never started. */
  readonly exit: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly cancelled: boolean;
  /** Stopped because it wrote more than `maxRead`. */
  readonly flooded: boolean;
  /** Something is missing from the middle of stdout or stderr. */
  readonly cut: boolean;
  readonly durationMs: number;
  /** Protected files that it made and that were removed, and links that it changed and that were set right. */
  readonly removed: readonly string[];
  /** Set when it never started. */
  readonly failure?: RunFailure;
};

const defaultMaxRead = 64 * 1024 * 1024;
const defaultKillGraceMs = 2000;
/** How long output may still come after the child has gone, while something else holds its pipes. */
const drainMs = 150;

/**
 * Runs a program to its end and never throws for what the outside world does. A bare name is looked up on the PATH of
 * `env`. Whatever the program started is gone when this returns: on timeout and cancel after a polite signal and
 * a grace, after a normal end at once. Invalid UTF-8 becomes U+FFFD; characters are never split.
 */
export async function run(argv: readonly [string, ...string[]], options: RunOptions): Promise<RunResult> {
  const began = performance.now();
  const took = () => Math.round(performance.now() - began);
  if (options.signal?.aborted) return { ...nothing, cancelled: true, durationMs: 0 };
  const program = findProgram(argv[0], options);
  if (typeof program !== "string") return { ...nothing, failure: program, durationMs: took() };
  const mark = familyMark(randomUUID());
  const call = callOf(program, argv, options);
  const started = start(
    call,
    { ...options.env, [mark.name]: mark.value },
    options.stdin === undefined ? "none" : { given: options.stdin },
  );
  if ("code" in started) {
    call.leave("remove");
    return { ...nothing, failure: started, durationMs: took() };
  }
  const { child, exited } = started;
  const family = familyOf(child.pid ?? 0, mark);
  const release = holdFamily(family);
  try {
    const output = collect(child, options);
    const stop = stopReasons(options, output.flooded);
    const first = await Promise.race([exited, stop.reason]);
    stop.dispose();
    const reason = typeof first === "string" ? first : undefined;
    if (typeof first === "object" && "code" in first) {
      call.leave("remove");
      return { ...nothing, failure: first, durationMs: took() };
    }
    if (reason !== undefined) await endFamily(family, exited, options.killGraceMs ?? defaultKillGraceMs);
    // A child that the kernel cannot end, stuck on a dead disk, must not hold us.
    const last = await within(exited, 2000);
    const ended = last === undefined || "code" in last
      ? { exit: child.exitCode, signal: child.signalCode }
      : last;
    await within(output.closed, drainMs);
    await endFamily(family, exited, 0);
    await within(output.closed, drainMs);
    output.destroy();
    return {
      ...ended,
      ...output.text(reason === "flood"),
      timedOut: reason === "timeout",
      cancelled: reason === "cancel",
      flooded: reason === "flood",
      durationMs: took(),
      removed: call.leave("remove"),
    };
  } finally {
    release();
  }
}

export type OpenOptions = {
  readonly cwd: string;
  readonly env: Environment;
  readonly box?: Box;
  /** What it writes to stdout, as it comes. */
  onOutput(chunk: Uint8Array): void;
};

/** A program that runs until it ends or is ended, with pipes to talk over. */
export type OpenChild = {
  /** To its stdin; a child that does not read is no failure. */
  write(text: string): void;
  /** The last that it wrote to stderr. */
  errors(): string;
  /** It is gone, and all that it had started with it. */
  readonly ended: Promise<Ended | RunFailure>;
  /** Closes its stdin, and after a grace each asks politely and then ends the whole family. Resolves when nothing is left. */
  end(): Promise<void>;
};

const errorsKept = 4096;
const endGraceMs = 500;

/** Starts a program that stays. Never throws for what the outside world does; when Writ exits, its family is ended too. */
export function open(
  argv: readonly [string, ...string[]],
  options: OpenOptions,
): OpenChild | RunFailure {
  const program = findProgram(argv[0], options);
  if (typeof program !== "string") return program;
  const mark = familyMark(randomUUID());
  const call = callOf(program, argv, options);
  const started = start(call, { ...options.env, [mark.name]: mark.value }, "open");
  if ("code" in started) {
    call.leave("keep");
    return started;
  }
  const { child, exited } = started;
  const family = familyOf(child.pid ?? 0, mark);
  const release = holdFamily(family);
  let errors = "";
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  child.stdout?.on("data", (chunk: Uint8Array) => options.onOutput(chunk));
  child.stderr?.on("data", (chunk: Uint8Array) => {
    errors = (errors + decoder.decode(chunk, { stream: true })).slice(-errorsKept);
  });
  for (const stream of [child.stdout, child.stderr]) stream?.on("error", () => {});
  const closed = new Promise<void>((done) => child.once("close", () => done()));
  const ended = exited.then(async (end) => {
    await within(closed, drainMs);
    await endFamily(family, exited, 0);
    child.stdout?.destroy();
    child.stderr?.destroy();
    release();
    // While it ran others may have made these, Writ itself included.
    call.leave("keep");
    return end;
  });
  return {
    write: (text) => void child.stdin?.write(text),
    errors: () => errors,
    ended,
    async end() {
      child.stdin?.end();
      if (await within(exited, endGraceMs) === undefined) await endFamily(family, exited, endGraceMs);
      await within(ended, 2000);
    },
  };
}

/**
 * The same call with plain pipes for its streams. The runtimes connect children by sockets, and no program can open a
 * socket by name: `> /dev/stderr` fails. Costs a few milliseconds, so it is for calls that need it; bash must be there.
 */
export function throughPipes(argv: readonly string[]): readonly [string, ...string[]] {
  // Those who pass the output on outlive a polite signal, so that what is said because of it still arrives.
  const relay = "trap '' TERM; exec cat";
  const script = `exec "$@" < <(${relay}) > >(${relay}) 2> >(${relay} >&2)`;
  return ["bash", "--noprofile", "--norc", "-c", script, "bash", ...argv];
}

const nothing = {
  exit: null,
  signal: null,
  stdout: "",
  stderr: "",
  timedOut: false,
  cancelled: false,
  flooded: false,
  cut: false,
  removed: [],
} as const;

type Ended = { readonly exit: number | null; readonly signal: string | null };
type Exited = Promise<Ended | RunFailure>;

type Stdin = { readonly given: string | Uint8Array } | "none" | "open";

function callOf(
  program: string,
  argv: readonly string[],
  { cwd, box }: { readonly cwd: string; readonly box?: Box },
): EnclosedCall {
  const call = { program, argv, cwd };
  return box?.enclose(call) ?? { ...call, files: [], leave: () => [] };
}

function start(call: EnclosedCall, env: Environment, stdin: Stdin) {
  const { program, argv } = call;
  const files: number[] = [];
  let child: ChildProcess;
  try {
    for (const file of call.files) files.push(openSync(file, "r"));
    const stdio: StdioOptions = [stdin === "none" ? "ignore" : "pipe", "pipe", "pipe", ...files];
    child = spawn(program, argv.slice(1), {
      // As written, so that messages of the program are the same on every machine.
      argv0: argv[0],
      cwd: call.cwd,
      env,
      stdio,
      detached: true,
      windowsHide: true,
    });
  } catch (error) {
    return spawnFailure(program, error);
  } finally {
    for (const fd of files) closeSync(fd);
  }
  const exited: Exited = new Promise((done) => {
    child.once("error", (error) => done(spawnFailure(program, error)));
    child.once("exit", (exit, signal) => done({ exit, signal }));
  });
  // A child that does not read its input is no failure of ours.
  child.stdin?.on("error", () => {});
  if (typeof stdin === "object") child.stdin?.end(stdin.given);
  return { child, exited };
}

function spawnFailure(program: string, error: unknown): RunFailure {
  const code = codeOf(error);
  const message = messageOf(error);
  if (code === "ENOENT") {
    return { code: "not_found", message: `\`${program}\` cannot be started: ${message}` };
  }
  if (code === "EACCES") {
    return { code: "not_executable", message: `\`${program}\` may not be executed: ${message}` };
  }
  return { code: "spawn_failed", message: `\`${program}\` cannot be started: ${message}` };
}

function collect(child: ChildProcess, options: RunOptions) {
  const cap = options.maxRead ?? defaultMaxRead;
  let read = 0;
  let flood = () => {};
  const flooded = new Promise<"flood">((done) => flood = () => done("flood"));
  const streams = [child.stdout, child.stderr].map((stream) => {
    const text = cappedText(options.maxOutput);
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    // Taken as it comes and kept within the cap, so neither memory nor the pipe's back-pressure is a concern.
    stream?.on("data", (chunk: Uint8Array) => {
      text.add(decoder.decode(chunk, { stream: true }));
      if ((read += chunk.length) > cap) flood();
    });
    stream?.on("error", () => {});
    const closed = new Promise<void>((done) => {
      if (stream === null) done();
      stream?.once("end", done);
      stream?.once("close", done);
    });
    return { stream, closed, text, finish: () => text.add(decoder.decode()) };
  });
  return {
    flooded,
    closed: Promise.all(streams.map((s) => s.closed)),
    destroy: () => streams.forEach((s) => s.stream?.destroy()),
    text(stopped: boolean) {
      for (const s of streams) s.finish();
      const [stdout, stderr] = streams.map((s) => s.text.take());
      const told = (text = "") => stopped ? beforeCut(text) : text;
      return {
        stdout: told(stdout?.text),
        stderr: told(stderr?.text),
        cut: stdout?.cut === true || stderr?.cut === true,
      };
    },
  };
}

function stopReasons(options: RunOptions, flooded: Promise<"flood">) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let cancel = () => {};
  const late = new Promise<"timeout">((done) => timer = setTimeout(() => done("timeout"), options.timeoutMs));
  const cancelled = new Promise<"cancel">((done) => cancel = () => done("cancel"));
  options.signal?.addEventListener("abort", cancel, { once: true });
  return {
    reason: Promise.race([late, cancelled, flooded]),
    dispose() {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", cancel);
    },
  };
}

type Family = Parameters<typeof signalFamily>[0];

// The polite signal first, and SIGCONT with it: a stopped process could not hear it.
async function endFamily(family: Family, exited: Exited, graceMs: number): Promise<void> {
  if (graceMs > 0) {
    signalFamily(family, "SIGTERM");
    signalFamily(family, "SIGCONT");
    const until = performance.now() + graceMs;
    await within(exited, graceMs);
    while (performance.now() < until && isFamilyAlive(family)) await sleep(10);
  }
  // Each round ends what was there; what was forked meanwhile is met in the next.
  for (let round = 0; round < 100 && isFamilyAlive(family); round++) {
    signalFamily(family, "SIGKILL");
    await sleep(round < 5 ? 1 : 5);
  }
}

/** What the promise gave, or undefined when it was not in time. */
async function within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const timer = new AbortController();
  const timeout = sleep(ms, undefined, { signal: timer.signal }).catch(() => undefined);
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    timer.abort();
  }
}
