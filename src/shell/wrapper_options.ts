// The options of a wrapper: where they end and its command starts, and the shell texts among them.
import { type Shape, unknownMark } from "./words.ts";
import type { WrapperSpec } from "./wrapper_table.ts";

export type Inner =
  | { readonly kind: "command"; readonly words: readonly Shape[]; readonly assignments: readonly string[] }
  | { readonly kind: "script"; readonly text: string };

export function command(
  words: readonly Shape[],
  assignments: readonly string[] = [],
): Extract<Inner, { readonly kind: "command" }> {
  return { kind: "command", words, assignments };
}

/** Words as the shell text that they make: what is unknown in them may be anything there, quotes included. */
export function joined(words: readonly Shape[]): Inner {
  return { kind: "script", text: words.map((w) => w.blur?.pieces.join(unknownMark) ?? w.text).join(" ") };
}

export type Start = { readonly at: number; readonly assignments: readonly string[] };
export type Scan = {
  readonly starts: readonly Start[];
  readonly scripts: readonly Inner[];
  readonly placeholder: string;
};

const mostStarts = 8;

/** Reads the options from `from` on. Where an option is not known, every place at which the command may start is given. */
export function scanOptions(spec: WrapperSpec, words: readonly Shape[], from: number): Scan {
  const scripts: Inner[] = [];
  const starts: Start[] = [];
  let placeholder = "{}", i = from;
  const dashes = spec.dashes === true ? words.findIndex((w, at) => at >= from && w.text === "--") : -1;
  const script = (word: Shape | undefined, value: string | undefined) => {
    if (value !== undefined) scripts.push({ kind: "script", text: value });
    else if (word !== undefined) scripts.push(joined([word]));
  };
  for (; i < words.length; i++) {
    const word = words[i];
    if (word === undefined) break;
    if (word.blur !== undefined && word.blur.glob !== true) {
      for (let at = i; at < Math.min(words.length, i + mostStarts); at++) {
        starts.push({ at, assignments: [] });
      }
      break;
    }
    if (word.text === "--") {
      i++;
      break;
    }
    if (word.text === "-" && spec.flags?.includes("-") === true) continue;
    if (!/^-./.test(word.text)) {
      if (spec.dashes === true && spec.script !== undefined) continue;
      break;
    }
    const option = readOption(spec, word.text);
    if (option.script) script(words[i + 1], option.value);
    if (/^(-I|-i|--replace)/.test(word.text) && spec.adds === true) {
      placeholder = option.value ?? (word.text === "-I" ? words[i + 1]?.text : undefined) ?? "{}";
    }
    if (option.next === "unsure") starts.push(...ready(spec, words, i + 2));
    if (option.next === true) i++;
  }
  if (spec.dashes !== true) starts.push(...ready(spec, words, i));
  else if (dashes >= 0) starts.push({ at: dashes + 1, assignments: [] });
  const seen = new Map(starts.map((s) => [s.at, s]));
  return {
    starts: [...seen.values()].filter((s) => s.at < words.length),
    scripts,
    placeholder: placeholder === "" ? "{}" : placeholder,
  };
}

// Where the command starts when the options end at `from`.
function ready(spec: WrapperSpec, words: readonly Shape[], from: number): readonly Start[] {
  const assignments: string[] = [];
  let at = from;
  for (
    let word = words[at];
    spec.assigns === true && word !== undefined && /^[A-Za-z_][A-Za-z0-9_]*=/.test(word.text);
    word = words[++at]
  ) {
    assignments.push(word.text);
  }
  at += spec.operands ?? 0;
  if (words[at]?.text === "--") at++;
  return [{ at, assignments }];
}

export type OptionRead = {
  readonly script: boolean;
  readonly value?: string;
  readonly next: boolean | "unsure";
};

/** How one option of a wrapper is to be read. */
export function readOption(spec: WrapperSpec, text: string): OptionRead {
  if (text.startsWith("--")) {
    const equals = text.indexOf("=");
    const name = equals < 0 ? text : text.slice(0, equals);
    const value = equals < 0 ? {} : { value: text.slice(equals + 1) };
    const matches = (o: string) => o.startsWith(name);
    if (spec.script?.some(matches) === true) return { script: true, ...value, next: equals < 0 };
    if (equals >= 0) return { script: false, ...value, next: false };
    if (spec.long?.some(matches) === true) return { script: false, next: true };
    return { script: false, next: spec.bare?.some(matches) === true ? false : "unsure" };
  }
  for (let i = 1; i < text.length; i++) {
    const letter = text[i] ?? "";
    const value = i + 1 < text.length ? { value: text.slice(i + 1) } : {};
    if (spec.script?.includes(letter) === true) {
      return { script: true, ...value, next: i + 1 === text.length };
    }
    if (spec.valued?.includes(letter) === true) {
      return { script: false, ...value, next: i + 1 === text.length };
    }
    if (spec.flags?.includes(letter) !== true) return { script: false, ...value, next: "unsure" };
  }
  return { script: false, next: false };
}
