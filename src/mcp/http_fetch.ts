// How a server is reached over HTTP: with a deadline for each request, a cap on each answer, and no stream that nobody
// asked for.

/** Bytes of one answer, after decompression. */
const mostBytes = 16 * 1024 * 1024;

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * `limitMs` is for one request, its whole answer included. The stream over which a server may speak unasked is not opened:
 * nothing that could come over it counts here.
 */
export function cappedFetch(limitMs: number): Fetch {
  return async (url, init) => {
    const resumes = new Headers(init?.headers).has("last-event-id");
    if ((init?.method ?? "GET") === "GET" && !resumes) return new Response(null, { status: 405 });
    const deadline = AbortSignal.timeout(limitMs);
    const signal = init?.signal ? AbortSignal.any([init.signal, deadline]) : deadline;
    return capped(await fetch(url, { ...init, signal }));
  };
}

function capped(response: Response): Response {
  if (response.body === null) return response;
  let read = 0;
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        read += chunk.length;
        if (read > mostBytes) controller.error(new Error(`the answer has more than ${mostBytes} bytes`));
        else controller.enqueue(chunk);
      },
    }),
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
