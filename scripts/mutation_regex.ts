// Small changes of one regular expression. Its words are data; what joins them is logic.

type Token = { readonly text: string; readonly inClass: boolean };

const opposite: Readonly<Record<string, string>> = {
  "\\d": "\\D",
  "\\D": "\\d",
  "\\s": "\\S",
  "\\S": "\\s",
  "\\w": "\\W",
  "\\W": "\\w",
};

/**
 * The literal with one anchor or word border left out, one class or its short form turned round, one quantifier or one
 * flag but `g`, `u` and `v` left out, in the order in which they stand.
 */
export function regexMutants(literal: string): readonly string[] {
  const end = literal.lastIndexOf("/");
  const flags = literal.slice(end + 1);
  const tokens = tokensOf(literal.slice(1, end));
  const sources = tokens.flatMap((token, i) => {
    const to = changed(token, tokens[i - 1]);
    return to === undefined ? [] : [tokens.map((t, at) => at === i ? to : t.text).join("")];
  });
  return [
    ...sources.filter((s) => s !== "").map((s) => `/${s}/${flags}`),
    ...[...flags].filter((f) => !"guv".includes(f)).map((f) =>
      `${literal.slice(0, end + 1)}${flags.replace(f, "")}`
    ),
  ];
}

function changed({ text, inClass }: Token, before: Token | undefined): string | undefined {
  if (opposite[text] !== undefined) return opposite[text];
  if (inClass) return undefined;
  if (text === "[") return "[^";
  if (text === "[^") return "[";
  if (text === "^" || text === "$" || text === "\\b") return "";
  // A `?` after a quantifier only says that it takes little.
  const quantifies = /^([*+?]|\{\d+(,\d*)?\})$/.test(text) && before?.text !== "(";
  return quantifies ? "" : undefined;
}

function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = [];
  let inClass = false;
  const token = /\\.|\[\^?|\(\?(?:[:=!]|<[=!])|\{\d+(?:,\d*)?\}|[^]/gsu;
  for (const [text] of source.matchAll(token)) {
    tokens.push({ text, inClass });
    if (text.startsWith("[")) inClass = true;
    else if (text === "]") inClass = false;
  }
  return tokens;
}
