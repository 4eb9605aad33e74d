// Finding lines that match an RE2 pattern, quickly: a literal that every match must hold rules most lines out first.
import { RE2JS } from "re2js";

export type LineSearch = {
  /** Calls back for each line that matches, in order, until it returns false. Line numbers count from 1. */
  each(text: string, found: (line: number, text: string, start: number) => boolean): void;
};

/** Linear time whatever the pattern. Throws an Error that says what is wrong with a pattern. */
export function lineSearch(pattern: string, options: { readonly ignoreCase: boolean }): LineSearch {
  const re = RE2JS.compile(pattern, options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  const fold = options.ignoreCase ? foldCase : (text: string) => text;
  const needle = fold(requiredLiteral(pattern, options.ignoreCase));
  return {
    each(text, found) {
      const hay = needle === "" ? text : fold(text);
      // Folding that changes lengths would move positions: such a text is searched line by line.
      const guide = needle !== "" && hay.length === text.length ? hay : undefined;
      if (needle !== "" && !hay.includes(needle)) return;
      let start = 0, line = 1;
      for (;;) {
        if (guide !== undefined) {
          const hit = guide.indexOf(needle, start);
          if (hit < 0) return;
          for (let end = text.indexOf("\n", start); end >= 0 && end < hit; end = text.indexOf("\n", start)) {
            start = end + 1;
            line++;
          }
        }
        const end = text.indexOf("\n", start);
        const stop = end < 0 ? text.length : end;
        const content = text.slice(start, text[stop - 1] === "\r" && stop > start ? stop - 1 : stop);
        const matcher = re.matcher(content);
        if ((end >= 0 || content !== "") && matcher.find() && !found(line, content, matcher.start())) return;
        if (end < 0) return;
        start = end + 1;
        line++;
      }
    },
  };
}

// As RE2 folds: the long s and the Kelvin sign are the only letters outside ASCII that fold into it.
function foldCase(text: string): string {
  return text.toLowerCase().replaceAll("\u017f", "s");
}

/** A text that every match holds, as long as one can be told without doubt; else "". Exported for tests. */
export function requiredLiteral(pattern: string, ignoreCase: boolean): string {
  if (/\(\?[^:)]*\)|\\[QEpPxC0-9]|\|/.test(pattern)) return "";
  let best = "", run = "", depth = 0;
  const close = () => {
    if (run.length > best.length) best = run;
    run = "";
  };
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i] ?? "";
    if (c === "[") {
      i = classEnd(pattern, i);
      close();
    } else if (c === "(") {
      depth++;
      close();
    } else if (c === ")") {
      depth--;
      close();
    } else if (c === "*" || c === "?" || c === "{") {
      // What stands before may be absent; a brace that counts nothing is a character.
      const count = c === "{" ? /^\{\d+(,\d*)?\}/.exec(pattern.slice(i))?.[0] : c;
      if (count !== undefined) run = run.slice(0, -1);
      close();
      i += (count?.length ?? 1) - 1;
    } else if (c === "+" || c === "." || c === "^" || c === "$") close();
    else {
      const literal = c === "\\" ? escaped(pattern[++i] ?? "") : c;
      if (
        depth > 0 || literal === "" || (ignoreCase && literal > "\u007e") || /[\ud800-\udfff]/.test(literal)
      ) close();
      else run += literal;
    }
  }
  close();
  return best;
}

function escaped(c: string): string {
  return /[^A-Za-z0-9]/.test(c) ? c : c === "t" ? "\t" : "";
}

function classEnd(pattern: string, open: number): number {
  let i = open + 1;
  if (pattern[i] === "^") i++;
  if (pattern[i] === "]") i++;
  for (; i < pattern.length && pattern[i] !== "]"; i++) {
    if (pattern[i] === "\\") i++;
    else if (pattern.startsWith("[:", i)) i = Math.max(i, pattern.indexOf(":]", i) + 1);
  }
  return i;
}
