// The hostile cases as data (test/cases/hostile.json): their recipes made real on a machine of a test.
import { assert } from "@std/assert";
import { Buffer } from "node:buffer";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Machine } from "./machine.ts";
import { root } from "./runtimes.ts";

type Part = string | { readonly repeat: readonly [unit: string, times: number] } | { readonly hex: string };
/** A text, or parts that make one. */
export type Recipe = string | readonly Part[];
type Args = { readonly [name: string]: unknown };
export type Layer = {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
  readonly sandbox?: unknown;
  readonly model?: unknown;
  readonly raw?: string;
};
export type HostileCase = {
  readonly id: string;
  readonly kind: string;
  readonly why: string;
  readonly input: {
    readonly files?: { readonly [path: string]: Recipe };
    readonly fifo?: readonly string[];
    readonly symlinks?: { readonly [path: string]: string };
    readonly user_message?: Recipe;
    readonly script?: readonly {
      readonly text?: string;
      readonly tool_call?: readonly [tool: string, args: Args];
      readonly tool_call_raw?: readonly [tool: string, args: string];
    }[];
    readonly policy_allows?: readonly string[];
    readonly deny_commands?: readonly string[];
    readonly layers?: { readonly user?: Layer; readonly project?: Layer };
    readonly then_write_raw?: string;
    readonly call?: readonly [tool: string, args: Args];
    readonly canary?: string;
    readonly stdout?: Recipe;
    readonly command?: string;
    readonly timeout_ms?: number;
  };
  readonly expect: { readonly must: readonly string[]; readonly within_ms?: number };
};

export const hostileCases: readonly HostileCase[] =
  JSON.parse(readFileSync(join(root, "test/cases/hostile.json"), "utf8")).cases;

export function caseOf(id: string): HostileCase {
  const found = hostileCases.find((c) => c.id === id);
  assert(found !== undefined, `no case ${id}`);
  return found;
}

export function bytesOf(recipe: Recipe): Buffer {
  const parts = typeof recipe === "string" ? [recipe] : recipe;
  return Buffer.concat(parts.map((part) => {
    if (typeof part === "string") return Buffer.from(part, "utf8");
    if ("hex" in part) return Buffer.from(part.hex, "hex");
    return Buffer.from(part.repeat[0].repeat(part.repeat[1]), "utf8");
  }));
}

export const textOf = (recipe: Recipe | undefined): string => bytesOf(recipe ?? "").toString("utf8");

/** Where a path of a case lies: skills among those of the user, everything else in the repository. */
export function placeOf(m: Machine, path: string): string {
  return path.startsWith("skills/") ? join(m.top, "config/writ", path) : join(m.repo, path);
}

/** Files, pipes and links of a case, in this order. */
export function plant(m: Machine, { input }: HostileCase): void {
  for (const [path, recipe] of Object.entries(input.files ?? {})) {
    m.write(placeOf(m, path).slice(m.top.length + 1), bytesOf(recipe));
  }
  for (const path of input.fifo ?? []) {
    mkdirSync(dirname(placeOf(m, path)), { recursive: true });
    execFileSync("mkfifo", [placeOf(m, path)]);
  }
  for (const [path, target] of Object.entries(input.symlinks ?? {})) {
    symlinkSync(target.replace("{home}", m.home), placeOf(m, path));
  }
}

/** A layer in the keys of a policy file, below `version` and whatever else the test needs. */
export function layerText(layer: Layer): string {
  const { allow, deny, sandbox, model } = layer;
  const permissions = {
    ...(allow === undefined ? {} : { allow }),
    ...(deny === undefined ? {} : { deny }),
  };
  return [
    ...(Object.keys(permissions).length === 0 ? [] : [`permissions: ${JSON.stringify(permissions)}`]),
    ...(sandbox === undefined
      ? []
      : [`sandbox: ${JSON.stringify(typeof sandbox === "string" ? { mode: sandbox } : sandbox)}`]),
    ...(model === undefined ? [] : [`model: ${JSON.stringify(model)}`]),
  ].map((line) => `${line}\n`).join("");
}

/** Replies of a script file for the calls of a case. */
export function repliesOf({ input }: HostileCase): string {
  return JSON.stringify(
    (input.script ?? []).map(({ text, tool_call }) =>
      tool_call === undefined ? { text: text ?? "" } : { call: { [tool_call[0]]: tool_call[1] } }
    ),
  );
}
