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

/** Parses bash source; never throws. Faults are in `errors` of the script, and of scripts nested in it. */
export function parseScript(source: string): ParsedScript {
  return parse(source);
}
