// What the walk through a syntax tree finds.
import type { Part } from "../core/facts.ts";
import type { Effort } from "./effort.ts";
import type { Operand } from "./operands.ts";
import { quoted } from "./words.ts";
import type { Inner } from "./wrapper_options.ts";

export type Fault = { readonly code: string; readonly message: string };
export type Level = Part["level"];

/** One file that a redirection opens. `written` is undefined when the target is not known. */
export type OpenedFile = {
  readonly written?: string;
  readonly access: "read" | "write";
  readonly text: string;
  /** The shell may have left its first folder by then: a relative target is somewhere else. */
  readonly afterCd: boolean;
  readonly level: Level;
};

export type FoundOperand = Operand & { readonly afterCd: boolean; readonly level: Level };

export type Collected = {
  readonly parts: Part[];
  /** Words that programs of which nothing is known may run. */
  readonly guesses: Part[];
  readonly redirections: OpenedFile[];
  readonly operands: FoundOperand[];
  readonly faults: Fault[];
  /** A cd, or something that may hold one, was seen. */
  moved: boolean;
  /** A command that runs what it reads was seen. */
  readsCommands: boolean;
  /** What the commands seen so far run of a text that they read. */
  readonly readers: ((input: string) => readonly Inner[])[];
  readonly effort: Effort;
  /** What is left for texts that are no more than guessed to run. */
  readonly guessing: Effort;
  /** Folders, as written, in which the commands to come may stand. */
  readonly folders: string[];
  /** Where the path of a program leads; undefined when that is not known. */
  readonly leads?: (program: string) => string | undefined;
};

/** A word or construct that bash may take apart in another way than the parser: what it would run is not known. */
export function unclear(text: string): Fault {
  const message = `${quoted(text)} can be read in two ways; put a blank where a word ends, or quote it`;
  return { code: "unclear_syntax", message };
}
