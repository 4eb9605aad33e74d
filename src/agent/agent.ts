// What one running session consists of: the loop's parts, put together by the composition root.
import type { AllowedTool } from "../core/bound.ts";
import type { Catalog } from "../core/catalog.ts";
import type { StableText } from "../core/context.ts";
import type { Event } from "../core/event.ts";
import type { Shown } from "../core/listing.ts";
import type { Grant } from "../core/grant.ts";
import type { Args, InputSchema } from "../core/message.ts";
import type { Policy } from "../core/policy.ts";
import type { SessionState } from "../core/session.ts";
import type { Skill, SkillBody, SkillMeta } from "../core/skill.ts";
import type { Mode } from "../core/facts.ts";
import type {
  AnswerKeeper,
  Approver,
  Clock,
  EvidencePort,
  Model,
  Place,
  ShellSettings,
  Tool,
  ToolOutcome,
} from "./ports.ts";
import type { Recorder } from "./recorder.ts";

export type Agent = {
  readonly policy: Policy;
  readonly catalog: Catalog;
  /** Stays the same from request to request; only a compaction exchanges it. */
  readonly preface: { now: Preface };
  /** As files are now. */
  makePreface(input: PrefaceInput): Preface;
  readonly recorder: Recorder;
  /** The session that this one is a fork of. */
  readonly parent?: Agent;
  readonly forks: ForkLogs;
  readonly model: Model;
  /** Built-in tools that exist, in the order in which they are offered. */
  readonly tools: readonly Tool[];
  /** Tools of servers, as they were when the session opened; offered after the built-in ones. */
  readonly serverTools: readonly Tool[];
  /** The command tools that a skill brings, in the order of its tools.json. */
  commandTools(skill: Skill): readonly Tool[];
  /** Each skill as it was when it was last loaded: its tools stay the same until it is loaded again. */
  readonly installed: Map<string, Skill>;
  readonly approver: Approver;
  readonly clock: Clock;
  /** 0 ≤ n < 1, for jitter. */
  random(): number;
  readonly mode: Mode;
  /** A denied call ends the turn. */
  readonly strict: boolean;
  readonly place: Place;
  readonly shell: ShellSettings;
  readonly evidence: EvidencePort;
  readonly bodies: SkillBodies;
  /** Problems of `args` against `schema`, empty when they fit. */
  checkArguments(schema: InputSchema, args: Args): readonly string[];
  /** An entry of allowed_tools in the words of Writ; one that cannot be read allows nothing. */
  allowedTool(declared: string): AllowedTool;
  keepBefore(path: string, bytes: Uint8Array | undefined): Promise<void>;
  /** Where an answer can be kept beyond the session; absent where nobody sits at a terminal. */
  readonly keeper?: AnswerKeeper;
  /** Answers that were kept; they end with the process. */
  readonly grants: Grant[];
  readonly seen: Map<string, string>;
  /** What was last read of each skill, for when a later read fails. */
  readonly lastBodies: Map<string, ReadSkill>;
};

/** What stands before the conversation. */
export type Preface = {
  readonly stable: StableText;
  /** What the model sees of the catalog by it; when skills were left out, it is offered find_skill. */
  readonly shown: Shown;
};

export type PrefaceInput = {
  /** Skills that were used, as the session's state has them. */
  readonly recent: SessionState["recent"];
  /** Of the model that is asked: what instruction files may take of it. */
  readonly contextTokens: number;
  /** What the model was given before. */
  readonly before?: Preface;
};

/** Where forks are recorded: each in a log of its own, beside that of the session. */
export type ForkLogs = {
  /** `tell` hears of each event when it is recorded, before anything follows from it. Throws LogFailure. */
  create(session: string, tell: (event: Event) => void): Promise<ForkLog>;
  /** One that a crash left open; undefined when its log is lost. Throws LogFailure when it cannot be written now. */
  reopen(session: string): Promise<ForkLog | undefined>;
};
export type ForkLog = { readonly recorder: Recorder; close(): Promise<void> };

export type SkillBodies = {
  read(skill: Skill): Promise<SkillBodyResult>;
  readAttached(skill: Skill, path: string): Promise<ToolOutcome>;
};
/** `meta` is what the front matter says now, its bound never wider than the one of the catalog. */
export type ReadSkill = {
  readonly ok: true;
  readonly body: SkillBody;
  readonly meta: SkillMeta;
  /** What looks like a secret in it, one line each. */
  readonly credentials: readonly string[];
  /** Why the file cannot be read now: this is what was read of it last. */
  readonly unread?: string;
};
export type SkillBodyResult =
  | ReadSkill
  | {
    readonly ok: false;
    readonly code: string;
    readonly message: string;
    readonly skipped?: { readonly bytes: number; readonly cap: number };
  };
