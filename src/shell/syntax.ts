// The only file that knows which parser is used: bash source → syntax tree.
import { forEachChild, parse } from "unbash";
import type {
  Assignment,
  Command,
  CommandNode,
  ParsedScript,
  Redirection,
  Statement,
  SyntaxNode,
  Word,
  WordPart,
} from "unbash";

export type {
  Assignment,
  Command,
  CommandNode,
  ParsedScript,
  Redirection,
  Statement,
  SyntaxNode,
  Word,
  WordPart,
};
export { forEachChild };

/**
 * Whether `holds` for every node, parents first; ends with the first for which it does not. A script inside the root
 * counts as one node: it is looked at by itself. Not recursive: a tree may be deeper than the stack.
 */
export function everyNode(root: SyntaxNode, holds: (node: SyntaxNode, depth: number) => boolean): boolean {
  const open: { readonly node: SyntaxNode; readonly depth: number }[] = [{ node: root, depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, depth } = next;
    if (!holds(node, depth)) return false;
    if (node.type === "Script" && node !== root) continue;
    forEachChild(node, (child) => void open.push({ node: child, depth: depth + 1 }));
  }
  return true;
}

/** Whether a backslash ends the source: bash drops it when a quoted line break came before, else it stays in the word. */
export function endsOpen(source: string): boolean {
  let count = 0;
  while (source[source.length - 1 - count] === "\\") count++;
  return count % 2 === 1;
}

/** Parses bash source; never throws. Faults are in `errors` of the script, and of scripts nested in it. */
export function parseScript(source: string): ParsedScript {
  return parse(source);
}
