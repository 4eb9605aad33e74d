// Sessions as a whole: listed, changed, gone on with elsewhere, ended.
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { replay } from "../agent/open.ts";
import type { Placed } from "../core/transcript.ts";
import { type Entry, eventsOf, stateOf, trackOf, wake } from "./entry.ts";
import type {
  Caller,
  Done,
  Idempotency,
  MessageView,
  NewSession,
  Outcome,
  Page,
  PageRequest,
  SessionStatus,
  SessionView,
} from "./host.ts";
import { find, guarded, type Hub, maySee, once } from "./hub.ts";
import { unload, withLoaded } from "./loading.ts";
import { beginSession, madeBefore } from "./new_session.ts";
import { lacksRole, plain, refuse, value } from "./outcome.ts";
import { dropQueued } from "./turns.ts";
import { sessionView, statusOf } from "./view.ts";

/** As `SessionHost` says. */
export function listSessions(
  hub: Hub,
  caller: Caller,
  page: PageRequest & { readonly status?: SessionStatus; readonly label?: string },
): Outcome<Page<SessionView>> {
  const ids = [...hub.entries.keys()].sort().reverse();
  const start = page.cursor === undefined ? 0 : ids.findIndex((id) => id < (page.cursor ?? ""));
  const items: SessionView[] = [];
  for (const id of start < 0 ? [] : ids.slice(start)) {
    const entry = hub.entries.get(id);
    if (entry === undefined || !maySee(caller, entry) || !hasLabel(entry, page.label)) continue;
    if (page.status !== undefined && statusOf(entry) !== page.status) continue;
    const last = items.at(-1);
    if (last !== undefined && items.length === page.limit) return value({ items, next: last.id });
    items.push(sessionView(entry));
  }
  return value({ items });
}

/** `name` or `name=value`. */
function hasLabel({ served: { labels = {} } }: Entry, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  const [name = "", ...rest] = wanted.split("=");
  const is = Object.hasOwn(labels, name) ? labels[name] : undefined;
  return is !== undefined && (rest.length === 0 || is === rest.join("="));
}

/** As `SessionHost` says. */
export async function updateSession(
  hub: Hub,
  caller: Caller,
  id: string,
  change: Pick<NewSession, "title" | "metadata">,
  ifSeq: number | undefined,
): Promise<Outcome<SessionView>> {
  const found = lacksRole(caller, "run") ?? find(hub, caller, id);
  if (!found.ok) return found;
  const entry = found.value;
  if (trackOf(entry).closed) return refuse("session-closed", `the session \`${id}\` is closed`);
  return await guarded(() =>
    withLoaded(hub, entry, async ({ agent: { recorder } }) => {
      const { lastSeq } = trackOf(entry);
      if (ifSeq !== undefined && ifSeq !== lastSeq) {
        return refuse("precondition-failed", `the session has come to ${lastSeq}, expected ${ifSeq}`, {
          members: { etag: `"${lastSeq}"` },
        });
      }
      recorder.emit("session.described", change);
      await recorder.sync();
      return value(sessionView(entry));
    })
  );
}

/** As `SessionHost` says. */
export async function removeSession(
  hub: Hub,
  caller: Caller,
  id: string,
  { purge }: { readonly purge: boolean },
): Promise<Outcome<undefined>> {
  const lacking = lacksRole(caller, "run");
  if (lacking !== undefined) return lacking;
  const entry = hub.entries.get(id);
  if (entry === undefined) return value(undefined);
  if (!maySee(caller, entry)) {
    return entry.removed ? value(undefined) : refuse("session-not-found", `there is no session \`${id}\``);
  }
  return await guarded(async () => {
    await endWork(entry, "cancelled");
    if (!trackOf(entry).closed) {
      const closed = await withLoaded(hub, entry, async ({ agent: { recorder } }) => {
        recorder.emit("session.closed", { actor: caller.name });
        await recorder.sync();
        return value(undefined);
      });
      if (!closed.ok && !purge) return closed;
    }
    if (purge) entry.removed = true;
    const last = { track: entry.track, state: stateOf(entry) };
    await unload(entry);
    if (entry.served.ownWorkspace === true) rmSync(entry.cwd, { recursive: true, force: true });
    if (purge) {
      rmSync(dirname(entry.path), { recursive: true, force: true });
      hub.entries.delete(id);
    } else Object.assign(entry, last);
    wake(entry);
    return value(undefined);
  });
}

/** Ends what runs and waits in a session; resolves when it has ended. Throws LogFailure. */
export async function endWork(entry: Entry, reason: "cancelled" | "shutdown"): Promise<void> {
  await dropQueued(entry, () => true, reason);
  entry.running?.control.abort(reason === "shutdown" ? "SIGTERM" : "cancelled");
  await entry.running?.ended;
}

/** As `SessionHost` says. */
export async function forkSession(
  hub: Hub,
  caller: Caller,
  id: string,
  { atSeq }: { readonly atSeq?: number },
  request?: Idempotency,
): Promise<Outcome<Done<SessionView>>> {
  const found = lacksRole(caller, "run") ?? find(hub, caller, id);
  if (!found.ok) return found;
  const entry = found.value;
  return await once(hub, request, () => madeBefore(hub, caller, request), async () => {
    const events = eventsOf(entry).filter((e) => atSeq === undefined || e.seq <= atSeq);
    const state = replay(events);
    if (state.turn.open || events.length === 0) {
      return refuse(
        "bad-request",
        `a turn is open at ${atSeq ?? state.seq}; name the end of a turn in \`atSeq\``,
      );
    }
    const { ownWorkspace: _own, request: _request, ...rest } = trackOf(entry).served ?? entry.served;
    const served = { ...rest, owner: caller.name, ...(request === undefined ? {} : { request }) };
    const made = await beginSession(hub, served, entry.cwd);
    if (!made.ok) return made;
    const recorder = made.value.live?.agent.recorder;
    recorder?.emit("fork.history", { history: "full", transcript: state.transcript.map(asHistory) });
    await recorder?.sync();
    return value(sessionView(made.value));
  });
}

// No skill is active in it yet.
function asHistory({ seq: _, ...entry }: Placed) {
  return entry.kind === "skill" ? { ...entry, live: false } : entry;
}

/** As `SessionHost` says. */
export function messages(
  hub: Hub,
  caller: Caller,
  id: string,
  { limit, cursor }: PageRequest,
): Outcome<Page<MessageView>> {
  const found = find(hub, caller, id);
  if (!found.ok) return found;
  const after = cursor === undefined ? 0 : /^\d{1,15}$/.test(cursor) ? Number(cursor) : undefined;
  if (after === undefined) return refuse("bad-cursor", "this is no cursor of this list");
  const all = stateOf(found.value).transcript.flatMap(messageOf).slice(after);
  const items = all.slice(0, limit);
  return value({ items, ...(all.length > limit ? { next: String(after + limit) } : {}) });
}

// What Writ itself says to the model is no message of the conversation, save a summary, which stands for some.
function messageOf(entry: Placed): readonly MessageView[] {
  const { seq } = entry;
  switch (entry.kind) {
    case "user":
      return [{ seq, role: "user", content: entry.text }];
    case "assistant":
      return [{ seq, role: "assistant", content: plain(entry.content) }];
    case "result": {
      const { call, ok, content } = entry;
      return [{ seq, role: "tool", content: { call, ok, content } }];
    }
    case "note":
      return entry.of === "summary" ? [{ seq, role: "user", content: entry.text }] : [];
    default:
      return [];
  }
}
