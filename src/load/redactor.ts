// What is secret here: the shapes that everybody knows, the patterns of the policy, and values out of the environment, also
// where they are written in base64 or hexadecimal.
import { Buffer } from "node:buffer";
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
  const secrets = [
    ...named.map(([name, value]) => ({ value: value ?? "", as: placeholder(name) })),
    ...input.secrets.filter((s) => s.length >= shortestSecret).map((value) => ({
      value,
      as: placeholder("key"),
    })),
  ];
  const values = [
    ...secrets,
    ...secrets.flatMap(({ value, as }) => writtenOtherwise(value).map((written) => ({ value: written, as }))),
    ...(input.aliases ?? []),
  ].sort((a, b) => b.value.length - a.value.length);
  return { values, shapes: input.redact.builtin ? builtinShapes : [], patterns: input.redact.patterns };
}

// A program that shows its environment or a header often shows it encoded. In base64 a text looks in three ways, by what stands
// before it; the characters at both ends that hold bits of its neighbours are left out.
function writtenOtherwise(value: string): readonly string[] {
  const bytes = Buffer.from(value, "utf8");
  const hex = bytes.toString("hex");
  const base64 = [0, 1, 2].map((before) => {
    const bits = bytes.length * 8 + before * 8;
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(bits / 6));
  });
  const written = [
    hex,
    hex.toUpperCase(),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
    encodeURIComponent(value.toWellFormed()),
    JSON.stringify(value).slice(1, -1),
  ];
  return [...new Set(written)].filter((text) => text !== value);
}

// Compiled when a text first holds one of their marks: most runs never need one.
const builtinShapes: Redactor["shapes"] = secretShapes.map(({ kind, marks, source }) => ({
  kind,
  marks,
  pattern: lazyPattern(source),
}));
