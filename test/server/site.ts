// A host on a folder of its own, with scripts in the place of models.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { showProblem } from "../../src/core/problem.ts";
import type { Event } from "../../src/core/event.ts";
import type { ScriptReply } from "../../src/provider/script.ts";
import type { Caller, NewTurn, Outcome, SessionHost, TurnView } from "../../src/server/host.ts";
import { type HostOptions, openHost } from "../../src/server/open_host.ts";
import { makeSite, type Site } from "../support/skill_session.ts";

export const all: Caller = {
  name: "app",
  roles: ["read", "run", "approve", "admin"],
  profiles: "all",
  sessions: "all",
};

export const policyText = (more = "", permissions = `allow: ["shell(sleep *)"]`) =>
  `version: 1
model: {provider: script}
sandbox: {mode: "off"}
workspace: {trust: trusted}
permissions: {${permissions}}
${more}`;

export type HostSite = Site & {
  readonly notes: string[];
  open(replies: Replies, options?: Partial<HostOptions>): Promise<SessionHost>;
  log(session: string): string;
  events(session: string): readonly Event[];
  close(): Promise<void>;
};
/** Of every session that is opened, or of the nth. */
export type Replies = readonly ScriptReply[] | ((n: number) => readonly ScriptReply[]);

export function makeHostSite(policy = policyText()): HostSite {
  const site = makeSite(policy);
  const hosts: SessionHost[] = [];
  const notes: string[] = [];
  const log = (session: string) =>
    readFileSync(join(site.top, "home/.local/state/writ/sessions", session, "log.jsonl"), "utf8");
  return {
    ...site,
    notes,
    async open(replies, options = {}) {
      let n = 0;
      const opened = await openHost({
        machine: site.context.host,
        choice: { policy: [join(site.top, "policy.yaml")] },
        // Arguments of a call belong to one call: what was judged is remembered by them.
        model: () => ({ replies: structuredClone(typeof replies === "function" ? replies(n++) : replies) }),
        note: (line) => notes.push(line),
        ...options,
      });
      if (!opened.ok) throw new Error(opened.problems.map(showProblem).join("\n"));
      hosts.push(opened.value);
      return opened.value;
    },
    log,
    events: (session) => log(session).trim().split("\n").map((line) => JSON.parse(line) as Event),
    async close() {
      for (const host of hosts) await host.drain({ graceMs: 0 });
      site.remove();
    },
  };
}

/** The value, or the code of the refusal as an error. */
export function got<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new Error(`${outcome.refusal.code}: ${outcome.refusal.detail}`);
}

export function codeOf(outcome: Outcome<unknown>): string {
  return outcome.ok ? "ok" : outcome.refusal.code;
}

export async function newSession(host: SessionHost, caller = all, wanted = {}): Promise<string> {
  return got(await host.createSession(caller, wanted)).value.id;
}

export const turnOf = (input: string, more: Partial<NewTurn> = {}): NewTurn => ({
  input,
  onBusy: "reject",
  onAsk: "wait",
  ...more,
});

const signal = new AbortController().signal;

export async function ended(host: SessionHost, session: string, turn: string): Promise<TurnView> {
  return got(await host.getTurn(all, session, turn, { ms: 20_000, until: "end", signal }));
}

/** Waits until the turn has this status, or has ended. */
export async function reaches(host: SessionHost, session: string, turn: string, status: TurnView["status"]) {
  for (;;) {
    const view = got(await host.getTurn(all, session, turn));
    if (view.status === status || view.status === "completed" || view.status === "failed") return view;
    await host.getTurn(all, session, turn, { ms: 5_000, until: "change", signal });
  }
}

/** Runs a turn to its end. */
export async function says(host: SessionHost, session: string, input: string): Promise<TurnView> {
  const turn = got(await host.submitTurn(all, session, turnOf(input))).value;
  return await ended(host, session, turn.id);
}

/** Commands that run now and hold this text. */
export function running(text: string): number {
  if (!existsSync("/proc")) return 0;
  return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text);
    } catch {
      return false;
    }
  }).length;
}
