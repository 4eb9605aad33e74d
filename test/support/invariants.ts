// What must hold of every session, whatever a model asks for and whatever fails around it: each returns what does not, by sentence.
import { Buffer } from "node:buffer";
import { canonicalJson } from "../../src/core/text.ts";
import type { Event } from "../../src/core/event.ts";

/** Which of these secrets stand in a text, plain or encoded. */
export function told(text: string, secrets: { readonly [name: string]: string }): readonly string[] {
  return Object.entries(secrets).flatMap(([name, value]) => {
    const bytes = Buffer.from(value);
    const forms = [value, bytes.toString("hex"), bytes.toString("base64").slice(0, -4)];
    return forms.some((form) => text.includes(form)) ? [name] : [];
  });
}

/** Characters that would steer a terminal; lines end by newlines. */
export function raw(text: string): readonly string[] {
  return /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/.test(text) ? ["a control character"] : [];
}

/** Tools that were started without an allow. */
export function unallowed(events: readonly Event[]): readonly string[] {
  const allowed = new Set<string>();
  const faults: string[] = [];
  for (const event of events) {
    if (event.type === "permission.resolved" && event.data.decision === "allow") allowed.add(event.data.call);
    if (event.type === "tool.started" && !allowed.has(event.data.call)) {
      faults.push(`${event.data.tool} was started without an allow`);
    }
  }
  return faults;
}

/** Turns that went beyond these limits, or that did not end once. */
export function overLimit(
  events: readonly Event[],
  limits: { readonly iterations: number; readonly toolCalls: number },
): readonly string[] {
  const faults: string[] = [];
  for (const turn of new Set(events.flatMap((e) => e.turn ?? []))) {
    const within = events.filter((e) => e.turn === turn);
    const count = (type: Event["type"]) => within.filter((e) => e.type === type).length;
    if (count("context.built") > limits.iterations) faults.push(`turn ${turn}: too many iterations`);
    if (count("tool.started") > limits.toolCalls) faults.push(`turn ${turn}: too many calls`);
    if (count("turn.completed") !== 1) faults.push(`turn ${turn}: not ended once`);
  }
  return faults;
}

/** Calls that do not have one result each, in their order. */
export function unanswered(events: readonly Event[]): readonly string[] {
  const calls = events.flatMap((e) =>
    e.type === "model.completed" ? e.data.content.flatMap((b) => b.type === "tool_use" ? [b.id] : []) : []
  );
  const results = events.flatMap((e) =>
    e.type === "tool.completed" || e.type === "tool.interrupted" ? [e.data.call] : []
  );
  return canonicalJson(calls) === canonicalJson(results)
    ? []
    : [`calls ${calls} have the results ${results}`];
}
