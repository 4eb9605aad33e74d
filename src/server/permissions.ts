// Questions that callers answer: who is asked, whose answer counts, and what one is told who comes too late.
import type { Json } from "../core/message.ts";
import { type Entry, questionsOf } from "./entry.ts";
import type {
  Caller,
  Done,
  Idempotency,
  Outcome,
  Page,
  PageRequest,
  PermissionAnswer,
  PermissionView,
} from "./host.ts";
import { find, type Hub, maySee, once, recorded, waitFor } from "./hub.ts";
import { lacksRole, refuse, value } from "./outcome.ts";
import type { QuestionTrack } from "./track.ts";
import { inputHash, permissionView } from "./view.ts";

/** How long an answer may take to be recorded. */
const recordMs = 30_000;

/** As `SessionHost` says. */
export function listPermissions(
  hub: Hub,
  caller: Caller,
  page: PageRequest & { readonly status?: PermissionView["status"]; readonly session?: string },
): Outcome<Page<PermissionView>> {
  const lacking = lacksRole(caller, "approve");
  if (lacking !== undefined) return lacking;
  const { session, status } = page;
  const found = session === undefined ? undefined : find(hub, caller, session);
  if (found?.ok === false) return found;
  // Of one that is put away nothing is pending.
  const entries = found !== undefined
    ? [found.value]
    : [...hub.entries.values()].filter((e) =>
      maySee(caller, e) && (status !== "pending" || e.pending.size > 0)
    );
  const all = entries.flatMap((entry) =>
    viewsOf(entry).filter((v) => status === undefined || v.status === status)
  ).sort((a, b) => a.requestedAt < b.requestedAt ? -1 : a.requestedAt > b.requestedAt ? 1 : 0);
  const start = page.cursor === undefined
    ? 0
    : all.findIndex((v) => `${v.session}/${v.id}` === page.cursor) + 1;
  if (page.cursor !== undefined && start === 0) {
    return refuse("bad-cursor", "the cursor names no question of this list; begin again without one");
  }
  const items = all.slice(start, start + page.limit);
  const last = items.at(-1);
  const more = last !== undefined && start + items.length < all.length;
  return value({ items, ...(more ? { next: `${last.session}/${last.id}` } : {}) });
}

// A call that is being decided right now is no question yet.
function viewsOf(entry: Entry): readonly PermissionView[] {
  return questionsOf(entry)
    .filter(({ id, question: q }) => q.resolved !== undefined || q.left === true || entry.pending.has(id))
    .map(({ id, question }) => permissionView(entry, id, question, entry.pending.get(id)));
}

/** As `SessionHost` says. */
export function getPermission(
  hub: Hub,
  caller: Caller,
  session: string,
  id: string,
): Outcome<PermissionView> {
  const found = lacksRole(caller, "approve") ?? find(hub, caller, session);
  return found.ok ? viewOf(found.value, id) : found;
}

function viewOf(entry: Entry, id: string): Outcome<PermissionView> {
  const question = questionOf(entry, id);
  if (question === undefined || (isOpen(question) && !entry.pending.has(id))) {
    return refuse("permission-not-found", `the session \`${entry.id}\` was asked no question \`${id}\``);
  }
  return value(permissionView(entry, id, question, entry.pending.get(id)));
}

function questionOf(entry: Entry, id: string): QuestionTrack | undefined {
  return questionsOf(entry).find((q) => q.id === id)?.question;
}

function isOpen({ resolved, left }: QuestionTrack): boolean {
  return resolved === undefined && left !== true;
}

/** Of several answers to one question the first is recorded; the same one again gets what the first got. */
export async function answerPermission(
  hub: Hub,
  caller: Caller,
  session: string,
  id: string,
  answer: PermissionAnswer,
  request?: Idempotency,
): Promise<Outcome<Done<PermissionView>>> {
  const found = lacksRole(caller, "approve") ?? find(hub, caller, session);
  if (!found.ok) return found;
  const entry = found.value;
  const before = () => {
    const was = recorded(entry, request);
    return was === undefined || was === "other-body" ? was : viewOf(entry, id);
  };
  return await once(hub, request, before, async () => {
    const result = await settle(entry, id, caller, answer);
    const seq = result.ok ? result.value.seq : undefined;
    const recorder = entry.live?.agent.recorder;
    if (request !== undefined && seq !== undefined) recorder?.emit("request.done", { request, of: seq });
    // Nobody is told of an answer that a loss of power could take back.
    if (seq !== undefined) await recorder?.sync();
    return result;
  });
}

async function settle(
  entry: Entry,
  id: string,
  caller: Caller,
  answer: PermissionAnswer,
): Promise<Outcome<PermissionView>> {
  const view = viewOf(entry, id);
  if (!view.ok) return view;
  const question = questionOf(entry, id);
  const pending = entry.pending.get(id);
  const isOver = () => {
    const now = questionOf(entry, id);
    return now === undefined || !isOpen(now);
  };
  if (question === undefined || pending === undefined || pending.answer !== undefined) {
    await waitFor(entry, isOver, { ms: recordMs });
    return late(entry, id, answer);
  }
  if (answer.ifInputSha256 !== undefined && answer.ifInputSha256 !== inputHash(question)) {
    return refuse("precondition-failed", "the input of the call is another one; look at it again", {
      members: { etag: inputHash(question) },
    });
  }
  if (answer.scope === "session" && pending.approval.grant === undefined) {
    return refuse("policy-forbids", "this question is asked every time; answer it with the scope `once`", {
      members: { rule: ruleOf(view.value), maxScope: "once" },
    });
  }
  const { decision, scope, reason } = answer;
  pending.answer = {
    allow: decision === "allow",
    by: "user",
    actor: caller.name,
    ...(decision === "allow" ? { scope } : {}),
    ...(reason === undefined ? {} : { reason }),
  };
  pending.settle();
  await waitFor(entry, isOver, { ms: recordMs });
  return viewOf(entry, id);
}

function ruleOf({ causes }: PermissionView): Json {
  const rule = causes.find((c) => c.by === "rule");
  return rule === undefined ? "" : JSON.parse(JSON.stringify(rule)) as Json;
}

function late(entry: Entry, id: string, { decision }: PermissionAnswer): Outcome<PermissionView> {
  const view = viewOf(entry, id);
  if (!view.ok) return view;
  const { status, resolvedBy, seq, decision: was } = view.value;
  if (status === "expired") {
    return refuse("permission-expired", "nobody answered in time, or the turn has ended: it was denied", {
      members: { expiredAt: view.value.expiresAt ?? view.value.requestedAt },
    });
  }
  if (was === decision) return view;
  return refuse("permission-resolved", `it was answered with \`${was}\` by \`${resolvedBy}\``, {
    members: { decision: was ?? "deny", resolvedBy: resolvedBy ?? "", seq: seq ?? 0 },
  });
}
