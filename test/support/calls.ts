// Facts of tool calls as the tools would find them, for tests of what is decided about them.
import type { Facts, Part, PathFact, Subject } from "../../src/core/facts.ts";

export function callOf(tool: string, subjects: readonly Subject[], more: Partial<Facts> = {}): Facts {
  return {
    tool,
    args: {},
    risk: "execute",
    subjects: subjects as Facts["subjects"],
    box: "default",
    sourcedBy: [],
    mode: "interactive",
    errors: [],
    ...more,
  };
}

/** A command of plain words, or of those given. */
export function commandSubject(
  text: string,
  more: Partial<Part> = {},
): Extract<Subject, { readonly kind: "part" }> {
  return { kind: "part", part: { argv: text.split(" "), text, assignments: [], level: "top", ...more } };
}

/** A file of the workspace; absolute, and leading nowhere else unless said. */
export function pathSubject(
  tool: string,
  path: string,
  more: Partial<PathFact> = {},
): Extract<Subject, { readonly kind: "path" }> {
  const fact = { written: path, absolute: path, resolved: path, inWorkspace: true, ...more };
  return { kind: "path", tool, path: fact, operand: false };
}

export function hostSubject(host: string, private_ = false): Extract<Subject, { readonly kind: "host" }> {
  return { kind: "host", host: { written: host, host, private: private_ } };
}
