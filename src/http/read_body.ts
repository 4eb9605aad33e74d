// A request's body, read no further than its limit allows.

/** Of a body in bytes. */
export const bodyLimit = 1 << 20;

export type ReadBody =
  | { readonly ok: true; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly ok: false; readonly fault: "too-large" | "broken" };

/** A length that is declared too large is believed; one that is declared small is not. */
export async function readBody(request: Request, limit: number): Promise<ReadBody> {
  if (Number(request.headers.get("content-length") ?? 0) > limit) return { ok: false, fault: "too-large" };
  if (request.body === null) return { ok: true, bytes: new Uint8Array() };
  const reader = request.body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.byteLength;
      if (length > limit) {
        reader.cancel().catch(() => {});
        return { ok: false, fault: "too-large" };
      }
      parts.push(value);
    }
  } catch {
    return { ok: false, fault: "broken" };
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return { ok: true, bytes };
}
