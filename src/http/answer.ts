// What the host says → what is answered.
import type { Done, Outcome } from "../server/host.ts";
import type { Answer } from "./operation.ts";

/** A refusal goes out as the problem of its code, a value as `render` says. */
export function answer<T>(outcome: Outcome<T>, render: (value: T) => Answer): Answer {
  return outcome.ok ? render(outcome.value) : { refused: outcome.refusal };
}

/** Of a request that may have been carried out before: then the answer says so. */
export function answerDone<T>(
  outcome: Outcome<Done<T>>,
  render: (value: T) => { readonly status: number; readonly value: unknown; readonly headers?: Headers_ },
): Answer {
  return answer(outcome, ({ value, replayed }) => {
    const rendered = render(value);
    return replayed ? { ...rendered, headers: { ...rendered.headers, ...replayedHeader } } : rendered;
  });
}

export const replayedHeader = { "idempotency-replayed": "true" } as const;
type Headers_ = { readonly [name: string]: string };

export function sessionPath(session: string): string {
  return `/v1/sessions/${encodeURIComponent(session)}`;
}
