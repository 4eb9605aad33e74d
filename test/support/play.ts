// Calls of a session through the executable, one after the other, and what each gave.
import type { SandboxFacts } from "../../src/core/event.ts";
import { type Ended, eventsOf, type Machine, soundLog } from "./machine.ts";
import { binary } from "./runtimes.ts";

export type Result = {
  readonly ok: boolean;
  readonly code?: string;
  readonly text: string;
  readonly box?: string;
};
export type Played = {
  readonly ended: Ended;
  /** Of all calls, in their order. */
  readonly results: readonly Result[];
  readonly facts: string | SandboxFacts | undefined;
};

/** Calls a tool by its name with these arguments. */
export type Call = { readonly [tool: string]: object };

/**
 * Runs a policy of these parts against a model that makes these calls, one a reply. `policy`: further top-level keys, a line
 * each; none of them `model` or `permissions`.
 */
export async function play(
  m: Machine,
  at: {
    readonly policy: readonly string[];
    readonly calls: readonly Call[];
    readonly allow: unknown;
    readonly start?: (argv: readonly [string, ...string[]]) => readonly [string, ...string[]];
    readonly env?: { readonly [name: string]: string };
  },
): Promise<Played> {
  const replies = at.calls.map((call) => `- call: ${JSON.stringify(call)}\n`);
  m.write("script.yaml", `${replies.join("")}- text: done\n`);
  const policy = m.write(
    "policy.yaml",
    [
      "version: 1",
      "model: {provider: script, script: script.yaml}",
      ...at.policy,
      `permissions: {default: allow, allow: ${JSON.stringify(at.allow)}}`,
      "",
    ].join("\n"),
  );
  const argv = [binary, "run", "--unattended", "--policy", policy, "go"] as const;
  const ended = await m.program(at.start === undefined ? argv : at.start(argv), { env: at.env ?? {} });
  const events = m.ids().length === 0 ? [] : await soundLog(m);
  const started = eventsOf(events, "tool.started");
  return {
    ended,
    facts: eventsOf(events, "session.started")[0]?.data.sandbox,
    results: eventsOf(events, "tool.completed").map(({ data }) => {
      const box = started.find((s) => s.data.call === data.call)?.data.box;
      return {
        ok: data.ok,
        ...(data.code === undefined ? {} : { code: data.code }),
        text: data.result,
        ...(box === undefined ? {} : { box }),
      };
    }),
  };
}
