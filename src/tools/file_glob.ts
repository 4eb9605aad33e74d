// The glob of list_files and search_text: a plain name is looked for at every depth, a path from the folder on.
import { RE2JS } from "re2js";
import { absoluteGlob, globSource } from "../core/glob.ts";
import { failed } from "./tool_outcome.ts";
import type { ToolOutcome } from "../agent/ports.ts";

export type FileGlob = { readonly ok: true; test(path: string): boolean };

/** Over absolute paths at or below `base`; linear time. */
export function fileGlob(
  glob: string,
  base: string,
  home: string,
): FileGlob | (ToolOutcome & { readonly ok: false }) {
  const anywhere = glob.includes("/") ? glob : `**/${glob}`;
  const absolute = absoluteGlob(anywhere, { root: base, home });
  if ("error" in absolute) return failed("bad_glob", `\`${glob}\`: ${absolute.error}`);
  const pattern = RE2JS.compile(globSource(absolute.glob), RE2JS.DOTALL);
  return { ok: true, test: (path) => pattern.test(path) };
}
