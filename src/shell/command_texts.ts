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

/** Texts in quotes and backquotes, those after one another as one text as well. */
export function callTexts(code: string): readonly string[] {
  const found = [
    ...code.matchAll(/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`|[({\[]([\w ./-]*)[)}\]]/g),
  ]
    .map((m) => unescaped(m[1] ?? m[2] ?? m[3] ?? m[4] ?? ""));
  return found.length < 2 ? found : [...found, found.join(" "), found.join("")];
}

/** Recipes, `$(shell …)` and `!=` of a makefile. */
export function makeTexts(code: string): readonly string[] {
  const lines = code.split("\n").flatMap((line) => [
    /^\t[@+-]*(.*)/.exec(line)?.[1] ?? "",
    /^[^=\t]*:[^=]*;[@+-]*(.*)/.exec(line)?.[1] ?? "",
    /!=\s*(.*)/.exec(line)?.[1] ?? "",
    /--eval=(.*)/.exec(line)?.[1] ?? "",
  ]);
  const inner = [...code.matchAll(/\$[({]\s*shell\s+([^)}]*)/g)].map((m) => m[1] ?? "");
  return [...lines, ...inner].filter((t) => t.trim() !== "");
}

/** What substitutions of a sed script put in place of what they find. */
export function sedReplacements(code: string): readonly string[] {
  return [...code.matchAll(/s([^\sa-zA-Z0-9\\])(?:\\.|(?!\1)[^\\])*\1((?:\\.|(?!\1)[^\\])*)\1/gs)]
    .map((m) => (m[2] ?? "").replace(/\\[0-9]|&/g, unknownMark));
}

/**
 * What the commands of a database client run; an undefined entry stands for something that it runs and that is not said.
 */
export function sqlTexts(program: string, code: string): readonly (string | undefined)[] {
  const all = (pattern: RegExp) => [...code.matchAll(pattern)].map((m) => m[1]);
  if (program.startsWith("sqlite")) {
    return [
      ...all(/^\s*\.(?:sh\w*|sy\w*)\s+(.*)/gm),
      ...all(/^\s*\.(?:on|ou|im|re|ex|www?)\w*\s[^\n]*?\|\s*(.*)/gm),
      ...all(/^\s*\.(?:load|lo|www?|ex|exc\w*|read|cd)\b()/gm).map(() => undefined),
      ...all(/\b(?:load_extension|edit|fts3_tokenizer|writefile)\s*\(()/gi).map(() => undefined),
    ];
  }
  if (program === "psql") {
    return [
      ...all(/\\!\s*(.*)/g),
      ...all(/\bprogram\s+'([^']*)'/gi),
      ...all(/\\(?:o|out|g|gx|w|copy)\b[^\n|]*\|\s*(.*)/g),
      ...all(/\\(?:gexec|i|ir|include)\b()/g).map(() => undefined),
    ];
  }
  return all(/(?:^|;|\n)\s*(?:system|\\!|pager|\\P)\s+([^\n]*)/g);
}

const awkKeywords =
  /^(BEGIN|END|print|printf|return|getline|system|if|else|while|for|in|do|next|exit|delete|function|close)$/;

/** Texts of an awk program: each by itself, and with what stands next to it, of which variables are not known. */
export function awkTexts(program: string): readonly string[] {
  const runs = program.match(/(?:"(?:[^"\\]|\\.)*"|[\w$.]+|[ \t])+/g) ?? [];
  return runs.filter((run) => run.includes('"')).flatMap((run) => {
    const tokens = run.match(/"(?:[^"\\]|\\.)*"|[\w$.]+/g) ?? [];
    const texts = tokens.filter((t) => t.startsWith('"')).map((t) => unescaped(t.slice(1, -1)));
    const put = tokens.filter((t) => !awkKeywords.test(t))
      .map((t) => t.startsWith('"') ? unescaped(t.slice(1, -1)) : unknownMark).join("");
    return texts.length === 1 && texts[0] === put ? texts : [put, ...texts];
  });
}

function unescaped(text: string): string {
  return text.replace(/\\n/g, "\n").replace(/\\t/g, "\t").replace(/\\(.)/gs, "$1");
}
