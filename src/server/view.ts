// Sessions, turns and questions as callers see them.
import { createHash } from "node:crypto";
import { canonicalJson } from "../core/text.ts";
import { type Entry, type Pending, stateOf, stillRuns, trackOf } from "./entry.ts";
import type { PermissionView, SessionStatus, SessionView, TurnStatus, TurnView } from "./host.ts";
import type { QuestionTrack, TurnTrack } from "./track.ts";

export function sessionView(entry: Entry): SessionView {
  const track = trackOf(entry);
  const state = stateOf(entry);
  const served = track.served ?? entry.served;
  const { title, profile, owner, labels, metadata } = served;
  const turn = entry.running?.id ?? track.turns.at(-1)?.id;
  return {
    id: entry.id,
    ...(title === undefined ? {} : { title }),
    status: statusOf(entry),
    lastSeq: track.lastSeq,
    ...(turn === undefined ? {} : { turn }),
    queueDepth: entry.queue.length,
    activeSkills: state.active.map(({ name, trigger }) => {
      const version = track.versions[name];
      return { name, ...(version === undefined ? {} : { version }), by: trigger };
    }),
    policyRevision: track.policyRevision,
    model: state.facts?.model ?? "",
    workspace: state.facts?.workspace ?? entry.cwd,
    ...(profile === undefined ? {} : { profile }),
    owner,
    ...(labels === undefined ? {} : { labels }),
    ...(metadata === undefined ? {} : { metadata }),
    usage: state.usage,
    ...(state.costUsd === undefined ? {} : { costUsd: state.costUsd }),
    createdAt: track.startedAt,
    updatedAt: track.updatedAt,
  };
}

export function statusOf(entry: Entry): SessionStatus {
  if (entry.running !== undefined && stillRuns(entry, entry.running.id)) {
    return isAsked(entry) ? "waiting_permission" : "running";
  }
  if (entry.queue.length > 0) return "queued";
  return trackOf(entry).closed ? "closed" : "idle";
}

function isAsked({ pending }: Entry): boolean {
  return [...pending.values()].some((p) => p.answer === undefined);
}

export function turnView(entry: Entry, turn: TurnTrack): TurnView {
  const status = turnStatus(entry, turn);
  const { id, stopReason, denied, usage, costUsd, firstSeq, lastSeq } = turn;
  const error = errorOf(turn, status);
  return {
    id,
    status,
    ...(stopReason === undefined ? {} : { stopReason }),
    ...(turn.text === "" || turn.stage !== "ended" ? {} : { output: { text: turn.text } }),
    ...(error === undefined ? {} : { error }),
    denied,
    usage,
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(firstSeq === undefined ? {} : { firstSeq }),
    ...(lastSeq === undefined ? {} : { lastSeq }),
  };
}

function errorOf(
  { stopReason, message, dropped }: TurnTrack,
  status: TurnStatus,
): TurnView["error"] | undefined {
  if (status !== "failed" && status !== "interrupted") return undefined;
  const code = stopReason ?? dropped ?? "failed";
  return { code, message: message ?? `the turn ended: ${code}` };
}

function turnStatus(entry: Entry, { id, stage, stopReason, dropped }: TurnTrack): TurnStatus {
  switch (stage) {
    case "queued":
      return "queued";
    case "running": {
      const { running } = entry;
      if (running?.id !== id) return running === undefined ? "interrupted" : "running";
      if (running.control.signal.aborted) return "cancelling";
      return isAsked(entry) ? "waiting_permission" : "running";
    }
    case "dropped":
      return dropped === "cancelled" ? "cancelled" : dropped === "failed" ? "failed" : "interrupted";
    case "ended":
      switch (stopReason) {
        case "final":
          return "completed";
        case "cancelled":
        case "interrupted":
          return stopReason;
        default:
          return "failed";
      }
  }
}

/** Statuses that will not change any more. */
export function hasEnded(status: TurnStatus): boolean {
  return !["queued", "running", "waiting_permission", "cancelling"].includes(status);
}

export function permissionView(
  entry: Entry,
  id: string,
  question: QuestionTrack,
  pending: Pending | undefined,
): PermissionView {
  const { turn, call, tool, input, risk, sourcedBy, preview, requestedAt, resolved } = question;
  const grant = pending?.approval.grant;
  const causes = resolved?.causes ?? pending?.approval.verdict.causes ?? [];
  const by = resolved?.answer?.actor ?? resolved?.answer?.by;
  const running = turn ?? entry.running?.id;
  return {
    id,
    session: entry.id,
    ...(running === undefined ? {} : { turn: running }),
    status: permissionStatus(question, pending),
    call,
    tool,
    input,
    inputSha256: inputHash(question),
    risk,
    sourcedBy,
    ...(preview === undefined ? {} : { preview }),
    causes,
    ...(grant === undefined ? {} : { rule: grant }),
    maxScope: grant === undefined ? "once" : "session",
    requestedAt,
    ...(pending === undefined ? {} : { expiresAt: new Date(pending.expiresMs).toISOString() }),
    onTimeout: "deny",
    ...(resolved === undefined ? {} : { decision: resolved.decision, seq: resolved.seq }),
    ...(by === undefined ? {} : { resolvedBy: by }),
  };
}

export function inputHash({ input }: QuestionTrack): string {
  return createHash("sha256").update(canonicalJson(input)).digest("hex");
}

function permissionStatus(
  { resolved, left }: QuestionTrack,
  pending: Pending | undefined,
): PermissionView["status"] {
  if (resolved !== undefined) {
    const by = resolved.answer?.by;
    return by === "timeout" || by === "restart" ? "expired" : "resolved";
  }
  return left === true || pending === undefined ? "expired" : "pending";
}
