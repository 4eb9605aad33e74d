// Ends a request that does not end by itself, and is the only fetch that the SDK gets: no redirects, bounded answers.
import { ModelFailure } from "../agent/ports.ts";
import { cancelled } from "./failure.ts";

/** Timers beyond this fire at once. */
const longestTimer = 2 ** 31 - 1;
const longestReply = 64 * 1024 * 1024;
const longestErrorBody = 64 * 1024;

export type Watchdog = {
  /** Aborted by the caller's signal or by a limit. */
  readonly signal: AbortSignal;
  /** Why the request was ended; undefined while it was not. */
  readonly failure: ModelFailure | undefined;
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Ends what is still open. To be called in every case. */
  close(): void;
};

/**
 * Starts the clock: `timeoutMs` for the whole reply, `idleTimeoutMs` between two pieces of its body. What had no answer
 * yet may be asked again; a reply that was too long would be too long again.
 */
export function watch(
  limits: { readonly timeoutMs: number; readonly idleTimeoutMs: number },
  caller: AbortSignal,
): Watchdog {
  const controller = new AbortController();
  let failure: ModelFailure | undefined;
  let answered = false;
  let stopIdle = () => {};
  const end = (reason: ModelFailure) => {
    failure ??= reason;
    controller.abort(reason);
  };
  const onCancel = () => end(cancelled());
  caller.addEventListener("abort", onCancel, { once: true });
  if (caller.aborted) onCancel();
  const deadline = setTimeout(
    () => end(timedOut(limits.timeoutMs, answered)),
    Math.min(limits.timeoutMs, longestTimer),
  );

  return {
    signal: controller.signal,
    get failure() {
      return failure;
    },
    async fetch(input, init) {
      const response = await rejectOnAbort(
        ownFetch(input, { ...init, signal: controller.signal }),
        controller.signal,
      );
      answered = true;
      const idle = idleTimer(limits.idleTimeoutMs, () => end(stalled(limits.idleTimeoutMs)));
      stopIdle = idle.stop;
      if (response.body === null) return response;
      const whole = response.ok;
      const cap = whole ? longestReply : longestErrorBody;
      const body = watchedBody(response.body, cap, controller.signal, {
        piece: idle.restart,
        overflow: () => whole ? end(tooLarge()) : undefined,
      });
      return new Response(body, { status: response.status, headers: response.headers });
    },
    close() {
      clearTimeout(deadline);
      stopIdle();
      caller.removeEventListener("abort", onCancel);
      controller.abort();
    },
  };
}

// `verbose` and `timeout` are Bun's: its own idle limit would fire before ours, and a variable of the environment could
// make it print requests. Other runtimes ignore them.
function ownFetch(input: string | URL | Request, init: RequestInit): Promise<Response> {
  const bun = { verbose: false, timeout: false };
  return fetch(input, { ...init, ...bun, redirect: "manual" });
}

// At most `cap` bytes; what is beyond is told by `overflow` and cut off.
function watchedBody(
  source: ReadableStream<Uint8Array>,
  cap: number,
  signal: AbortSignal,
  on: { piece(): void; overflow(): void },
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let left = cap;
  let ended = false;
  const end = (reason?: unknown) => {
    ended = true;
    void reader.cancel(reason).catch(() => {});
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      // A stream that was aborted must fail at once, whatever the runtime does with a pending read.
      signal.addEventListener("abort", () => {
        if (ended) return;
        end(signal.reason);
        controller.error(signal.reason);
      }, { once: true });
    },
    async pull(controller) {
      try {
        let next = await reader.read();
        // An empty piece would end the pulling: the stream asks again only when it was given something.
        while (!ended && !next.done && next.value.byteLength === 0) next = await reader.read();
        const { done, value } = next;
        if (ended) return;
        on.piece();
        const fits = value?.subarray(0, left);
        if (fits !== undefined && fits.byteLength > 0) controller.enqueue(fits);
        if (!done && value.byteLength <= left) {
          left -= value.byteLength;
          return;
        }
        if (!done) on.overflow();
        if (ended) return;
        end();
        controller.close();
      } catch (error) {
        if (ended) return;
        ended = true;
        controller.error(error);
      }
    },
    cancel: end,
  });
}

// One timer for many pieces: a piece only notes the time.
function idleTimer(ms: number, call: () => void): { restart(): void; stop(): void } {
  const limit = Math.min(ms, longestTimer);
  let last = performance.now();
  const arm = (wait: number): ReturnType<typeof setTimeout> =>
    setTimeout(() => {
      const left = limit - (performance.now() - last);
      if (left <= 0) call();
      else timer = arm(left);
    }, wait);
  let timer = arm(limit);
  return {
    restart() {
      last = performance.now();
    },
    stop: () => clearTimeout(timer),
  };
}

function rejectOnAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    promise.then(resolve, reject);
  });
}

function timedOut(ms: number, answered: boolean): ModelFailure {
  return new ModelFailure("timeout", `the reply was not complete after ${ms} ms (\`model.timeout\`)`, {
    retryable: !answered,
    ...(answered ? { hint: "raise `model.timeout` or lower `model.max_output_tokens`" } : {}),
  });
}

function stalled(ms: number): ModelFailure {
  return new ModelFailure(
    "stream_stalled",
    `the reply stream was silent for ${ms} ms (\`model.idle_timeout\`)`,
    {
      retryable: true,
    },
  );
}

function tooLarge(): ModelFailure {
  return new ModelFailure("reply_too_large", `the reply stream is larger than ${longestReply} bytes`);
}
