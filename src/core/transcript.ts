// What the model is shown, in order; requests are rendered from it.
import type { AssistantBlock } from "./message.ts";
import { replacedMarker, skillMarker } from "./skill.ts";

export type Entry =
  | { readonly kind: "user" | "environment"; readonly text: string }
  | { readonly kind: "skill"; readonly name: string; readonly text: string; readonly live: boolean }
  /** What stands for something that is shown no more: a skill that has ended, or, after a compaction, what was before it. */
  | { readonly kind: "note"; readonly of: "ended" | "summary" | "refused" | "gates"; readonly text: string }
  | { readonly kind: "assistant"; readonly content: readonly AssistantBlock[] }
  | ResultEntry;
/** With the seq of the event that it comes from. */
export type Placed = Entry & { readonly seq: number };
export type ResultEntry = {
  readonly kind: "result";
  readonly call: string;
  readonly ok: boolean;
  readonly content: string;
  /** The call was refused. */
  readonly denied?: true;
  /** Characters that a compaction cut out. */
  readonly cut?: number;
};

/** The body of this skill, if it is shown, is in force no more. The same value when it is not shown. */
export function withoutForce(transcript: readonly Placed[], name: string): readonly Placed[] {
  const isIt = (e: Placed) => e.kind === "skill" && e.name === name && e.live;
  return transcript.some(isIt)
    ? transcript.map((e): Placed => e.kind === "skill" && isIt(e) ? { ...e, live: false } : e)
    : transcript;
}

/** Bodies that are in force no more, each as a marker. */
export function withMarkers(transcript: readonly Placed[]): readonly Placed[] {
  const live = new Set(transcript.flatMap((e) => e.kind === "skill" && e.live ? [e.name] : []));
  const marker = (name: string) => live.has(name) ? replacedMarker(name) : skillMarker(name);
  return transcript.map((e): Placed =>
    e.kind === "skill" && !e.live ? { kind: "note", of: "ended", seq: e.seq, text: marker(e.name) } : e
  );
}

/** The result of a call that has none. */
export function interruptedText(started: boolean): string {
  return started
    ? "[interrupted: the call was running when the session ended; whether it had an effect is not known]"
    : "[interrupted: the call was not started]";
}

/** The text of the newest assistant message; empty when it has none. */
export function finalText(state: { readonly transcript: readonly Entry[] }): string {
  const last = state.transcript.findLast((e) => e.kind === "assistant");
  if (last?.kind !== "assistant") return "";
  return last.content.flatMap((b) => (b.type === "text" ? [b.text] : [])).join("");
}
