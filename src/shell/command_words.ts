// The words of one simple command, as bash sees them.
import { type Effort, spend } from "./effort.ts";
import { readRedirect } from "./redirects.ts";
import type { Command, SyntaxNode } from "./syntax.ts";
import { literalOutput, unwrap } from "./unwrap.ts";
import { assignmentShape, gluedShape, quoted, type Shape, shapesOf } from "./words.ts";

/** `mixed`: words with braces may be other words. */
export type WordSource = { readonly source: string; readonly mixed?: true };

// So many words in, braces are no longer expanded: what they stand for counts as unknown.
const mostExpanded = 2000;

type Kept = { readonly mixed: boolean; readonly shapes: readonly Shape[] };
const kept = new WeakMap<Command, Kept>();

/** Program and arguments in order, the same list for the same node; `at.source` is what the node's positions refer to. */
export function commandShapes(node: Command, at: WordSource): readonly Shape[] {
  const mixed = at.mixed === true;
  const known = kept.get(node);
  if (known?.mixed === mixed) return known.shapes;
  const shapes = readShapes(node, at);
  kept.set(node, { mixed, shapes });
  return shapes;
}

function readShapes(node: Command, { mixed, source }: WordSource): readonly Shape[] {
  const shapes: Shape[] = [];
  // Where the word before this one begins among the shapes, and ends in the source.
  let start = 0, end = -1;
  for (const word of [...(node.name === undefined ? [] : [node.name]), ...node.args]) {
    const open = word.text.includes("{") && (mixed === true || shapes.length > mostExpanded);
    const own = word.type !== "Word" ? [assignmentShape(word)] : open
      ? [{
        text: word.text,
        path: word.text,
        blur: { pieces: ["", ""], many: true },
        why: `${quoted(word.text)} may be expanded`,
      }]
      : shapesOf(word);
    // The parser gives `a<(b)c` as three words; bash makes it one.
    if (own.length > 0 && start < shapes.length && touches(end, word.pos, source)) {
      shapes.push(glued(shapes.splice(start), own));
    } else {
      start = shapes.length;
      shapes.push(...own);
    }
    end = word.end;
  }
  return shapes;
}

// Braces in one of them repeat the other, however many words that makes.
function glued(left: readonly Shape[], right: readonly Shape[]): Shape {
  const whole = [...left, ...right].reduce(gluedShape);
  return left.length + right.length === 2 ? whole : { ...whole, blur: { pieces: ["", ""], many: true } };
}

// Nothing but joined lines lies between.
function touches(end: number, pos: number, source: string): boolean {
  return end >= 0 && pos >= end && /^(\\\n)*$/.test(source.slice(end, pos));
}

/** Whether what the parser takes for a comment goes on with this word, as of `<(a)# b`. */
export function commentTouches(node: SyntaxNode, source: string): boolean {
  return node.type === "Word" && /^[<>]\(/.test(node.text) && /^(\\\n)*#/.test(source.slice(node.end));
}

/** Whether the parser made two words of one, as of `X=1<(a)` and `>o<(a)`, where they cannot be put together again. */
export function gluedElsewhere(node: Command, at: WordSource): boolean {
  const children = [...node.prefix, ...(node.name === undefined ? [] : [node.name]), ...node.suffix];
  return children.some((child, i) => {
    const before = children[i - 1];
    return child.type === "Word" && /^[<>]\(/.test(child.text) && before !== undefined &&
      before.type !== "Word" &&
      touches(before.end, child.pos, at.source);
  });
}

const deepest = 48;

/** What `echo` and `cat <<…` are sure to write into the pipe, also when a wrapper runs them. */
export function printed(node: Command, at: WordSource, effort: Effort): string | undefined {
  const [redirect] = node.redirects;
  let words = commandShapes(node, at);
  for (let depth = 0; depth < deepest; depth++) {
    const text = literalOutput(words);
    if (text !== undefined) return text;
    const last = words.at(-1);
    if (last?.text === "cat" && redirect !== undefined) {
      return readRedirect(redirect, at.source.slice(redirect.pos, redirect.end)).input;
    }
    const inner = unwrap(words).inner.find((i) => i.kind === "command");
    if (inner === undefined || !spend(effort, "words", inner.words.length)) return undefined;
    words = inner.words;
  }
  return undefined;
}
