// Figures of the process at this moment, for whoever watches it.
import type { Figure } from "./host.ts";
import type { Hub } from "./hub.ts";

export function figures(hub: Hub): readonly Figure[] {
  const entries = [...hub.entries.values()];
  const gauge = (name: string, help: string, value: number): Figure => ({
    name,
    help,
    type: "gauge",
    samples: [{ value }],
  });
  const counter = (
    name: string,
    help: string,
    label: string,
    counts: ReadonlyMap<string, number>,
  ): Figure => ({
    name,
    help,
    type: "counter",
    samples: [...counts].map(([kind, value]) => ({ labels: { [label]: kind }, value })),
  });
  const { turns, permissions, tokens } = hub.counters;
  const { revision, lastError } = hub.policies.status();
  return [
    gauge("writ_sessions", "sessions that are known", entries.length),
    gauge(
      "writ_sessions_loaded",
      "sessions that are held open",
      entries.filter((e) => e.live !== undefined).length,
    ),
    gauge("writ_turns_running", "turns that run", hub.busy.size),
    gauge("writ_turn_queue", "turns that wait", entries.reduce((n, e) => n + e.queue.length, 0)),
    gauge(
      "writ_permissions_pending",
      "questions that wait for an answer",
      entries.reduce((n, e) => n + [...e.pending.values()].filter((p) => p.answer === undefined).length, 0),
    ),
    counter("writ_turns_total", "turns that ended", "stop_reason", turns),
    counter("writ_permission_total", "calls that were decided", "decision", permissions),
    counter("writ_model_tokens_total", "tokens of replies", "kind", tokens),
    {
      name: "writ_policy_info",
      help: "the policy in force",
      type: "gauge",
      samples: [{ labels: { revision }, value: 1 }],
    },
    gauge(
      "writ_policy_failed",
      "1 when the newest attempt to load the policy failed",
      lastError === undefined ? 0 : 1,
    ),
  ];
}
