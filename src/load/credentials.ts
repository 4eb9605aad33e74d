// What looks like a credential in a text of a skill. Skills are shared and shown to models: they carry no secrets.
import { makeRedactor } from "./redactor.ts";

/** `kind` as the redaction names it; `line` from 1, `offset` in UTF-16 units. What was found is not repeated. */
export type Credential = { readonly kind: string; readonly line: number; readonly offset: number };

const most = 20;

const { shapes } = makeRedactor({ redact: { builtin: true, env: [], patterns: [] }, env: {}, secrets: [] });

/** In the order of the text, at most twenty, one a line and kind. */
export function findCredentials(text: string): readonly Credential[] {
  const found: Credential[] = [];
  for (const { kind, marks, pattern } of shapes) {
    if (!marks.some((mark) => text.includes(mark))) continue;
    const own: Credential[] = [];
    for (let from = 0; own.length < most;) {
      const span = pattern.find(text.slice(from));
      if (span === undefined || span[1] === span[0]) break;
      const offset = from + span[0];
      const line = text.slice(0, offset).split("\n").length;
      if (own.at(-1)?.line !== line) own.push({ kind, line, offset });
      from += span[1];
    }
    found.push(...own);
  }
  return found.sort((a, b) => a.offset - b.offset).slice(0, most);
}
