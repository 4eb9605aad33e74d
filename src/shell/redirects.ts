// Redirections: which files they open, and what they feed to the command.
import type { Redirection as Node } from "./syntax.ts";
import { quoted, type Shape, shapesOf } from "./words.ts";

export type Opened = {
  /** Undefined when the target is not known. */
  readonly written?: string;
  readonly access: "read" | "write";
  /** As written. */
  readonly text: string;
};

export type RedirectRead = {
  readonly opened?: Opened;
  /** Why no allow rule can cover the command that it belongs to. */
  readonly why?: string;
  /** Text that the command gets as its input, when it is known. */
  readonly input?: string;
};

/** What one redirection does. `text` is its source. */
export function readRedirect(node: Node, text: string): RedirectRead {
  if (node.descriptor?.type === "FileDescriptorVariable") {
    const opened = node.type === "Redirect" ? fileOf(node, text) : {};
    return { ...opened, why: `${quoted(text)} sets a variable` };
  }
  if (node.type === "HereDoc") {
    const computed = node.delimiter?.quoted === true
      ? undefined
      : node.body.parts?.find((p) => p.type !== "Literal");
    if (computed !== undefined) {
      return { why: `the here-document holds ${quoted(computed.text)}`, input: node.body.text };
    }
    return { input: node.body.text };
  }
  if (node.type === "HereString") {
    const shape = single(node.target === undefined ? [] : shapesOf(node.target));
    if (shape === undefined) return { why: `${quoted(text)} is not known` };
    return shape.why === undefined ? { input: shape.text } : { why: shape.why };
  }
  return fileOf(node, text);
}

/**
 * Bash expands the target of `>&` twice. What of it runs only the second time: nothing, whatever a variable holds, or what
 * quotes hide from the first time.
 */
export function ranAgain(node: Node): "nothing" | "unknown" | "hidden" {
  const raw = node.type === "Redirect" && node.operator === ">&" ? node.target?.text ?? "" : "";
  if (!/[$`]/.test(raw)) return "nothing";
  return /^"?\$(\w+|[#?$!@*-]|\{\w+(\[\w+\])?\})"?$/.test(raw) ? "unknown" : "hidden";
}

function single(shapes: readonly Shape[]): Shape | undefined {
  return shapes.length === 1 ? shapes[0] : undefined;
}

function fileOf(node: Extract<Node, { type: "Redirect" }>, text: string): RedirectRead {
  const { operator } = node;
  const access = operator === "<" || operator === "<&" ? "read" : "write";
  const shape = node.target === undefined ? undefined : single(shapesOf(node.target));
  if (shape === undefined || shape.blur !== undefined || shape.why !== undefined) {
    return { opened: { access, text } };
  }
  const target = shape.text;
  if ((operator === ">&" || operator === "<&") && /^([0-9]+-?|-)$/.test(target)) return {};
  if (isDevice(target)) return {};
  if (/^\/dev\/(tcp|udp)\//.test(target)) return { why: `${quoted(target)} opens a network connection` };
  return { opened: { written: shape.path, access, text } };
}

// Files in name only: nothing is kept in them.
function isDevice(path: string): boolean {
  return /^\/dev\/(null|zero|full|tty|stdin|stdout|stderr|fd\/[0-9]+)$/.test(path);
}
