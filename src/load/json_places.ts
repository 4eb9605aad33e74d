// Where things stand in a text that is JSON, and where one that is none goes wrong: what the runtimes' own readers do not say.

export type JsonPath = readonly (string | number)[];
export type JsonPlaces = {
  /** Offset of the value at a path; of the nearest one that holds it when it is missing. */
  at(path: JsonPath): number;
  /** Offset of the key of a member; of the value where there is no key. */
  keyAt(path: JsonPath): number;
  /** The first character that cannot stand where it stands; fits after "not JSON: ". */
  readonly fault?: { readonly offset: number; readonly says: string };
};

// Deeper than anything that is read here.
const mostDepth = 200;

/** Every place of the text up to the first fault. Linear time, and never deeper than the stack. */
export function jsonPlaces(text: string): JsonPlaces {
  const walk: Walk = { text, offset: 0, places: new Map() };
  const ended = readValue(walk, []) &&
    (skipBlanks(walk), walk.offset === text.length || fail(walk, "nothing more"));
  const find = (path: JsonPath, which: "key" | "value") => {
    for (let steps = path.length; steps >= 0; steps--) {
      const place = walk.places.get(JSON.stringify(path.slice(0, steps)));
      if (place !== undefined) {
        return which === "key" && steps === path.length ? place.key ?? place.value : place.value;
      }
    }
    return 0;
  };
  return {
    at: (path) => find(path, "value"),
    keyAt: (path) => find(path, "key"),
    ...(ended || walk.fault === undefined ? {} : { fault: walk.fault }),
  };
}

type Walk = {
  readonly text: string;
  offset: number;
  readonly places: Map<string, { readonly key?: number; readonly value: number }>;
  fault?: { readonly offset: number; readonly says: string };
};

function fail(walk: Walk, expected: string): false {
  const { text, offset } = walk;
  const [found] = text.slice(offset);
  const odd = found === undefined ? "the text ends" : found === "\n" ? "the line ends" : `found \`${found}\``;
  const why = text.startsWith("//", offset) || text.startsWith("/*", offset) || found === "#"
    ? "JSON has no comments"
    : found === "'"
    ? "JSON knows double quotes only"
    : undefined;
  walk.fault ??= { offset, says: `${odd}, expected ${expected}${why === undefined ? "" : `; ${why}`}` };
  return false;
}

function skipBlanks(walk: Walk): void {
  take(walk, /[ \t\r\n]*/y);
}

function take(walk: Walk, token: RegExp): string | undefined {
  token.lastIndex = walk.offset;
  const [found] = token.exec(walk.text) ?? [];
  if (found !== undefined) walk.offset += found.length;
  return found;
}

const textToken = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const otherToken = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

function readValue(walk: Walk, path: JsonPath, key?: number): boolean {
  if (path.length > mostDepth) return fail(walk, "no deeper level");
  skipBlanks(walk);
  walk.places.set(JSON.stringify(path), { value: walk.offset, ...(key === undefined ? {} : { key }) });
  switch (walk.text[walk.offset]) {
    case "{":
      return readMembers(walk, "}", path);
    case "[":
      return readMembers(walk, "]", path);
    case '"':
      return take(walk, textToken) !== undefined || badText(walk);
    default:
      return take(walk, otherToken) !== undefined || fail(walk, "a value");
  }
}

function readMembers(walk: Walk, close: "}" | "]", path: JsonPath): boolean {
  walk.offset++;
  skipBlanks(walk);
  if (walk.text[walk.offset] === close) return walk.offset++, true;
  for (let index = 0;; index++) {
    const read = close === "]" ? readValue(walk, [...path, index]) : readMember(walk, path);
    if (!read) return false;
    skipBlanks(walk);
    const next = walk.text[walk.offset];
    if (next !== "," && next !== close) return fail(walk, `\`,\` or \`${close}\``);
    walk.offset++;
    if (next === close) return true;
    skipBlanks(walk);
    if (walk.text[walk.offset] === close) return fail(walk, "another entry after the `,`");
  }
}

function readMember(walk: Walk, path: JsonPath): boolean {
  skipBlanks(walk);
  const start = walk.offset;
  if (walk.text[start] !== '"') return fail(walk, "a key in double quotes");
  const token = take(walk, textToken);
  if (token === undefined) return badText(walk);
  skipBlanks(walk);
  if (walk.text[walk.offset] !== ":") return fail(walk, "`:` after the key");
  walk.offset++;
  return readValue(walk, [...path, JSON.parse(token) as string], start);
}

// The quote is closed in a later line, or never; or something in it is not written as JSON wants it.
function badText(walk: Walk): false {
  take(walk, /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y);
  return fail(walk, walk.text[walk.offset] === "\\" ? "`\\\\` for the character itself" : 'the closing `"`');
}
