// Every regular expression that comes from a file goes through RE2: linear time, no look-around, Unicode.
import { RE2JS } from "re2js";
import { foldCase, requiredText } from "../core/required_text.ts";
import type { Pattern } from "../core/text.ts";

/** Compiles at once, so that a bad pattern is known at load. Throws an Error whose message says what is wrong. */
export function compilePattern(source: string, options: { readonly ignoreCase: boolean }): Pattern {
  const pattern = toPattern(source, RE2JS.compile(source, options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0));
  const literal = options.ignoreCase ? requiredText(source, options) : "";
  // A single character is in nearly every text.
  return literal.length < 2 ? pattern : {
    source,
    test: (text) => folded(text).includes(literal) && pattern.test(text),
    find: (text) => folded(text).includes(literal) ? pattern.find(text) : undefined,
  };
}

/** The same for a source that has compiled before: compiles when a text first may hold a match. One that fails never matches. */
export function knownPattern(source: string, options: { readonly ignoreCase: boolean }): Pattern {
  let compiled: Pattern | undefined;
  const get = () => compiled ??= compileOrNever(source, options);
  const literal = options.ignoreCase ? requiredText(source, options) : "";
  const may = (text: string) => literal.length < 2 || folded(text).includes(literal);
  return {
    source,
    test: (text) => may(text) && get().test(text),
    find: (text) => may(text) ? get().find(text) : undefined,
  };
}

function compileOrNever(source: string, options: { readonly ignoreCase: boolean }): Pattern {
  try {
    return compilePattern(source, options);
  } catch {
    return { source, test: () => false, find: () => undefined };
  }
}

/** Compiles at the first use; for patterns of our own making, which are known to be good. */
export function lazyPattern(source: string): Pattern {
  let compiled: Pattern | undefined;
  const get = () => compiled ??= toPattern(source, RE2JS.compile(source, RE2JS.DOTALL));
  return { source, test: (text) => get().test(text), find: (text) => get().find(text) };
}

// Many patterns look at one message, one after the other.
let last = { text: "", folded: "" };
function folded(text: string): string {
  if (last.text !== text) last = { text, folded: foldCase(text) };
  return last.folded;
}

function toPattern(source: string, re: RE2JS): Pattern {
  return {
    source,
    test: (text) => re.test(text),
    // Whether there is a match is found many times faster than where it is.
    find(text) {
      if (!re.test(text)) return undefined;
      const matcher = re.matcher(text);
      return matcher.find() ? [matcher.start(), matcher.end()] : undefined;
    },
  };
}
