// A session that can take turns, as whoever has opened it holds it.
import { join } from "node:path";
import type { Agent } from "../agent/agent.ts";
import type { AnswerKeeper, Approver, Clock, Network } from "../agent/ports.ts";
import type { Recorder } from "../agent/recorder.ts";
import type { Requested } from "../agent/triggers.ts";
import type { Event, ServedFacts } from "../core/event.ts";
import type { Mode } from "../core/facts.ts";
import type { ModelSettings } from "../core/policy.ts";
import type { Problem } from "../core/problem.ts";
import type { ScriptReply } from "../provider/script.ts";
import { adopt } from "./adopt.ts";
import { modelName } from "./facts.ts";
import { type Ground, leaveGround } from "./ground.ts";
import type { Host } from "./host.ts";
import type { OpenedLog } from "./open_log.ts";
import type { Secrets } from "./secrets.ts";
import { sessionFolder, type SessionStore } from "./session_store.ts";
import type { Settings } from "./settings.ts";

export type SessionOptions = {
  readonly mode: Mode;
  readonly approver: Approver;
  /** For somebody whose yes may be kept for good. */
  readonly keeper?: (settings: Settings) => AnswerKeeper;
  readonly listeners: readonly ((event: Event) => void)[];
  readonly strict?: boolean;
  /** Asked for by name for the first turn: without them the session does not start. */
  readonly skills?: readonly Requested[];
  readonly script?: string;
  /** Replies that are read already, in the place of a model. */
  readonly replies?: readonly ScriptReply[];
  readonly resume?: string;
  /** What a server says of a new session. */
  readonly served?: ServedFacts;
  readonly continue?: boolean;
  /** For runs whose log must be the same everywhere. */
  readonly fixed?: {
    readonly clock: Clock;
    readonly network: Network;
    readonly session: string;
    readonly platform: string;
    readonly actor: string;
    readonly aliases: readonly { readonly value: string; readonly as: string }[];
  };
  /** In the place of one that is opened as the policy names it; several sessions may share it. */
  readonly store?: SessionStore;
};

/** How a session is named in what is told of it. */
export type SessionRef = {
  readonly id: string;
  readonly log: string;
  readonly seq: number;
  readonly hash: string;
  /** Names of those that were used in it. */
  readonly skills: readonly string[];
};

export type Session = {
  readonly id: string;
  readonly logPath: string;
  /** The agent for the next turn; another one after `adopt`. */
  readonly agent: Agent;
  /**
   * To be called before every turn but the first: takes the settings as they are now and looks for skills anew. What is
   * different is recorded, and told to the model in the turn that follows. Problems mean that the old ones stay whole, that
   * nothing was recorded, and that the next call tries again.
   */
  adopt(settings: Settings): Promise<readonly Problem[]>;
  /** Another model for the turns to come, reached as the one before. */
  useModel(model: ModelSettings): void;
  ref(): SessionRef;
  /** Gives everything back: the log, the servers and what holds commands. Not while a turn or `adopt` runs. */
  close(): Promise<void>;
};

/** What stays the same as long as a session is open. */
export type Frame = {
  readonly host: Host;
  readonly options: SessionOptions;
  readonly recorder: Recorder;
  readonly secrets: Secrets;
  readonly forks: Agent["forks"];
  readonly keepBefore: Agent["keepBefore"];
};

/** What a session lives on, which `adopt` exchanges whole. */
export type Live = Ground & { readonly agent: Agent };

export function liveSession(frame: Frame, { log, id, at }: OpenedLog, first: Live): Session {
  const { recorder, options } = frame;
  let live = first;
  const logPath = join(sessionFolder(at, id), "log.jsonl");
  return {
    id,
    logPath,
    get agent() {
      return live.agent;
    },
    async adopt(next) {
      const adopted = await adopt(frame, live, next);
      if (!adopted.ok) return adopted.problems;
      live = adopted.value;
      return [];
    },
    useModel(model) {
      const { agent } = live;
      const [from, to] = [agent.policy.model, model].map((m) => modelName(m, options));
      live = { ...live, agent: { ...agent, policy: { ...agent.policy, model } } };
      if (from !== undefined && to !== undefined && from !== to) recorder.emit("model.changed", { from, to });
    },
    ref: () => ({
      id,
      log: logPath,
      seq: recorder.state.seq,
      hash: recorder.state.hash,
      skills: Object.keys(recorder.state.recent),
    }),
    async close() {
      try {
        await log.close();
      } finally {
        await leaveGround(live);
      }
    },
  };
}
