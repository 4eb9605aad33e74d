// Command patterns: words of one simple command, and when they cover it. (interface; being written)
import type { Part } from "./facts.ts";

/** `git diff *`: literal words, and whether a last `*` stands for any further words. */
export type CommandPattern = {
  readonly source: string;
  readonly assignments: readonly string[];
  readonly words: readonly string[];
  readonly rest: boolean;
};

export function matchesCommand(_pattern: CommandPattern, _part: Part, _reach: "allow" | "restrict"): boolean {
  throw new Error("not written");
}
