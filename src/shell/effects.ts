// What words do besides standing for a value.
import { forEachChild, type SyntaxNode, type Word } from "./syntax.ts";
import { changesLook, shapeOf } from "./words.ts";

/** Why a word of a loop, case or test is not harmless; plain variables are, where they become neither program nor argument. */
export function harm(word: Word): string | undefined {
  const { why } = shapeOf(word);
  if (changesLook(word.text)) return why;
  return why === undefined || !hasEffect(word) ? undefined : why;
}

function hasEffect(node: SyntaxNode): boolean {
  if (node.type === "ParameterExpansion") {
    return node.prefix === "!" || node.index !== undefined ||
      (node.operation !== undefined && node.operation.type !== "Remove");
  }
  if (
    ["CommandExpansion", "ProcessSubstitution", "ArithmeticExpansion", "LocaleString"].includes(node.type)
  ) return true;
  let found = false;
  forEachChild(node, (child) => {
    found ||= hasEffect(child);
  });
  return found;
}

/** Whether a node's text, `bare` of what is quoted in it, has the look of a substitution that the tree does not show. */
export function missesCommands(node: SyntaxNode, bare: string): boolean {
  return /\$\((?!\()|`/.test(bare) && !holdsCommands(node);
}

function holdsCommands(node: SyntaxNode): boolean {
  if (node.type === "CommandExpansion" || node.type === "ArithmeticCommandExpansion") return true;
  let found = false;
  forEachChild(node, (child) => {
    found ||= holdsCommands(child);
  });
  return found;
}

/**
 * Whether an expansion may hold a substitution that only quotes and backslashes break up, as `"${a:-"$\(b)"}"` does: bash
 * takes those away first and then reads what is left.
 */
export function joinsCommands(node: SyntaxNode): boolean {
  if (node.type !== "ParameterExpansion" || !node.text.includes('"')) return false;
  const openings = (text: string) => text.match(/\$[({[]|`/g)?.length ?? 0;
  return openings(node.text.replace(/["\\]/g, "")) > openings(node.text);
}
