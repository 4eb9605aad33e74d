// A text that every match of a pattern must contain, so that most patterns need not run on most messages.

/**
 * The longest run of characters, lower case, that each match of the pattern holds when case does not count; undefined
 * when none of two or more characters is certain. Compare with `foldCase(text)`.
 */
export function requiredLiteral(source: string): string | undefined {
  const scan: Scan = { source: source.replace(/^\(\?i\)/, ""), at: 0, run: "", best: "" };
  while (scan.at < scan.source.length) {
    if (!step(scan)) return undefined;
  }
  endRun(scan);
  return scan.best.length >= 2 ? scan.best : undefined;
}

/** Lower case, and the one letter that folds to an ASCII letter without lower case turning it into one. */
export function foldCase(text: string): string {
  return text.toLowerCase().replaceAll("ſ", "s");
}

type Scan = { readonly source: string; at: number; run: string; best: string };

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
      return repeat(scan);
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

function repeat(scan: Scan): boolean {
  const [counts] = /^\d+(?:,\d*)?\}/.exec(scan.source.slice(scan.at)) ?? [];
  if (counts === undefined) return false;
  scan.at += counts.length;
  endOptional(scan);
  return true;
}

// Only characters whose other cases are known: ASCII, and those of scripts without case.
function literal(scan: Scan, c: string): void {
  const cased = c.toLowerCase() !== c.toUpperCase();
  if (c > "\x7f" && (cased || /[\ud800-\udfff]/.test(c))) endRun(scan);
  else scan.run += c.toLowerCase();
}

function escape(scan: Scan): boolean {
  const c = scan.source[scan.at++] ?? "";
  if (/[bBAz]/.test(c)) return true;
  if (/[dDwWsS]/.test(c)) return endRun(scan), true;
  if (!/[!-/:-@[-`{-~]/.test(c)) return false;
  literal(scan, c);
  return true;
}

function skipClass(scan: Scan): boolean {
  const rest = scan.source.slice(scan.at);
  if (rest.includes("[:")) return false;
  const [inner] = /^\^?\]?(?:\\[\s\S]|[^\]\\])*\]/.exec(rest) ?? [];
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
