// What is wrong with a regular expression, for whoever wrote it: the piece, why it is not taken, and what does the same here.
import { escapeLine, isObject } from "./text.ts";
import { messageOf } from "./thrown.ts";

/** Fits after the expression: `uses lookahead, …`. */
export type PatternFault = { readonly says: string; readonly hint: string };

// The parser's own words start with these.
const reasons: readonly (readonly [string, string, string])[] = [
  [
    "missing closing )",
    "opens a group that is not closed",
    "close it with `)`, or write `\\(` for the character",
  ],
  ["unexpected )", "closes a group that is not open", "remove the `)`, or write `\\)` for the character"],
  [
    "missing closing ]",
    "opens a set of characters that is not closed",
    "close it with `]`, or write `\\[` for the character",
  ],
  [
    "missing argument to repetition operator",
    "repeats nothing with",
    "write before it what is to be repeated, or a `\\` before it for the character",
  ],
  ["invalid nested repetition operator", "repeats a repetition with", "put the inner one into `(?:` and `)`"],
  ["invalid repeat count", "has the repetition", "at most 1000 times, and the lesser number first"],
  ["duplicate capture group name", "names two groups", "give each its own name"],
  ["trailing backslash", "ends with a single `\\`", "write `\\\\` for the character"],
  [
    "invalid character class range",
    "has the set or range of characters",
    "write the lesser end of a range first, or the name of a set as in `[[:alpha:]]` and `\\p{Greek}`",
  ],
];

const linear = "it is not supported, because every text is matched in linear time (RE2)";

// Of constructs that other engines know: how they start, what they are called, what to write instead.
const unsupported: readonly (readonly [RegExp, string, string])[] = [
  [/^\(\?=/, "lookahead", "write what follows into the pattern itself"],
  [/^\(\?!/, "negative lookahead", "write a pattern for what may stand there"],
  [/^\(\?<=/, "lookbehind", "write what comes before into the pattern itself, or use `\\b`"],
  [/^\(\?<!/, "negative lookbehind", "write what may come before into the pattern itself, or use `\\b`"],
  [/^\\[1-9k]|^\(\?P=/, "a backreference", "write out what may be repeated"],
  [/^\(\?>/, "an atomic group", "write `(?:` in its place"],
  [/^\(\?(?:[0-9R&]|P>)/, "a call of another group", "write that group out"],
  [/^\(\?\(/, "a condition", "write both cases with `|`"],
  [/^\(\?#/, "a comment", "remove it"],
];

const ofEscapes: readonly (readonly [RegExp, string])[] = [
  [/^\\u/, "write the character itself, or `\\x{…}` with its number"],
  [/^\\Z/, "write `\\z` for the end of the text"],
  [/^\\[hHvR]/, "write `\\s` or the characters themselves"],
];

/** `thrown`: what the compiler of expressions threw at this one. */
export function patternFault(source: string, thrown: unknown): PatternFault {
  const { error, input } = isObject(thrown) ? thrown : {};
  const said = typeof error === "string" ? error : messageOf(thrown);
  const piece = pieceOf(source, said, typeof input === "string" ? input : "");
  const shown = `\`${escapeLine(piece)}\``;
  const construct = unsupported.find(([start]) => start.test(piece));
  if (construct !== undefined) {
    return { says: `uses ${construct[1]}, ${shown}: ${linear}`, hint: construct[2] };
  }
  if (said.startsWith("invalid escape sequence")) {
    const hint = ofEscapes.find(([start]) => start.test(piece))?.[1];
    return { says: `has ${shown}, which stands for nothing`, hint: hint ?? "remove the `\\`" };
  }
  const reason = reasons.find(([start]) => said.startsWith(start));
  if (reason !== undefined) {
    return { says: piece === "" ? reason[1] : `${reason[1]} ${shown}`, hint: reason[2] };
  }
  if (/^\(\?/.test(piece)) {
    return { says: `has the group ${shown}, which is not known`, hint: "write `(?:`, `(?i)` or `(?P<name>`" };
  }
  return {
    says: `is not understood${piece === "" ? "" : ` at ${shown}`}: ${said}`,
    hint: "see `writ help policy`",
  };
}

// Where the parser names the rest of the source, or the start of a construct, what a reader knows it by.
function pieceOf(source: string, said: string, input: string): string {
  if (/^\(\?<[=!]/.test(input)) return input.slice(0, 4);
  if (input.startsWith("(?P") && source.includes("(?P=")) return "(?P=";
  return said.startsWith("missing closing") || said.startsWith("unexpected") ? "" : input;
}
