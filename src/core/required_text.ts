// A text that every match of a pattern must contain, so that most patterns need not run on most messages.

/**
 * The longest run of characters that each match of an RE2 pattern holds; "" when none is certain. With `ignoreCase` the
 * pattern is compiled so, and the run is in the spelling of `foldCase`: compare it with `foldCase(text)`.
 */
export function requiredText(source: string, options: { readonly ignoreCase: boolean }): string {
  const { ignoreCase } = options;
  const scan: Scan = {
    source: ignoreCase ? source.replace(/^\(\?i\)/, "") : source,
    ignoreCase,
    at: 0,
    run: "",
    best: "",
  };
  while (scan.at < scan.source.length) {
    if (!step(scan)) return "";
  }
  endRun(scan);
  return scan.best;
}

/** Lower case, and the one letter that folds to an ASCII letter without lower case turning it into one. */
export function foldCase(text: string): string {
  return text.toLowerCase().replaceAll("ſ", "s");
}

type Scan = { readonly source: string; readonly ignoreCase: boolean; at: number; run: string; best: string };

function endRun(scan: Scan): void {
  if (scan.run.length > scan.best.length) scan.best = scan.run;
  scan.run = "";
}

// One element of the sequence; false when the pattern is of a kind that is not looked into.
function step(scan: Scan): boolean {
  const c = scan.source[scan.at++] ?? "";
  switch (c) {
    case "|":
    case ")":
      return false;
    case "^":
    case "$":
      return true;
    case ".":
      return endRun(scan), true;
    case "*":
    case "?":
      return endOptional(scan), true;
    case "+":
      return endRun(scan), skipLazy(scan), true;
    case "{":
      return repeat(scan), true;
    case "[":
      return endRun(scan), skipClass(scan);
    case "(":
      return endRun(scan), skipGroup(scan);
    case "\\":
      return escape(scan);
    default:
      return literal(scan, c), true;
  }
}

// What stands before `?`, `*` or `{0,2}` need not be there.
function endOptional(scan: Scan): void {
  scan.run = scan.run.slice(0, -1);
  endRun(scan);
  skipLazy(scan);
}

function skipLazy(scan: Scan): void {
  if (/[?+]/.test(scan.source[scan.at] ?? "")) scan.at++;
}

// A brace that counts nothing is a character.
function repeat(scan: Scan): void {
  const [counts] = /^\d+(?:,\d*)?\}/.exec(scan.source.slice(scan.at)) ?? [];
  if (counts === undefined) return endRun(scan);
  scan.at += counts.length;
  endOptional(scan);
}

// Where case does not count, only characters whose other cases are known: ASCII, and those of scripts without case.
function literal(scan: Scan, c: string): void {
  const cased = scan.ignoreCase && c.toLowerCase() !== c.toUpperCase();
  if (c > "\x7f" && (cased || /[\ud800-\udfff]/.test(c))) endRun(scan);
  else scan.run += scan.ignoreCase ? c.toLowerCase() : c;
}

function escape(scan: Scan): boolean {
  const c = scan.source[scan.at++] ?? "";
  if (/[bBAz]/.test(c)) return true;
  if (/[dDwWsS]/.test(c)) return endRun(scan), true;
  if (c === "t") return literal(scan, "\t"), true;
  if (!/[!-/:-@[-`{-~]/.test(c)) return false;
  literal(scan, c);
  return true;
}

function skipClass(scan: Scan): boolean {
  const rest = scan.source.slice(scan.at);
  const [inner] = /^\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*\]/.exec(rest) ?? [];
  if (inner === undefined) return false;
  scan.at += inner.length;
  return true;
}

function skipGroup(scan: Scan): boolean {
  // Flags inside a group may change what follows it.
  if (/^\?(?!:|P?<[A-Za-z])/.test(scan.source.slice(scan.at))) return false;
  for (let depth = 1; depth > 0;) {
    const c = scan.source[scan.at++];
    if (c === undefined) return false;
    if (c === "\\") scan.at++;
    else if (c === "[" && !skipClass(scan)) return false;
    else if (c === "(") depth++;
    else if (c === ")") depth--;
  }
  return true;
}
