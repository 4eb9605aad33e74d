// Every event that a session's log may hold. A new event is one line here; the compiler then points at the reducer.
import type { Cause, Effect, Risk } from "./decision.ts";
import type { Args, AssistantBlock, Json, ReplyStop, Usage } from "./message.ts";
import type { Entry } from "./transcript.ts";

export type TriggerKind = "policy" | "explicit" | "pattern" | "model";
export type Trigger = {
  readonly kind: TriggerKind;
  readonly pattern?: string;
  /** UTF-16 offsets into the user's message. */
  readonly span?: readonly [number, number];
  readonly gate?: string;
};

export type StopReason =
  | "final"
  | "limit"
  | "cancelled"
  | "interrupted"
  | "denied"
  | "gate_unmet"
  /** A skill that was asked for by name cannot be had, though it could a moment before. */
  | "skill_refused"
  | "schema"
  | "refusal"
  | "provider_error"
  | "audit_error"
  | "internal_error";

export type Denial = {
  readonly call: string;
  readonly tool: string;
  readonly reason: string;
  /** The effect was ask and nobody could answer. */
  readonly unanswered: boolean;
};

export type Answer = {
  /** `restart`: the process ended before there was an answer. */
  readonly by: "user" | "grant" | "non_interactive" | "timeout" | "script" | "changed" | "restart";
  readonly actor?: string;
  /** `always`: the rule was added to the user's own policy. */
  readonly scope?: "once" | "session" | "always";
  /** The rule that a kept answer would be. */
  readonly rule?: string;
  readonly reason?: string;
};

export type SandboxFacts = {
  readonly mode: "required";
  readonly backend: "bwrap" | "landlock" | "none";
  /** What became of a hostile command that was tried at the start; absent: there was nothing to try. */
  readonly probe?: "held" | "escaped" | "failed";
  /** Why no command can run. */
  readonly reason?: string;
  /** Keys of the policy whose programs give a key: these run outside of every box. */
  readonly outside?: readonly string[];
};

export type SessionFacts = {
  readonly version: string;
  readonly policy: { readonly name?: string; readonly revision: string };
  readonly layers: readonly { readonly layer: string; readonly path: string }[];
  readonly provider: string;
  readonly model: string;
  readonly workspace: string;
  readonly cwd: string;
  readonly platform: string;
  /** `off`, or what holds commands; a run whose log is the same everywhere says only `required`. */
  readonly sandbox: string | SandboxFacts;
  readonly trust: string;
  readonly actor: string;
  /** Of a fork: the session that it belongs to, the hash of the `fork.started` there, and the skill that it runs. */
  readonly parent?: { readonly session: string; readonly hash: string; readonly skill: string };
  /** Of one that a server holds. */
  readonly served?: ServedFacts;
};

/** A request that is carried out once, however often it comes; known again by these for a day. */
export type RequestKey = { readonly scope: string; readonly key: string; readonly bodyHash: string };

export type ServedFacts = {
  /** Name of the caller that made it. */
  readonly owner: string;
  readonly title?: string;
  readonly profile?: string;
  readonly labels?: { readonly [name: string]: string };
  readonly metadata?: { readonly [name: string]: Json };
  /** The choice of model that it was made with. */
  readonly choice?: string;
  /** The workspace was made for it and goes with it. */
  readonly ownWorkspace?: true;
  readonly request?: RequestKey;
};

/** What a call in a fork did to the gates of the session that the fork belongs to. */
export type ForkReport =
  | { readonly event: "tool.started"; readonly data: EventData["tool.started"] }
  | { readonly event: "tool.completed"; readonly data: Omit<EventData["tool.completed"], "result" | "data"> }
  | { readonly event: "tool.interrupted"; readonly data: EventData["tool.interrupted"] };

export type Tokens = {
  readonly system: number;
  readonly instructions: number;
  readonly tools: number;
  readonly catalog: number;
  readonly skills: number;
  readonly transcript: number;
};

export function totalTokens(tokens: Tokens): number {
  return Object.values(tokens).reduce((a, b) => a + b, 0);
}

export type EventData = {
  "session.started": SessionFacts;
  "session.resumed": SessionFacts;
  /** `bytes` of the log were no events and are kept in `savedAs`; `lost`: events that the head file names and the log lacks. */
  "session.recovered": { readonly bytes: number; readonly savedAs: string; readonly lost?: number };
  "skill.registry_error": { readonly path: string; readonly code: string; readonly message: string };
  /** What a scan between two turns found: names, and the text that says so to the model in the turn that follows. */
  "catalog.changed": {
    readonly added: readonly string[];
    readonly removed: readonly string[];
    readonly changed: readonly string[];
    readonly text: string;
  };
  "skill.omitted": { readonly name: string; readonly reason: string };
  "user.message": {
    readonly content: string;
    readonly actor: string;
    /** Seq of the `turn.submitted` that it comes from. */
    readonly submitted?: number;
  };
  /** Said to a turn that runs; shown with the next request. */
  "user.steered": { readonly content: string; readonly actor: string };
  /** A turn that was asked for; it begins with the `user.message` that names it. */
  "turn.submitted": { readonly actor: string; readonly request?: RequestKey };
  /** One that was asked for will not begin. */
  "turn.dropped": {
    readonly submitted: number;
    readonly reason: "cancelled" | "shutdown" | "restart" | "failed";
    readonly message?: string;
  };
  "session.described": {
    readonly title?: string;
    readonly metadata?: { readonly [name: string]: Json };
  };
  /** Nothing follows. */
  "session.closed": { readonly actor: string };
  /** A request that changed the session was carried out; `of`: seq of the event that tells what came of it. */
  "request.done": { readonly request: RequestKey; readonly of: number };
  "skill.loaded": {
    readonly name: string;
    readonly version?: string;
    readonly source: string;
    readonly sha256: string;
    /** The hash of its whole folder, where the policy pins it. */
    readonly pin?: string;
    readonly trigger: Trigger;
    readonly scope: "turn" | "session";
    readonly loadedBytes: number;
    readonly contextTokensAdded: number;
    /** Absent: the skill declares none. */
    readonly allowedTools?: readonly string[];
    readonly tools: readonly string[];
    /** Whether its bound is in force. */
    readonly bounding: boolean;
    /** The model choice that it asks for, where there is one of that name. */
    readonly model?: string;
    /** Rendered, as the model sees it. */
    readonly body: string;
  };
  "skill.skipped": {
    readonly name: string;
    readonly trigger: Trigger;
    readonly reason: string;
    readonly bytes?: number;
    readonly tokens?: number;
    readonly cap?: number;
  };
  "skill.unloaded": { readonly name: string; readonly reason: string };
  "context.built": {
    readonly iteration: number;
    readonly sources: { readonly skills: readonly string[]; readonly instructions: readonly string[] };
    readonly tokens: Tokens;
    /** Something that there was is not in the request; `cut` says in which bucket, and how much. */
    readonly truncated: boolean;
    readonly cut?: Partial<Tokens>;
  };
  "context.compacted": {
    /** Seqs of the first and the last event that what was taken out came from. */
    readonly from: number;
    readonly to: number;
    /** Estimates of the whole request. */
    readonly tokensBefore: number;
    readonly tokensAfter: number;
    /** Stands for everything up to `to`; empty when only results were cut. */
    readonly summary: string;
    /** Results of which `keep` characters stay, head and tail; by the seq of their tool.completed. */
    readonly cut?: { readonly results: readonly number[]; readonly keep: number };
  };
  "model.delta": { readonly text: string };
  "model.completed": {
    readonly stopReason: ReplyStop;
    readonly usage: Usage;
    /** What it cost, where the policy knows the prices. */
    readonly costUsd?: number;
    /** The model that was asked, where it is not the session's own. */
    readonly model?: string;
    readonly content: readonly AssistantBlock[];
    /** A reply beside the conversation: the model is not shown it again. */
    readonly purpose?: "summary";
  };
  "model.tool_call_requested": { readonly call: string; readonly tool: string; readonly args: Args };
  "model.failed": {
    readonly attempt: number;
    readonly code: string;
    readonly message: string;
    readonly status?: number;
    readonly retryInMs?: number;
  };
  "permission.requested": {
    readonly call: string;
    readonly tool: string;
    readonly risk: Risk;
    readonly sourcedBy: readonly string[];
    readonly preview?: string;
  };
  "permission.resolved": {
    readonly call: string;
    readonly tool: string;
    readonly risk: Risk;
    readonly effect: Effect;
    readonly causes: readonly Cause[];
    readonly answer?: Answer;
    readonly decision: "allow" | "deny";
    readonly reason: string;
  };
  "gate.blocked": {
    readonly gate: string;
    readonly call?: string;
    readonly missing: readonly string[];
    /** All that is missing is that the call stand alone in its text: the gate's skill is no help with that. */
    readonly compoundOnly?: true;
  };
  "tool.started": {
    readonly call: string;
    readonly tool: string;
    readonly risk: Risk;
    readonly box?: string;
    /** Evidence that this call gives if it completes ok, as gate id # index. */
    readonly evidence?: readonly string[];
    /** Gates that this call passed. */
    readonly gates?: readonly string[];
  };
  "tool.completed": {
    readonly call: string;
    readonly tool: string;
    readonly ok: boolean;
    readonly code?: string;
    /** It failed, and may have had its effect all the same. */
    readonly unknown?: true;
    readonly bytes: number;
    readonly durationMs: number;
    readonly result: string;
    readonly data?: Json;
    /** The result was cut or empty: it is no evidence. */
    readonly partial?: boolean;
    readonly evidence?: readonly string[];
    /** Evidence patterns that speak of the call and that it does not meet, with the reason. */
    readonly notEvidence?: { readonly [mark: string]: string };
    /** Fingerprint of the content of the workspace that the evidence is about; absent where it is not known. */
    readonly tree?: string;
    /** Gates that this call used up. */
    readonly gates?: readonly string[];
  };
  "tool.interrupted": { readonly call: string; readonly tool: string; readonly started: boolean };
  "skill.completed": {
    readonly name: string;
    readonly outcome: string;
    readonly summary: string;
    /** Calls whose results it rests on. */
    readonly evidence: readonly string[];
    /** Gates whose evidence was there, and for which it is a verdict. */
    readonly gates?: readonly string[];
    /** Fingerprint of the content of the workspace that it is about. */
    readonly tree?: string;
    /** The session of the fork of this skill that reported it. */
    readonly fork?: string;
    /** The session of a fork of another skill, where it was reported. */
    readonly within?: string;
  };
  "fork.started": {
    readonly skill: string;
    readonly session: string;
    readonly trigger: Trigger;
    /** The load_skill call that asked for it. */
    readonly call?: string;
  };
  /** In the log of a fork: what it sees of the conversation before it. */
  "fork.history": { readonly history: "summary" | "full"; readonly transcript: readonly Entry[] };
  "fork.reported": { readonly session: string } & ForkReport;
  "fork.completed": {
    readonly skill: string;
    readonly session: string;
    /** Head of the fork's log; 64 zeros when it has none. */
    readonly hash: string;
    /** As complete_skill reported it; `unreported`; or, when its turn did not end well, why. */
    readonly outcome: string;
    readonly usage: Usage;
    readonly costUsd?: number;
    readonly toolCalls: number;
    readonly denied: readonly Denial[];
    /** What the model is shown of it; absent where that is the result of a call. */
    readonly text?: string;
  };
  "policy.changed": { readonly from: string; readonly to: string };
  "model.changed": { readonly from: string; readonly to: string };
  "limit.reached": { readonly limit: string; readonly value: number; readonly cap: number };
  "turn.completed": {
    readonly stopReason: StopReason;
    readonly usage: Usage;
    readonly costUsd?: number;
    readonly denied: readonly Denial[];
    readonly message?: string;
    /** Gates on the end of the turn that it met and used up. */
    readonly gates?: readonly string[];
  };
};

export type EventType = keyof EventData;

/** What the loop hands to the log: the log adds `seq`, `prev` and `hash`. */
export type Draft = {
  readonly [T in EventType]: {
    readonly ts: string;
    readonly session: string;
    readonly turn?: number;
    readonly type: T;
    readonly data: EventData[T];
  };
}[EventType];

export type Event = {
  readonly [T in EventType]: {
    readonly seq: number;
    readonly ts: string;
    readonly session: string;
    readonly turn?: number;
    readonly type: T;
    readonly data: EventData[T];
    readonly prev: string;
    readonly hash: string;
  };
}[EventType];

export type EventOf<T extends EventType> = Extract<Event, { readonly type: T }>;
