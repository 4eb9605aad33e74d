// Texts of a rule → compiled matchers: command patterns, path globs, host patterns, skill globs, with `@sets` written out.
import { type CommandPattern, parseCommandPattern } from "../core/command.ts";
import { absoluteGlob, globSource } from "../core/glob.ts";
import { nearest } from "../core/problem.ts";
import type { RiskyOption } from "../core/risky_options.ts";
import type { HostPattern, Matchers, PathPattern } from "../core/rule.ts";
import { shippedSets } from "../core/shipped_sets.ts";
import type { Matcher } from "../core/tool_names.ts";
import { parseHostPattern } from "./host_pattern.ts";
import { lazyPattern } from "./pattern.ts";

/** What the texts of rules are read against. Absolute real paths. */
export type MatcherContext = {
  readonly root: string;
  readonly home: string;
  /** The policy's own sets that are in sight. */
  readonly sets: ReadonlyMap<string, readonly string[]>;
  readonly risky: readonly RiskyOption[];
};
export type MatcherFault = { readonly code: string; readonly message: string; readonly hint?: string };
/** The entries of one matcher, all of its kind. */
export type Compiled =
  | { readonly kind: "command"; readonly entries: readonly CommandPattern[] }
  | { readonly kind: "path"; readonly entries: readonly PathPattern[] }
  | { readonly kind: "host"; readonly entries: readonly HostPattern[] }
  | { readonly kind: "skill"; readonly entries: readonly string[] };

/** Compiles one text of a matcher; `@name` gives every entry of that set. */
export function compileText(kind: Matcher, text: string, context: MatcherContext): Compiled | MatcherFault {
  if (kind === "skill" || !text.startsWith("@")) return compileOne(kind, text, context);
  const name = text.slice(1);
  const own = context.sets.get(name);
  const shipped = Object.hasOwn(shippedSets, name) ? shippedSets[name] : undefined;
  if (own === undefined && shipped === undefined) return unknownSet(kind, text, context);
  if (own === undefined && shipped !== undefined && shipped.matcher !== kind) {
    return {
      code: "wrong-set",
      message: `\`${text}\` lists ${words[shipped.matcher]}`,
      hint: `it cannot stand for ${words[kind]}`,
    };
  }
  const all: Compiled[] = [];
  for (const entry of own ?? shipped?.entries ?? []) {
    const one = compileOne(kind, entry, context);
    if ("code" in one) return { ...one, message: `in set \`${text}\`: ${one.message}` };
    all.push(own === undefined ? ofSet(name, one) : one);
  }
  return join(kind, all);
}

function ofSet(set: string, compiled: Compiled): Compiled {
  return compiled.kind === "command"
    ? { ...compiled, entries: compiled.entries.map((entry) => ({ ...entry, set })) }
    : compiled;
}

/** All entries in order; `all` must be of this kind. */
export function join(kind: Matcher, all: readonly Compiled[]): Compiled {
  return { kind, entries: all.flatMap((c): readonly unknown[] => c.entries) } as Compiled;
}

/** As the members of a rule: what it is about, and what is carved from that. */
export function matchersOf(main: Compiled, except: Compiled | undefined): Omit<Matchers, "tools"> {
  switch (main.kind) {
    case "command":
      return {
        command: main.entries,
        ...(except?.kind === "command" ? { exceptCommand: except.entries } : {}),
      };
    case "path":
      return { path: main.entries, ...(except?.kind === "path" ? { exceptPath: except.entries } : {}) };
    case "host":
      return { host: main.entries, ...(except?.kind === "host" ? { exceptHost: except.entries } : {}) };
    case "skill":
      return { skill: main.entries };
  }
}

/** A path glob as a pattern over absolute paths. */
export function pathPattern(
  glob: string,
  context: { readonly root: string; readonly home: string },
): PathPattern | { readonly error: string } {
  const made = absoluteGlob(glob, context);
  if ("error" in made) return made;
  const { prefix, needle, literal } = made;
  const inner = lazyPattern(globSource(made.glob));
  // Most paths fail at what holds no wildcard, which needs no expression.
  const test = literal
    ? (path: string) => path === prefix
    : (path: string) => path.startsWith(prefix) && path.includes(needle) && inner.test(path);
  return {
    source: glob,
    literal,
    pattern: { source: inner.source, test, find: (path) => test(path) ? [0, path.length] : undefined },
  };
}

const words: Readonly<Record<Matcher, string>> = {
  command: "commands",
  path: "paths",
  host: "hosts",
  skill: "skills",
};

function compileOne(kind: Matcher, text: string, context: MatcherContext): Compiled | MatcherFault {
  switch (kind) {
    case "command": {
      const command = parseCommandPattern(text, context.risky);
      if ("error" in command) {
        return { code: "bad-pattern", message: `\`${text}\` is no command pattern: ${command.error}` };
      }
      const [star] = command.stars ?? [];
      if (star === undefined) return { kind, entries: [command] };
      return {
        code: "bad-pattern",
        message: `\`${star}\` in \`${text}\` would be taken literally`,
        hint: `${starHint(text, star)}; quote it to mean the character`,
      };
    }
    case "path": {
      const path = pathPattern(text, context);
      if ("error" in path) {
        return { code: "bad-pattern", message: `\`${text}\` is no path glob: ${path.error}` };
      }
      return { kind, entries: [path] };
    }
    case "host": {
      const host = parseHostPattern(text);
      if ("error" in host) {
        return { code: "bad-pattern", message: `\`${text}\` is no host pattern: ${host.error}` };
      }
      return { kind, entries: [host] };
    }
    case "skill":
      return { kind, entries: [text] };
  }
}

function starHint(text: string, star: string): string {
  const stem = star.slice(0, -1);
  const before = text.slice(0, text.indexOf(star));
  if (stem === "" || stem.includes("*") || !star.endsWith("*")) {
    return "a `*` is a word of its own at the end";
  }
  if (/[A-Za-z0-9]$/.test(stem)) {
    return `a \`*\` is a word of its own at the end, as in \`${before}${stem} *\``;
  }
  const whole = before === "" ? "" : `\`${before}*\` or `;
  return `a \`*\` stands for whole words only: write ${whole}one rule for each word that is meant`;
}

function unknownSet(kind: Matcher, text: string, context: MatcherContext): MatcherFault {
  const known = [...context.sets.keys(), ...Object.keys(shippedSets)];
  const near = nearest(text.slice(1), known);
  const hint = near !== undefined
    ? `did you mean \`@${near}\`?`
    : kind === "path"
    ? `define it in \`permissions.sets\`, or write \`./${text}\` for the path`
    : `define it in \`permissions.sets\`; shipped are ${
      Object.keys(shippedSets).map((s) => `\`@${s}\``).join(", ")
    }`;
  return { code: "unknown-set", message: `no set \`${text}\``, hint };
}
