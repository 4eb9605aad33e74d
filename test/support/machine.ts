// A machine of its own for a test of the executable: home, state, configuration and a git repository in a folder that goes
// with the test. Nothing of the real user reaches the program.
import { assert, assertEquals } from "@std/assert";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import type { Event, EventOf, EventType } from "../../src/core/event.ts";
import { checkChain } from "../../src/store/chain.ts";
import { listSessions } from "../../src/store/session_files.ts";
import { binary } from "./runtimes.ts";

export type Env = { readonly [name: string]: string };
export type Ended = {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
};
export type StartOptions = {
  /** Where it runs [the repository]. */
  readonly cwd?: string;
  /** On top of the machine's own; an empty text unsets nothing. */
  readonly env?: Env;
  /** Given and closed; `open` gives a pipe that stays open and silent [nothing to read]. */
  readonly input?: string | { readonly open: true };
};
export type Running = {
  readonly pid: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Resolves once the output so far holds the text; rejects when the program has ended without it. */
  until(stream: "stdout" | "stderr", text: string | RegExp): Promise<void>;
  type(text: string): void;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Ended>;
};
export type Machine = {
  /** Real path of the whole. */
  readonly top: string;
  readonly repo: string;
  readonly home: string;
  readonly sessions: string;
  readonly env: Env;
  /** Writes a file, by a path below the top, and returns its absolute path. */
  write(path: string, content: string | Uint8Array): string;
  git(...args: readonly string[]): string;
  start(args: readonly string[], options?: StartOptions): Running;
  /** The executable, to its end. */
  writ(args: readonly string[], options?: StartOptions): Promise<Ended>;
  /** Any other program, to its end, with the same environment. */
  program(argv: readonly [string, ...string[]], options?: StartOptions): Promise<Ended>;
  startProgram(argv: readonly [string, ...string[]], options?: StartOptions): Running;
  /** Ids of the sessions on disk, the newest first. */
  ids(): readonly string[];
  logPath(id?: string): string;
  /** Events of the newest session, or of that one, whatever their chain is. */
  events(id?: string): readonly Event[];
};

/** A repository with one commit (`src/a.txt`) on `main`. Everything is removed afterwards. */
export async function withMachine<T>(use: (machine: Machine) => Promise<T>): Promise<T> {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "writ-e2e-")));
  const running = new Set<ChildProcess>();
  try {
    return await use(makeMachine(top, running));
  } finally {
    for (const child of running) child.kill("SIGKILL");
    rmSync(top, { recursive: true, force: true });
  }
}

function makeMachine(top: string, running: Set<ChildProcess>): Machine {
  const repo = join(top, "repo");
  const home = join(top, "home");
  const sessions = join(top, "state/writ/sessions");
  const env: Env = {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: home,
    XDG_CONFIG_HOME: join(top, "config"),
    XDG_STATE_HOME: join(top, "state"),
    TMPDIR: join(top, "tmp"),
    LANG: "C.UTF-8",
    USER: "tester",
    GIT_CONFIG_NOSYSTEM: "1",
  };
  for (const folder of [repo, home, env["TMPDIR"] ?? ""]) mkdirSync(folder, { recursive: true });
  const startProgram = (argv: readonly [string, ...string[]], options: StartOptions = {}): Running =>
    startChild(
      argv,
      { cwd: options.cwd ?? repo, env: { ...env, ...options.env }, input: options.input },
      running,
    );
  const machine: Machine = {
    top,
    repo,
    home,
    sessions,
    env,
    write(path, content) {
      const file = join(top, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
    git: (...args) => execFileSync("git", ["-C", repo, ...args], { env, encoding: "utf8" }),
    startProgram,
    program: (argv, options) => startProgram(argv, options).ended,
    start: (args, options) => startProgram([binary, ...args], options),
    writ: (args, options) => startProgram([binary, ...args], options).ended,
    ids: () => listSessions(sessions).map((s) => s.id),
    logPath: (id) => join(sessions, id ?? machine.ids()[0] ?? "none", "log.jsonl"),
    events: (id) => checkChain(readFileSync(machine.logPath(id))).events,
  };
  machine.git("init", "--quiet", "--initial-branch=main");
  machine.git("config", "user.name", "Tester");
  machine.git("config", "user.email", "tester@localhost");
  machine.write("repo/src/a.txt", "one\ntwo\n");
  machine.git("add", "--all");
  machine.git("commit", "--quiet", "-m", "start");
  return machine;
}

type ChildOptions = { readonly cwd: string; readonly env: Env; readonly input: StartOptions["input"] };

function startChild(
  [program, ...args]: readonly [string, ...string[]],
  { cwd, env, input }: ChildOptions,
  running: Set<ChildProcess>,
): Running {
  const child = spawn(program, args, {
    cwd,
    env: { ...env },
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  running.add(child);
  const text = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  let over = false;
  const tell = () => {
    for (const look of [...waiting]) look();
  };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (piece: string) => {
      text[name] += piece;
      tell();
    });
  }
  child.stdin?.on("error", () => {});
  if (typeof input === "string") child.stdin?.end(input);
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      running.delete(child);
      over = true;
      tell();
      resolve({ code, signal, ...text });
    });
  });
  return {
    pid: child.pid ?? 0,
    get stdout() {
      return text.stdout;
    },
    get stderr() {
      return text.stderr;
    },
    until(stream, wanted) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const found = typeof wanted === "string"
            ? text[stream].includes(wanted)
            : wanted.test(text[stream]);
          if (!found && !over) return;
          waiting.delete(look);
          if (found) return resolve();
          reject(
            new Error(`ended without ${wanted} on ${stream}:\n${text.stdout}\n--- stderr\n${text.stderr}`),
          );
        };
        waiting.add(look);
        look();
      });
    },
    type: (keys) => void child.stdin?.write(keys),
    kill: (signal) => void child.kill(signal),
    ended,
  };
}

/** Resolves once `holds` does; the test's own time limit ends what never comes. */
export async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Whether a process with this id runs, dead ones that nobody has collected apart. */
export function isRunning(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

/** The types in this order, others between them. */
export function assertChain(events: readonly Event[], types: readonly EventType[]): void {
  let at = 0;
  for (const event of events) if (event.type === types[at]) at++;
  assertEquals(types.slice(at), [], `not in this order: ${events.map((e) => e.type).join(" ")}`);
}

export function eventsOf<T extends EventType>(events: readonly Event[], type: T): readonly EventOf<T>[] {
  return events.filter((event): event is EventOf<T> => event.type === type);
}

/**
 * The events of a session whose log is whole: `writ session verify` says so, every call of every reply has one result in call
 * order, nothing started that was not allowed, and the last turn is closed.
 */
export async function soundLog(machine: Machine, id = machine.ids()[0] ?? "none"): Promise<readonly Event[]> {
  const verified = await machine.writ(["session", "verify", id]);
  assertEquals([verified.code, verified.stderr], [0, ""], verified.stdout);
  const events = machine.events(id);
  const calls = eventsOf(events, "model.completed").flatMap((e) =>
    e.data.content.flatMap((b) => (b.type === "tool_use" ? [b.id] : []))
  );
  const results = events.flatMap((e) =>
    e.type === "tool.completed" || e.type === "tool.interrupted" ? [e.data.call] : []
  );
  assertEquals(results, calls);
  const allowed = eventsOf(events, "permission.resolved").filter((e) => e.data.decision === "allow");
  for (const { data } of eventsOf(events, "tool.started")) {
    assert(allowed.some((e) => e.data.call === data.call), `${data.call} was not allowed`);
  }
  const [opened, closed] = [eventsOf(events, "user.message"), eventsOf(events, "turn.completed")];
  assertEquals(closed.map((e) => e.turn), opened.map((e) => e.turn));
  return events;
}
