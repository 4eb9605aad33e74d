// A session of its own on a folder of its own, with a script for a model: for what happens between turns.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Requested } from "../../src/agent/triggers.ts";
import { runTurn } from "../../src/agent/turn.ts";
import { nobody } from "../../src/cli/approver.ts";
import { loadCatalog } from "../../src/session/catalog.ts";
import type { Context } from "../../src/cli/command.ts";
import { openSession } from "../../src/session/open.ts";
import type { Session } from "../../src/session/session.ts";
import { createOutput } from "../../src/cli/output.ts";
import { loadSettings } from "../../src/cli/settings.ts";
import type { Settings } from "../../src/session/settings.ts";
import { buildContext } from "../../src/core/context.ts";
import type { Event, EventData, EventType } from "../../src/core/event.ts";
import { showProblem } from "../../src/core/problem.ts";
import { loadPolicy } from "../../src/load/load_policy.ts";
import type { ScriptReply } from "../../src/provider/script.ts";

export type Site = {
  /** Holds `home`, `ws` and `policy.yaml`. */
  readonly top: string;
  readonly context: Context;
  put(path: string, text: string | Uint8Array): void;
  drop(path: string): void;
  settings(options?: { readonly trust?: boolean }): Promise<Settings>;
  /** Answers the question of trust for the workspace as it is now. */
  trust(): Promise<void>;
  remove(): void;
};

const output = createOutput({ results: false, notes: false });

export function makeSite(policy = "version: 1\nmodel: {provider: script}\n"): Site {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "writ-site-")));
  const put = (path: string, text: string | Uint8Array) => {
    mkdirSync(dirname(join(top, path)), { recursive: true });
    writeFileSync(join(top, path), text);
  };
  put("policy.yaml", policy);
  mkdirSync(join(top, "home"));
  mkdirSync(join(top, "ws", ".git"), { recursive: true });
  const context: Context = {
    output,
    host: {
      args: [],
      env: {},
      cwd: join(top, "ws"),
      home: join(top, "home"),
      user: "u",
      platform: "linux-x64",
      stdinIsTerminal: false,
      stdoutIsTerminal: false,
      stderrIsTerminal: false,
      machineFolder: join(top, "machine"),
    },
  };
  return {
    top,
    context,
    put,
    drop: (path) => rmSync(join(top, path), { recursive: true }),
    async settings(options = {}) {
      const loaded = await loadSettings(
        context,
        { policy: [join(top, "policy.yaml")], ...options },
        undefined,
        "silent",
      );
      if (!loaded.ok) throw new Error(loaded.problems.map(showProblem).join("\n"));
      return loaded.value;
    },
    async trust() {
      const loaded = await loadPolicy({
        at: { ...context.host, env: {} },
        version: "0",
        policies: [join(top, "policy.yaml")],
        askTrust: async () => "trusted",
      });
      if (!loaded.ok) throw new Error(loaded.problems.map(showProblem).join("\n"));
    },
    remove: () => rmSync(top, { recursive: true, force: true }),
  };
}

export function says(text: string): ScriptReply {
  return { text, calls: [], stop: "end" };
}

export function calls(tool: string, args: { readonly [name: string]: string }): ScriptReply {
  return { text: "", calls: [{ tool, args }], stop: "tool_use" };
}

export type Live = {
  readonly session: Session;
  readonly events: readonly Event[];
  /** The data of all events of a type so far. */
  of<T extends EventType>(type: T): readonly EventData[T][];
  turn(message: string, skills?: readonly (string | Requested)[]): Promise<string>;
  /** The next request as it would be now. */
  request(): ReturnType<typeof buildContext>["request"];
};

/** Throws when the session does not start. */
export async function openLive(
  site: Site,
  replies: readonly ScriptReply[],
  options: {
    readonly trust?: boolean;
    readonly resume?: string;
    readonly skills?: readonly Requested[];
    readonly onEvent?: (event: Event) => void;
  } = {},
): Promise<Live> {
  const settings = await site.settings(options.trust === undefined ? {} : { trust: options.trust });
  const events: Event[] = [];
  const opened = await openSession(site.context.host, settings, loadCatalog(settings), {
    mode: "unattended",
    approver: nobody,
    listeners: [(event) => events.push(event), options.onEvent ?? (() => {})],
    replies,
    ...(options.skills === undefined ? {} : { skills: options.skills }),
    ...(options.resume === undefined ? {} : { resume: options.resume }),
  });
  if (!opened.ok) throw new Error(opened.problems.map(showProblem).join("\n"));
  const session = opened.value;
  return {
    session,
    events,
    of: <T extends EventType>(type: T) => events.flatMap((e) => e.type === type ? [e.data] : []) as never,
    async turn(message, skills = []) {
      const end = await runTurn(session.agent, {
        message,
        actor: "u",
        skills: skills.map((s) => typeof s === "string" ? { name: s, arguments: "" } : s),
        signal: new AbortController().signal,
      });
      return end.stop === "final" ? end.text : `${end.stop}: ${end.message ?? ""}`;
    },
    request() {
      const { agent } = session;
      const { state } = agent.recorder;
      return buildContext({
        state,
        stable: agent.preface.now.stable,
        tools: [],
        model: "m",
        maxOutputTokens: 1,
      }).request;
    },
  };
}

export function skillText(
  name: string,
  description = `Text of ${name}`,
  more = "",
  body = "Body.\n",
): string {
  return `---\nname: ${name}\ndescription: ${description}\n${more}---\n${body}`;
}
