// Shell texts inside the texts of other languages: what an editor, a database client, a makefile, sed or awk may hand to a
// shell. Candidates, not a reading: what is not run there is looked at all the same.
import { unknownMark } from "./words.ts";

/** What follows `!` in the commands of vi and ed, and texts in quotes. */
export function exTexts(code: string): readonly string[] {
  return code.split("\n").flatMap((line) => [
    ...[...line.matchAll(/!+\s*/g)].map((m) => line.slice(m.index + m[0].length)),
    ...callTexts(line),
  ]);
}

const quotedText: Readonly<Record<string, RegExp>> = {
  '"': /"((?:[^"\\]|\\.)*)"/sy,
  "'": /'((?:[^'\\]|\\.)*)'/sy,
  "`": /`((?:[^`\\]|\\.)*)`/sy,
};
const bracketed = /[({\[]([\w ./-]*)[)}\]]/y;

/** Texts in quotes and backquotes, those after one another as one text as well. */
export function callTexts(code: string): readonly string[] {
  const found: string[] = [];
  // A quote that nothing closes closes no later one either: its kind is not tried again, so that time goes by length.
  const open = new Set<string>();
  for (let at = 0; at < code.length; at++) {
    const c = code[at] ?? "";
    const pattern = /[({[]/.test(c) ? bracketed : open.has(c) ? undefined : quotedText[c];
    if (pattern === undefined) continue;
    pattern.lastIndex = at;
    const match = pattern.exec(code);
    if (match === null) {
      if (pattern !== bracketed) open.add(c);
      continue;
    }
    found.push(unescaped(match[1] ?? ""));
    at = pattern.lastIndex - 1;
  }
  return found.length < 2 ? found : [...found, found.join(" "), found.join("")];
}

/** Recipes, `$(shell …)` and `!=` of a makefile. */
export function makeTexts(code: string): readonly string[] {
  const lines = code.split("\n").flatMap((line) => [
    ...(line.startsWith("\t") ? [line.replace(/^\t[@+-]*/, "")] : []),
    ...(line.includes(";") ? [recipeBehind(line)] : []),
    ...(line.includes("=") ? [/!=\s*(.*)/.exec(line)?.[1] ?? "", /--eval=(.*)/.exec(line)?.[1] ?? ""] : []),
  ]);
  const inner = [...code.matchAll(/\$[({]\s*shell\s+([^)}]*)/g)].map((m) => m[1] ?? "");
  return [...lines, ...inner].filter((t) => t.trim() !== "");
}

// What follows the `;` of `target: needed; recipe`.
function recipeBehind(line: string): string {
  const [head = ""] = line.split("=", 1);
  const colon = head.indexOf(":");
  const end = head.indexOf(";", colon);
  return colon < 0 || end < 0 || head.slice(0, colon).includes("\t")
    ? ""
    : line.slice(end + 1).replace(/^\s*[@+-]*/, "");
}

// So many substitutions without end are looked for; each looks through the rest of the script.
const mostOpen = 20;

/** What substitutions of a sed script put in place of what they find. */
export function sedReplacements(code: string): readonly string[] {
  const found: string[] = [];
  const substitution = /s([^\sa-zA-Z0-9\\])(?:\\.|(?!\1)[^\\])*\1((?:\\.|(?!\1)[^\\])*)\1/sy;
  let open = 0;
  for (let at = code.indexOf("s"); at >= 0; at = code.indexOf("s", at + 1)) {
    if (/^[\sa-zA-Z0-9\\]?$/.test(code[at + 1] ?? "")) continue;
    substitution.lastIndex = at;
    const match = substitution.exec(code);
    if (match === null) {
      if (++open > mostOpen) return [...found, unknownMark];
      continue;
    }
    found.push((match[2] ?? "").replace(/\\[0-9]|&/g, unknownMark));
    at = substitution.lastIndex - 1;
  }
  return found;
}

/**
 * What the commands of a database client run; an undefined entry stands for something that it runs and that is not said.
 */
export function sqlTexts(program: string, code: string): readonly (string | undefined)[] {
  const all = (pattern: RegExp) => [...code.matchAll(pattern)].map((m) => m[1]);
  if (program.startsWith("sqlite")) {
    return [
      ...all(/^[^\S\n]*\.(?:sh\w*|sy\w*)\s+(.*)/gm),
      ...all(/^[^\S\n]*\.(?:on|ou|im|re|ex|www?)\w*\s[^\n]*?\|\s*(.*)/gm),
      ...all(/^[^\S\n]*\.(?:load|lo|www?|ex|exc\w*|read|cd)\b()/gm).map(() => undefined),
      ...all(/\b(?:load_extension|edit|fts3_tokenizer|writefile)\s*\(()/gi).map(() => undefined),
    ];
  }
  if (program === "psql") {
    return [
      ...all(/\\!\s*(.*)/g),
      ...all(/\bprogram\s+'([^']*)'/gi),
      ...code.split("\n").flatMap(pipedBehind),
      ...all(/\\(?:gexec|i|ir|include)\b()/g).map(() => undefined),
    ];
  }
  return all(/(?:^\s*|[;\n][^\S\n]*)(?:system|\\!|pager|\\P)\s+([^\n]*)/g);
}

// What psql's `\o | command` and its kin pipe into, in one line.
function pipedBehind(line: string): readonly string[] {
  const option = /\\(?:o|out|g|gx|w|copy)\b/.exec(line);
  const pipe = option === null ? -1 : line.indexOf("|", option.index);
  return pipe < 0 ? [] : [line.slice(pipe + 1)];
}

const awkKeywords =
  /^(BEGIN|END|print|printf|return|getline|system|if|else|while|for|in|do|next|exit|delete|function|close)$/;

/** Texts of an awk program: each by itself, and with what stands next to it, of which variables are not known. */
export function awkTexts(program: string): readonly string[] {
  // An open quote takes the rest with it: no later one is closed.
  const runs = program.match(/(?:"(?:[^"\\]|\\.)*"|[\w$.]+|[ \t])+|"(?:[^"\\]|\\.)*$/gs) ?? [];
  return runs.filter((run) => run.includes('"')).flatMap((run) => {
    const tokens = run.match(/"(?:[^"\\]|\\.)*"|[\w$.]+/gs) ?? [];
    const texts = tokens.filter((t) => t.startsWith('"')).map((t) => unescaped(t.slice(1, -1)));
    const put = tokens.filter((t) => !awkKeywords.test(t))
      .map((t) => t.startsWith('"') ? unescaped(t.slice(1, -1)) : unknownMark).join("");
    return texts.length === 1 && texts[0] === put ? texts : [put, ...texts];
  });
}

function unescaped(text: string): string {
  return text.replace(/\\n/g, "\n").replace(/\\t/g, "\t").replace(/\\(.)/gs, "$1");
}
