// Brace expansion as bash does it before everything else: on the raw text of a word.

const mostWords = 512;
const mostBraces = 32;

/** The raw words that a raw word stands for; undefined when that cannot be told from the text alone. */
export function expandBraces(raw: string): readonly string[] | undefined {
  if (/[$`]|[<>]\(/.test(raw.replace(/\\.|'[^']*'/gs, ""))) return undefined;
  if (raw.split("{").length > mostBraces) return undefined;
  const words = expand(raw, 0);
  return words.length > mostWords ? undefined : words;
}

function expand(raw: string, from: number): readonly string[] {
  for (let open = from; open < raw.length; open = skip(raw, open)) {
    if (raw[open] !== "{") continue;
    const close = closing(raw, open);
    if (close < 0) continue;
    const choices = choicesOf(raw.slice(open + 1, close));
    if (choices === undefined) continue;
    const tails = expand(raw.slice(close + 1), 0);
    const words: string[] = [];
    for (const choice of choices) {
      for (const tail of tails) {
        if (words.length > mostWords) return words;
        words.push(raw.slice(0, open) + choice + tail);
      }
    }
    return words;
  }
  return [raw];
}

// The index after the character at i, or after the quoted text that starts there.
function skip(raw: string, i: number): number {
  const c = raw[i];
  if (c === "\\") return i + 2;
  if (c !== "'" && c !== '"') return i + 1;
  for (let end = i + 1; end < raw.length; end++) {
    if (raw[end] === "\\" && c === '"') end++;
    else if (raw[end] === c) return end + 1;
  }
  return raw.length;
}

function closing(raw: string, open: number): number {
  let depth = 0;
  for (let i = open; i < raw.length; i = skip(raw, i)) {
    if (raw[i] === "{") depth++;
    else if (raw[i] === "}" && --depth === 0) return i;
  }
  return -1;
}

function choicesOf(inner: string): readonly string[] | undefined {
  const parts: string[] = [];
  let depth = 0, start = 0;
  for (let i = 0; i < inner.length; i = skip(inner, i)) {
    if (inner[i] === "{") depth++;
    else if (inner[i] === "}") depth--;
    else if (inner[i] === "," && depth === 0) {
      parts.push(inner.slice(start, i));
      start = i + 1;
    }
  }
  if (parts.length === 0) return sequence(inner);
  parts.push(inner.slice(start));
  return parts.flatMap((part) => expand(part, 0)).slice(0, mostWords + 1);
}

function sequence(inner: string): readonly string[] | undefined {
  const match = /^(?:(-?\d+)\.\.(-?\d+)|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d+))?$/.exec(inner);
  if (match === null) return undefined;
  const [, low, high, first, last, by] = match;
  const letters = first !== undefined && last !== undefined;
  const start = letters ? first.charCodeAt(0) : Number(low);
  const end = letters ? last.charCodeAt(0) : Number(high);
  const step = Math.max(1, Math.abs(Number(by ?? 1)));
  const padded = [low, high].some((n) => n !== undefined && /^-?0\d/.test(n));
  const width = padded ? Math.max(low?.length ?? 0, high?.length ?? 0) : 0;
  const words: string[] = [];
  for (let n = start; start <= end ? n <= end : n >= end; n += start <= end ? step : -step) {
    if (words.length > mostWords) break;
    words.push(letters ? String.fromCharCode(n) : pad(n, width));
  }
  return words;
}

function pad(n: number, width: number): string {
  return n < 0 ? `-${String(-n).padStart(width - 1, "0")}` : String(n).padStart(width, "0");
}
