// Finding lines that match an RE2 pattern, quickly: a literal that every match must hold rules most lines out first.
import { RE2JS } from "re2js";
import { foldCase, requiredText } from "../core/required_text.ts";

export type LineSearch = {
  /** Calls back for each line that matches, in order, until it returns false. Line numbers count from 1. */
  each(text: string, found: (line: number, text: string, start: number) => boolean): void;
};

/** Linear time whatever the pattern. Throws an Error that says what is wrong with a pattern. */
export function lineSearch(pattern: string, options: { readonly ignoreCase: boolean }): LineSearch {
  const re = RE2JS.compile(pattern, options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  const fold = options.ignoreCase ? foldCase : (text: string) => text;
  const needle = requiredText(pattern, options);
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
