// Everything outside that the loop may touch, as types. Tests and the composition root make the values.
import type { BoxSettings } from "../core/box.ts";
import type { Box } from "../core/box_plan.ts";
import type { Facts, HostFact, Subject } from "../core/facts.ts";
import type { Answer, Draft, Event } from "../core/event.ts";
import type { GrantRule } from "../core/grant_rule.ts";
import type { Args, InputSchema, Json, ModelReply, ModelRequest, ToolCall } from "../core/message.ts";
import type { Risk, Verdict } from "../core/decision.ts";
import { messageOf } from "../core/thrown.ts";

/** One provider. `reply` streams; it throws ModelFailure for anything that the outside world did wrong. */
export type Model = {
  readonly provider: string;
  reply(request: ModelRequest, on: ReplyListener, signal: AbortSignal): Promise<ModelReply>;
};
export type ReplyListener = {
  text(delta: string): void;
  /** A content block is complete. */
  blockEnd(): void;
};

/** The provider failed. `retryable` failures are tried again whole; nothing of a failed attempt is used. */
export class ModelFailure extends Error {
  readonly code: string;
  readonly status: number | undefined;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly hint: string | undefined;
  constructor(
    code: string,
    message: string,
    more: { status?: number; retryable?: boolean; retryAfterMs?: number; hint?: string; cause?: unknown } =
      {},
  ) {
    super(message, { cause: more.cause });
    this.name = "ModelFailure";
    this.code = code;
    this.status = more.status;
    this.retryable = more.retryable ?? false;
    this.retryAfterMs = more.retryAfterMs;
    this.hint = more.hint;
  }
}

/** A tool is a value. Expected failures are outcomes with `ok: false`, never throws. */
export type Tool = {
  /** As the model calls it. */
  readonly name: string;
  /** What rules, bounds, evidence and the log know it by, such as `skill.<name>.<tool>`; absent: `name`. */
  readonly identity?: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
  /** Runs alone: not side by side with other reads. */
  readonly barrier?: boolean;
  /** Outside skill bounds and outside `tools.enabled`, not outside policy. */
  readonly engine?: boolean;
  /** What the call would do, from arguments that already fit the schema. Looks, never changes. */
  inspect(args: Args, place: Place): Inspection;
  /** Asks the outside what `inspect` has to know of these arguments, such as the addresses of a name; runs right before it. */
  lookUp?(args: Args, place: Place, signal: AbortSignal): Promise<void>;
  /** What a person should see before saying yes, such as a diff. */
  preview?(args: Args, at: ToolContext): string | undefined;
  run(args: Args, at: ToolContext): Promise<ToolOutcome>;
};

export type Inspection = {
  readonly risk: Risk;
  readonly subjects: readonly [Subject, ...Subject[]];
  readonly box?: string;
  readonly errors?: readonly { readonly code: string; readonly message: string }[];
};

export type ToolOutcome = {
  readonly ok: boolean;
  readonly content: string;
  /** Stable snake_case; set when `ok` is false. */
  readonly code?: string;
  readonly data?: Json;
  /** It failed, and may have had its effect all the same. */
  readonly unknown?: true;
  /** Cut or empty: no evidence for a gate. */
  readonly partial?: boolean;
};

/** Where a session stands on the machine. Absolute real paths. */
export type Place = {
  readonly root: string;
  readonly home: string;
  /** The protect entry that covers this absolute path. */
  protectedBy(path: string): string | undefined;
  /** Set when no command may run, save in a box without a sandbox: says why and what to do. */
  readonly shellRefused?: string;
  /** The boxes that the policy defines beside the default one. */
  readonly boxes?: readonly BoxSettings[];
  /** Absent where nothing is looked up and nothing is connected to. */
  readonly network?: Network;
};

export type Network = {
  /** Where a name leads to. Never rejects, and ends in bounded time. */
  addresses(host: HostFact, signal: AbortSignal): Promise<Addresses>;
  /** Set where no connection may be made: says why. */
  readonly offline?: string;
  /** What to add when a connection fails. */
  readonly hint?: string;
};
/** All of them, at least one; or why there is none. */
export type Addresses =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly code: string; readonly message: string };

export type ToolContext = Place & {
  readonly signal: AbortSignal;
  /** Whether policy allows fetch_url this host without a question; for hosts that the arguments do not name. */
  mayReach(host: HostFact): { readonly allowed: boolean; readonly reason: string };
  /** Whether deny and ask rules leave this file readable; for tools that touch files which their arguments do not name. */
  mayRead(path: string): boolean;
  /** What was last read or written of each file: absolute path → SHA-256 of its bytes. */
  readonly seen: Map<string, string>;
  /** Keeps the bytes of a file before it is changed; undefined means it did not exist. */
  keepBefore(path: string, bytes: Uint8Array | undefined): Promise<void>;
  readonly shell: ShellSettings;
  readonly skills: SkillDesk;
};

export type ShellSettings = {
  /** Of a command in the default box. */
  readonly env: { readonly [name: string]: string };
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  /** Characters of output that are kept. */
  readonly maxOutput: number;
  /** Absent: there are none, and programs run as Writ itself does. */
  readonly boxes?: Boxes;
};

/** The way of every program into its box. */
export type Boxes = {
  /** `more`: paths that this one program may read beside what its box holds. */
  enter(box: string, more?: readonly string[]): Entered;
  /** For Writ's own git: reads, writes nothing, has no network. */
  look(): Entered;
  /** What a command that failed with this output may have lacked in that box, and where it is to be had. */
  lack(box: string, output: string): string | undefined;
};
/** Without `box` the program runs as Writ itself does. */
export type Entered =
  | { readonly ok: true; readonly env: { readonly [name: string]: string }; readonly box?: Box }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** What the outside says about evidence for gates. */
export type EvidencePort = {
  /**
   * One text for the content of the workspace: the commit of HEAD, every tracked file, every other one that git does not ignore.
   * Undefined where there is no git, or more than can be looked at. Never rejects.
   */
  content(signal: AbortSignal): Promise<string | undefined>;
  /** Whether the program that this word starts, in that folder, lies where commands may write. */
  isWritable(program: string, cwd: string): boolean;
};

/** What the skill tools ask of the loop. */
export type SkillDesk = {
  load(name: string, argumentsText: string): Promise<ToolOutcome>;
  complete(name: string, outcome: string, summary: string): Promise<ToolOutcome>;
  find(query: string): ToolOutcome;
  readFile(skill: string, path: string): Promise<ToolOutcome>;
};

export type Approval = {
  readonly call: ToolCall;
  readonly facts: Facts;
  readonly verdict: Verdict;
  readonly preview?: string;
  /** What the box opens that the call would run in, where it is not the default one. */
  readonly box?: string;
  /** The rule that a session grant would be; undefined when no grant may answer. */
  readonly grant?: string;
  /** The rule that would allow the call for good in this workspace; undefined when it is not offered. */
  readonly always?: string;
  /** Why nothing is kept for good here. */
  readonly notAlways?: string;
};
/** The user's own policy, as a place for rules that a person has said yes to. */
export type AnswerKeeper = {
  /** Why nothing can be kept there. */
  readonly refused?: string;
  /** What was kept since the policy was read. */
  readonly kept: readonly GrantRule[];
  /** Adds the rules for this workspace; never throws. */
  keep(
    rules: readonly GrantRule[],
  ): Promise<{ readonly ok: true } | { readonly ok: false; readonly message: string }>;
};
/** `by: "non_interactive"` when nobody can be asked. */
export type Approver = {
  ask(approval: Approval, signal: AbortSignal): Promise<{ readonly allow: boolean; readonly answer: Answer }>;
};

/**
 * Append is synchronous and durable as far as `sync` says; a failed append throws LogFailure and nothing was recorded. A log
 * that is kept elsewhere may tell of it at the next append or sync.
 */
export type Log = {
  append(draft: Draft): Event;
  /** Everything appended so far is on disk when this resolves; rejects with LogFailure. */
  sync(): Promise<void>;
};
export class LogFailure extends Error {
  readonly code: string;
  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "LogFailure";
    this.code = code;
  }
}

/** A fault of our own, its cause, that no tool's result may hide: it ends the turn. */
export class InternalFault extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
    this.name = "InternalFault";
  }
}

export type Clock = {
  /** Milliseconds since 1970, for time stamps. */
  now(): number;
  /** Milliseconds, monotonic, for durations and deadlines. */
  elapsed(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Calls back once after `ms`; the returned function cancels. */
  after(ms: number, call: () => void): () => void;
};
