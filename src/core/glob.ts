// Path globs: text of a policy → absolute glob → RE2 source. Pure text work; links and case are the caller's business.

/** Where relative globs and `~` start. Absolute normalised paths. */
export type GlobBase = { readonly root: string; readonly home: string };

export type AbsoluteGlob = {
  /** Absolute, no `.` or `..` segments, no empty ones; characters of the base are escaped where they mean something. */
  readonly glob: string;
  /** Written without wildcards. */
  readonly literal: boolean;
  /** What every matching path starts with; the whole path when `literal`. */
  readonly prefix: string;
  /** Text that every matching path holds somewhere; may be empty. */
  readonly needle: string;
};
export type GlobFault = { readonly error: string };

/**
 * Makes a glob absolute: a relative one starts at the root, `~/` at home. `*` and `?` stay within a level and match dot
 * files, `**` must be a whole level and stands for any number of them (`a/**` is `a` and everything below), `[a-z]`, `[!a]`
 * and `{a,b}` as in a shell, `\` takes the meaning from the next character. What cannot be read with certainty is a fault.
 */
export function absoluteGlob(glob: string, base: GlobBase): AbsoluteGlob | GlobFault {
  const fault = writtenFault(glob);
  if (fault !== undefined) return { error: fault };
  const anchored = glob === "~" || glob.startsWith("~/")
    ? escapeGlob(base.home) + glob.slice(1)
    : glob.startsWith("/")
    ? glob
    : `${escapeGlob(base.root)}/${glob}`;
  const segments: string[] = [];
  for (const segment of splitLevels(anchored)) {
    if (segment === "" || segment === ".") continue;
    if (segment !== "..") {
      segments.push(segment);
      continue;
    }
    const left = segments.pop();
    if (left !== undefined && hasMeta(left)) return { error: "`..` after a wildcard leads nowhere certain" };
  }
  const absolute = `/${segments.join("/")}`;
  const source = translate(absolute);
  if (typeof source !== "string") return source;
  const prefix = literalPrefix(segments);
  return { glob: absolute, literal: !segments.some(hasMeta), prefix, needle: longestText(segments) };
}

/** RE2 source that matches exactly the paths of an absolute glob. Throws on a glob that `absoluteGlob` would not give. */
export function globSource(glob: string): string {
  const source = translate(glob);
  if (typeof source !== "string") throw new Error(`glob ${glob}: ${source.error}`);
  return source;
}

/** The glob that matches just this text. */
export function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]{},!~()@+]/g, "\\$&");
}

/** The text that a glob without wildcards stands for. */
export function unescapeGlob(glob: string): string {
  return glob.replace(/\\(.)/gsu, "$1");
}

// Spellings that other tools give a meaning which these globs do not have: matching them literally would leave holes.
function writtenFault(glob: string): string | undefined {
  if (glob === "") return "the glob is empty";
  if (glob.includes("\0")) return "a path cannot hold a NUL";
  if (glob.startsWith("!")) return "a leading `!` does not negate; use `except`, or `\\!` for the character";
  if (/^~[^/]/.test(glob)) return "`~` is only known as `~` or `~/…`; use `\\~` for the character";
  if (/[^\\]\/$/.test(glob)) {
    return "a `/` at the end is not understood; use `/**` for a folder and what is below";
  }
  if (/(^|[^\\])[@!+?*]\(/.test(glob)) return "extended patterns such as `@(a|b)` are not known; use `{a,b}`";
  if (/(^|[^\\])(\\\\)*\\$/.test(glob)) return "a `\\` at the end escapes nothing";
  return undefined;
}

function hasMeta(segment: string): boolean {
  return /(^|[^\\])(\\\\)*[*?[{]/.test(segment);
}

// At slashes outside braces: `{a/b,c}/d` has two levels here, and is taken apart when the braces are.
function splitLevels(glob: string): string[] {
  const levels: string[] = [];
  let depth = 0, from = 0;
  for (let i = 0; i < glob.length; i++) {
    const c = glob[i];
    if (c === "\\") i++;
    else if (c === "{") depth++;
    else if (c === "}") depth--;
    else if (c === "/" && depth <= 0) {
      levels.push(glob.slice(from, i));
      from = i + 1;
    }
  }
  levels.push(glob.slice(from));
  return levels;
}

function literalPrefix(segments: readonly string[]): string {
  const stop = segments.findIndex(hasMeta);
  const kept = stop < 0 ? segments : segments.slice(0, stop);
  return `/${kept.map(unescapeGlob).join("/")}`;
}

// Braces and classes are stepped over, with what they hold.
function longestText(segments: readonly string[]): string {
  let longest = "";
  for (const segment of segments) {
    let run = "";
    for (let i = 0; i < segment.length; i++) {
      const c = segment.charAt(i);
      if (c === "\\") run += segment.charAt(++i);
      else if (!"*?[{".includes(c)) run += c;
      else {
        if (c === "[") i = Math.max(i, classEnd(segment, i));
        if (c === "{") i = braceEnd(segment, i);
        run = "";
      }
      if (run.length >= longest.length) longest = run;
    }
  }
  return longest;
}

function braceEnd(text: string, open: number): number {
  let depth = 0;
  for (let i = open; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "{") depth++;
    else if (text[i] === "}" && --depth === 0) return i;
  }
  return text.length;
}

function translate(glob: string): string | GlobFault {
  const alternatives = expandBraces(glob);
  if ("error" in alternatives) return alternatives;
  const sources: string[] = [];
  for (const alternative of alternatives.globs) {
    const source = translateLevels(alternative);
    if (typeof source !== "string") return source;
    sources.push(source);
  }
  return `\\A(?:${sources.join("|")})\\z`;
}

const mostAlternatives = 256;

/** The globs without braces that one with braces stands for. */
export function expandBraces(glob: string): { readonly globs: readonly string[] } | GlobFault {
  const open = indexOutsideClass(glob, "{");
  if (open < 0) {
    return indexOutsideClass(glob, "}") < 0 ? { globs: [glob] } : { error: "`}` without `{`" };
  }
  const choices: string[] = [];
  let depth = 0, from = open + 1, close = -1;
  for (let i = open; i < glob.length && close < 0; i++) {
    const c = glob[i];
    if (c === "\\") i++;
    else if (c === "{") depth++;
    else if (c === "}" && --depth === 0) close = i;
    else if (c === "," && depth === 1) {
      choices.push(glob.slice(from, i));
      from = i + 1;
    }
  }
  if (close < 0) return { error: "`{` is not closed" };
  choices.push(glob.slice(from, close));
  if (choices.length === 1) {
    return {
      error: `\`${
        glob.slice(open, close + 1)
      }\` holds no choice; write \`{a,b}\`, or \`\\{\` for the character`,
    };
  }
  const globs: string[] = [];
  for (const choice of choices) {
    const rest = expandBraces(glob.slice(0, open) + choice + glob.slice(close + 1));
    if ("error" in rest) return rest;
    globs.push(...rest.globs);
    if (globs.length > mostAlternatives) {
      return { error: `braces stand for more than ${mostAlternatives} globs` };
    }
  }
  return { globs };
}

function indexOutsideClass(glob: string, wanted: string): number {
  for (let i = 0; i < glob.length; i++) {
    if (glob[i] === "\\") i++;
    else if (glob[i] === "[") i = Math.max(i, classEnd(glob, i));
    else if (glob[i] === wanted) return i;
  }
  return -1;
}

function translateLevels(glob: string): string | GlobFault {
  const levels: string[] = [];
  for (const level of glob.split("/")) {
    if (level === "" || level === ".") continue;
    if (level === "..") return { error: "`..` inside braces leads nowhere certain" };
    levels.push(level);
  }
  if (levels.every((level) => level === "**")) return levels.length === 0 ? "/" : "/.*";
  let source = "";
  for (const level of levels) {
    if (level === "**") {
      source += "(?:/[^/]+)*";
      continue;
    }
    if (/(^|[^\\])\*\*/.test(level)) return { error: "`**` must stand alone between slashes" };
    const part = level === "*" ? "[^/]+" : translateLevel(level);
    if (typeof part !== "string") return part;
    source += `/${part}`;
  }
  return source;
}

function translateLevel(level: string): string | GlobFault {
  let source = "";
  for (let i = 0; i < level.length; i++) {
    const c = level.charAt(i);
    if (c === "\\") source += quote(level.charAt(++i));
    else if (c === "*") source += "[^/]*";
    else if (c === "?") source += "[^/]";
    else if (c === "[") {
      const end = classEnd(level, i);
      if (end < 0) return { error: "`[` is not closed; use `\\[` for the character" };
      const set = translateClass(level.slice(i + 1, end));
      if (typeof set !== "string") return set;
      source += set;
      i = end;
    } else source += quote(c);
  }
  return source;
}

/** Where the class ends that opens at `open`; -1: nowhere. A `]` right after the opening, or its negation, is a member. */
export function classEnd(text: string, open: number): number {
  let i = open + 1;
  if (text[i] === "!" || text[i] === "^") i++;
  if (text[i] === "]") i++;
  for (; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "]") return i;
  }
  return -1;
}

const slash = 0x2f;

function translateClass(body: string): string | GlobFault {
  if (/\[[:.=]/.test(body)) {
    return { error: "named classes such as `[:alpha:]` are not known; write the characters" };
  }
  const { negated, ranges } = classRanges(body);
  if (ranges.some(([low, high]) => high < low)) return { error: `the range in \`[${body}]\` runs backwards` };
  // A class stays within its level, also when a range runs across the slash.
  const spans = ranges.map(([low, high]) =>
    span(low, Math.min(high, slash - 1)) + span(Math.max(low, slash + 1), high)
  );
  return `[${negated ? "^/" : ""}${spans.join("")}]`;
}

/** The first and last code points of what a class holds; one character is a range of its own. */
export function classRanges(
  body: string,
): { readonly negated: boolean; readonly ranges: readonly (readonly [number, number])[] } {
  const negated = /^[!^]/.test(body);
  const points = [...(negated ? body.slice(1) : body)];
  /** Each member, and whether it was written without a backslash. */
  const members: (readonly [point: number, plain: boolean])[] = [];
  for (let i = 0; i < points.length; i++) {
    const escaped = points[i] === "\\";
    members.push([points[escaped ? ++i : i]?.codePointAt(0) ?? 0, !escaped]);
  }
  const ranges: (readonly [number, number])[] = [];
  for (let first = members.shift(); first !== undefined; first = members.shift()) {
    const [dash, last] = members;
    const isRange = dash?.[0] === 0x2d && dash[1] && last !== undefined;
    ranges.push([first[0], isRange ? last[0] : first[0]]);
    if (isRange) members.splice(0, 2);
  }
  return { negated, ranges };
}

function span(low: number, high: number): string {
  if (low > high) return "";
  const show = (point: number) => `\\x{${point.toString(16)}}`;
  return `${show(low)}-${show(high)}`;
}

function quote(text: string): string {
  return /[\\^$.*+?()[\]{}|]/.test(text) ? `\\${text}` : text;
}
