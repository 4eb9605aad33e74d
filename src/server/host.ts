// What one process that holds many sessions offers to whoever faces callers: functions over data, no word of a transport
// but the codes of refusals. Every function checks what the caller may see and do; a session that it may not see is not found.
import type { Denial, StopReason, TriggerKind } from "../core/event.ts";
import type { Args, Json, Usage } from "../core/message.ts";
import type { Cause, Risk } from "../core/decision.ts";
import type { Problem } from "../core/problem.ts";

export type Role = "read" | "run" | "approve" | "admin";

export type Caller = {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly profiles: "all" | readonly string[];
  /** `own`: sessions that a caller of this name has made. */
  readonly sessions: "own" | "all";
};

export type RefusalCode =
  | "bad-request"
  | "bad-cursor"
  | "forbidden"
  | "policy-forbids"
  | "session-not-found"
  | "turn-not-found"
  | "skill-not-found"
  | "permission-not-found"
  | "session-busy"
  | "session-closed"
  | "turn-ended"
  | "workspace-busy"
  | "permission-resolved"
  | "not-owner"
  | "cursor-expired"
  | "permission-expired"
  | "precondition-failed"
  | "policy-invalid"
  | "idempotency-mismatch"
  | "too-many-turns"
  | "too-many-sessions"
  | "queue-full"
  | "draining"
  | "not-ready";

export type Refusal = {
  readonly code: RefusalCode;
  /** What was found, what was expected, what to do; starts lower case. */
  readonly detail: string;
  /** camelCase members of this code, such as `turn` and `queueDepth` of `session-busy`. */
  readonly members?: { readonly [name: string]: Json };
  /** Seconds. */
  readonly retryAfter?: number;
};
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: Refusal };

/** `next` is absent on the last page. */
export type Page<T> = { readonly items: readonly T[]; readonly next?: string };
export type PageRequest = { readonly limit: number; readonly cursor?: string };

/** One key stands for one request of one caller at one scope, for a day. */
export type Idempotency = { readonly key: string; readonly bodyHash: string; readonly scope: string };
/** `replayed`: the request was carried out before, and this is what came of it. */
export type Done<T> = { readonly value: T; readonly replayed: boolean };

export type SessionStatus = "idle" | "queued" | "running" | "waiting_permission" | "closed";
export type SessionView = {
  readonly id: string;
  readonly title?: string;
  readonly status: SessionStatus;
  readonly lastSeq: number;
  /** The turn that runs, else the newest. */
  readonly turn?: string;
  readonly queueDepth: number;
  readonly activeSkills: readonly {
    readonly name: string;
    readonly version?: string;
    readonly by: TriggerKind;
  }[];
  readonly policyRevision: string;
  readonly model: string;
  readonly workspace: string;
  readonly profile?: string;
  /** Name of the caller that made it. */
  readonly owner?: string;
  readonly labels?: { readonly [name: string]: string };
  readonly metadata?: { readonly [name: string]: Json };
  readonly usage: Usage;
  readonly costUsd?: number;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly updatedAt: string;
};

export type NewSession = {
  readonly title?: string;
  /** Among `server.workspaces`; absent: a fresh folder that goes with the session. */
  readonly cwd?: string;
  /** One of `model.choices`. */
  readonly model?: string;
  readonly profile?: string;
  readonly labels?: { readonly [name: string]: string };
  readonly metadata?: { readonly [name: string]: Json };
};

export type TurnStatus =
  | "queued"
  | "running"
  | "waiting_permission"
  | "cancelling"
  | "completed"
  | "failed"
  | "cancelled"
  | "interrupted";
export type TurnView = {
  readonly id: string;
  readonly status: TurnStatus;
  readonly stopReason?: StopReason;
  readonly output?: { readonly text: string; readonly structured?: Json };
  /** Why it failed. */
  readonly error?: { readonly code: string; readonly message: string };
  readonly denied: readonly Denial[];
  readonly usage: Usage;
  readonly costUsd?: number;
  /** Of its first and last event; absent while there is none. */
  readonly firstSeq?: number;
  readonly lastSeq?: number;
};

export type NewTurn = {
  readonly input: string;
  readonly skill?: { readonly name: string; readonly arguments?: string };
  readonly model?: string;
  /** Count only where they are stricter than the policy. */
  readonly limits?: {
    readonly iterations?: number;
    readonly toolCalls?: number;
    readonly seconds?: number;
    readonly outputTokens?: number;
  };
  readonly onBusy: "reject" | "queue" | "interrupt";
  /** `fail`: a question that nobody answered ends the turn. */
  readonly onAsk: "wait" | "deny" | "fail";
};

export type PermissionView = {
  readonly id: string;
  readonly session: string;
  readonly turn?: string;
  readonly status: "pending" | "resolved" | "expired";
  readonly call: string;
  readonly tool: string;
  /** Redacted. */
  readonly input: Args;
  readonly inputSha256: string;
  readonly risk: Risk;
  readonly sourcedBy: readonly string[];
  readonly preview?: string;
  readonly causes: readonly Cause[];
  /** The rule that an answer for the session would be. */
  readonly rule?: string;
  readonly maxScope: "once" | "session";
  readonly requestedAt: string;
  readonly expiresAt?: string;
  readonly onTimeout: "deny";
  readonly decision?: "allow" | "deny";
  readonly resolvedBy?: string;
  /** Of its `permission.resolved`. */
  readonly seq?: number;
};
export type PermissionAnswer = {
  readonly decision: "allow" | "deny";
  readonly scope: "once" | "session";
  readonly reason?: string;
  readonly ifInputSha256?: string;
};

export type SkillView = {
  readonly name: string;
  readonly description: string;
  readonly version?: string;
  readonly source: string;
  readonly triggers: readonly string[];
  readonly allowedTools?: readonly string[];
  readonly forced: boolean;
  readonly sha256: string;
  readonly warnings: readonly string[];
  /** Only where it was asked for. */
  readonly body?: string;
};

export type MessageView = {
  readonly seq: number;
  readonly role: "user" | "assistant" | "tool";
  readonly content: Json;
};

/** A line of a log, byte for byte as it is kept, without its newline. */
export type LogLine = {
  readonly seq: number;
  readonly type: string;
  readonly turn?: number;
  readonly line: string;
};

/** A view of one session's log. It holds no lines, and keeps no session from being put away. */
export type LogReader = {
  /** 0 of an empty log. */
  lastSeq(): number;
  /** The first seq that is kept. */
  oldestSeq(): number;
  /** What is behind `after`, in order; some, when `bytes` are reached; none at the end. */
  read(after: number, most: { readonly events: number; readonly bytes: number }): Promise<readonly LogLine[]>;
  /** Calls back after there is more to read, or the session was removed, until the returned function is called. */
  onMore(call: () => void): () => void;
  /** The session was removed: nothing will follow. */
  closed(): boolean;
};

/** A view of all sessions that a caller may see, those too that come after it was opened. */
export type FeedReader = {
  read(
    most: { readonly events: number; readonly bytes: number },
  ): Promise<readonly (LogLine & { readonly cursor: string })[]>;
  onMore(call: () => void): () => void;
  /** Events that were recorded and not read yet. */
  behind(): number;
  /** The place that it has come to; `openFeed` goes on there. */
  cursor(): string;
};

export type PolicyStatus = {
  readonly revision: string;
  readonly activatedAt: string;
  readonly sources: readonly { readonly layer: string; readonly path: string }[];
  /** Of the newest attempt to load, when it failed. */
  readonly lastError?: { readonly at: string; readonly errors: readonly Problem[] };
};

export type ExplainRequest = {
  readonly message?: string;
  readonly skill?: string;
  readonly tool?: { readonly name: string; readonly input: Args };
  /** With its policy and in its workspace, as at the start of a session; else with those of the host. */
  readonly session?: string;
  readonly profile?: string;
};

export type Readiness = {
  readonly ready: boolean;
  readonly components: { readonly [name: string]: "ok" | { readonly error: string } };
};

/** Every figure of the process at this moment. */
export type Figure = {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly {
    readonly labels?: { readonly [name: string]: string };
    readonly value: number;
  }[];
};

export type SessionHost = {
  createSession(caller: Caller, wanted: NewSession, once?: Idempotency): Promise<Outcome<Done<SessionView>>>;
  /** Newest first. */
  listSessions(
    caller: Caller,
    page: PageRequest & { readonly status?: SessionStatus; readonly label?: string },
  ): Promise<Outcome<Page<SessionView>>>;
  getSession(caller: Caller, session: string): Promise<Outcome<SessionView>>;
  /** `ifSeq`: only while this is its last seq. */
  updateSession(
    caller: Caller,
    session: string,
    change: Pick<NewSession, "title" | "metadata">,
    ifSeq?: number,
  ): Promise<Outcome<SessionView>>;
  /** Ends what runs first; `purge` removes the log too. Of one that is gone it says the same. */
  removeSession(
    caller: Caller,
    session: string,
    how: { readonly purge: boolean },
  ): Promise<Outcome<undefined>>;
  /** A new session that begins with the conversation up to `atSeq`, or all of it. */
  forkSession(
    caller: Caller,
    session: string,
    at: { readonly atSeq?: number },
    once?: Idempotency,
  ): Promise<Outcome<Done<SessionView>>>;
  messages(caller: Caller, session: string, page: PageRequest): Promise<Outcome<Page<MessageView>>>;

  /** Resolves as soon as the turn is recorded or queued. */
  submitTurn(
    caller: Caller,
    session: string,
    wanted: NewTurn,
    once?: Idempotency,
  ): Promise<Outcome<Done<TurnView>>>;
  /** With `wait`, after a change of its status, at its end, or when the time is over or `signal` aborts. */
  getTurn(
    caller: Caller,
    session: string,
    turn: string,
    wait?: { readonly ms: number; readonly until: "change" | "end"; readonly signal: AbortSignal },
  ): Promise<Outcome<TurnView>>;
  /** Of a turn that has ended the view as it is. */
  cancelTurn(
    caller: Caller,
    session: string,
    turn: string,
    why: { readonly reason?: string },
  ): Promise<Outcome<TurnView>>;
  /** Joined to the conversation before the next request to the model. */
  steerTurn(
    caller: Caller,
    session: string,
    turn: string,
    more: { readonly content: string },
  ): Promise<Outcome<TurnView>>;

  openLog(caller: Caller, session: string): Promise<Outcome<LogReader>>;
  /** Behind a cursor, or from now on. */
  openFeed(caller: Caller, after?: string): Promise<Outcome<FeedReader>>;

  listPermissions(
    caller: Caller,
    page: PageRequest & { readonly status?: PermissionView["status"]; readonly session?: string },
  ): Promise<Outcome<Page<PermissionView>>>;
  getPermission(caller: Caller, session: string, permission: string): Promise<Outcome<PermissionView>>;
  answerPermission(
    caller: Caller,
    session: string,
    permission: string,
    answer: PermissionAnswer,
    once?: Idempotency,
  ): Promise<Outcome<Done<PermissionView>>>;

  listSkills(
    caller: Caller,
  ): Promise<Outcome<{ readonly items: readonly SkillView[]; readonly errors: readonly Problem[] }>>;
  getSkill(caller: Caller, name: string, how: { readonly body: boolean }): Promise<Outcome<SkillView>>;
  loadSkill(
    caller: Caller,
    session: string,
    name: string,
    how: { readonly arguments?: string },
    once?: Idempotency,
  ): Promise<
    Outcome<Done<{ readonly seq: number; readonly loadedBytes: number; readonly contextTokensAdded: number }>>
  >;
  unloadSkill(caller: Caller, session: string, name: string): Promise<Outcome<undefined>>;

  /** The policy in force, as `writ policy show --json` prints it. */
  policy(caller: Caller): { readonly revision: string; readonly policy: Json };
  policyStatus(): PolicyStatus;
  /** What cannot be loaded leaves the old one in force. */
  reloadPolicy(): Promise<
    Outcome<{ readonly revision: string; readonly previous: string; readonly changed: readonly string[] }>
  >;
  /** What `writ explain --json` prints, by the same functions. */
  explain(
    caller: Caller,
    what: ExplainRequest,
  ): Promise<Outcome<{ readonly policyRevision: string; readonly [member: string]: Json }>>;

  draining(): boolean;
  runningTurns(): number;
  /** Starts no more work, gives running turns that long, then ends them; resolves when every log is closed. Later calls join the first; `graceMs` of 0 makes it hurry. */
  drain(how: { readonly graceMs: number }): Promise<void>;
  ready(): Promise<Readiness>;
  figures(): readonly Figure[];
};
