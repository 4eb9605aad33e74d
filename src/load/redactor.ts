// What is secret here: the shapes that everybody knows, the patterns of the policy, and values out of the environment.
import { isSecretName } from "../core/env_names.ts";
import { placeholder, type Redactor, secretShapes } from "../core/redact.ts";
import type { Policy } from "../core/policy.ts";
import { lazyPattern } from "./pattern.ts";

/** Shorter values would cut holes into ordinary text. */
export const shortestSecret = 8;

export type RedactorInput = {
  readonly redact: Policy["redact"];
  readonly env: { readonly [name: string]: string | undefined };
  /** Values that are secret wherever they come from, such as the model key. */
  readonly secrets: readonly string[];
  /** Fixed replacements, for runs that must give the same text everywhere. */
  readonly aliases?: readonly { readonly value: string; readonly as: string }[];
};

export function makeRedactor(input: RedactorInput): Redactor {
  const named = Object.entries(input.env).filter(([name, value]) =>
    value !== undefined && value.length >= shortestSecret &&
    (isSecretName(name) || input.redact.env.includes(name))
  );
  const values = [
    ...named.map(([name, value]) => ({ value: value ?? "", as: placeholder(name) })),
    ...input.secrets.filter((s) => s.length >= shortestSecret).map((value) => ({
      value,
      as: placeholder("key"),
    })),
    ...(input.aliases ?? []),
  ].sort((a, b) => b.value.length - a.value.length);
  return { values, shapes: input.redact.builtin ? builtinShapes : [], patterns: input.redact.patterns };
}

// Compiled when a text first holds one of their marks: most runs never need one.
const builtinShapes: Redactor["shapes"] = secretShapes.map(({ kind, marks, source }) => ({
  kind,
  marks,
  pattern: lazyPattern(source),
}));
