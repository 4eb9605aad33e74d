// Small makers of what tools hand back, and how names of files are shown in them.
import type { Place, ToolOutcome } from "../agent/ports.ts";
import type { Json } from "../core/message.ts";
import { relativeTo } from "../core/path.ts";
import { escapeTerminal, hasHiddenCharacters } from "../core/text.ts";

export function done(
  content: string,
  more: { readonly data?: Json; readonly partial?: boolean } = {},
): ToolOutcome {
  return { ok: true, content, ...more };
}

export function failed(code: string, content: string, data?: Json): ToolOutcome & { readonly ok: false } {
  return { ok: false, code, content, ...(data === undefined ? {} : { data }) };
}

/** A failure that does not say whether the call had its effect, such as one that was stopped halfway. */
export function failedMidway(
  code: string,
  content: string,
  data?: Json,
): ToolOutcome & { readonly ok: false } {
  return { ...failed(code, content, data), unknown: true };
}

/** A path as the model would write it: relative to the root where it lies inside, absolute elsewhere. */
export function showPath(path: string, place: Pick<Place, "root">): string {
  const inner = relativeTo(path, place.root);
  return inner === "" ? "." : showName(inner ?? path);
}

/** A name that cannot pass for more than one line or for other text: in quotes with escapes where it has to be. */
export function showName(name: string): string {
  const plain = !hasHiddenCharacters(name) && !/[\n\t"\\]|^\s|\s$/.test(name) && name !== "";
  return plain ? name : escapeTerminal(JSON.stringify(name));
}

/** For tools that would show what read_file may not. */
export function readRefused(path: string, place: Pick<Place, "root">): ToolOutcome & { readonly ok: false } {
  return failed(
    "read_refused",
    `a rule keeps \`${showPath(path, place)}\` from being read, and so from being shown here`,
  );
}
