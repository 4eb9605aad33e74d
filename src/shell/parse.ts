// Bash source → what is judged of it. Never throws; what cannot be parsed gives errors, what cannot be followed gives
// parts that no allow rule covers.
import type { Part } from "../core/facts.ts";
import { byteLength } from "../core/text.ts";
import { collect } from "./collect.ts";
import { excess } from "./effort.ts";
import type { Fault, FoundOperand, OpenedFile } from "./found.ts";
import { endsOpen, type ParsedScript, parseScript } from "./syntax.ts";

export type ShellText = {
  /** Simple commands in the order of the text, those inside a command after it. */
  readonly parts: readonly Part[];
  /** Words that programs of which nothing is known may run: for rules that restrict. */
  readonly guesses: readonly Part[];
  readonly redirections: readonly OpenedFile[];
  readonly operands: readonly FoundOperand[];
  /** Each is a reason not to run the text at all. */
  readonly errors: readonly Fault[];
  /** The shell may leave its folder on the way. */
  readonly moves: boolean;
};

/** Longer texts are refused: nobody can judge them, and a file says the same. */
export const longestCommand = 64 * 1024;

// The parser goes over the rest of the text for every open parenthesis and `${`; it gives up at about so many
// parentheses itself.
const deepest = 250;
const deepestExpansion = 50;

function depthOf(text: string, open: RegExp, close: string): number {
  let depth = 0, most = 0;
  for (const [found] of text.matchAll(open)) {
    depth = found === close ? Math.max(0, depth - 1) : depth + 1;
    most = Math.max(most, depth);
  }
  return most;
}

/**
 * Never throws, looks at nothing but the text. `leads` says to which file the path of a program leads, where links are
 * followed: what that file does is looked at as well. With errors the rest is only what was found until then. */
export function parseShell(command: string, leads?: (program: string) => string | undefined): ShellText {
  const unfit = textFault(command);
  if (unfit !== undefined) return refused(unfit);
  const script = parseScript(command);
  const nothing = script.commands.length === 0 ? nothingToRun(script) : undefined;
  if (nothing !== undefined) return refused(nothing);
  const { parts, guesses, redirections, operands, faults, moved, effort, guessing } = collect(
    script,
    command,
    leads,
  );
  const message = excess(effort) ?? excess(guessing);
  const errors = message === undefined ? unique(faults) : [{ code: "too_complex", message }];
  return { parts, guesses, redirections, operands, errors, moves: moved };
}

function refused(fault: Fault): ShellText {
  return { parts: [], guesses: [], redirections: [], operands: [], errors: [fault], moves: false };
}

function nothingToRun(script: ParsedScript): Fault {
  const [error] = script.errors ?? [];
  return error === undefined
    ? { code: "empty_command", message: "the command is empty" }
    : { code: "syntax_error", message: `the command is not valid bash: ${error.message}` };
}

// What is amiss with the text before it is parsed.
function textFault(command: string): Fault | undefined {
  if (command.includes("\0")) return { code: "nul_in_command", message: "the command holds a NUL character" };
  if (byteLength(command) > longestCommand) {
    return {
      code: "command_too_long",
      message: `the command is longer than ${longestCommand} bytes; write it to a script file and run that`,
    };
  }
  if (depthOf(command, /\$\{|\}/g, "}") > deepestExpansion) {
    return {
      code: "too_complex",
      message: `expansions in the command nest deeper than ${deepestExpansion} levels`,
    };
  }
  if (depthOf(command, /[()]/g, ")") > deepest) {
    return { code: "too_complex", message: `parentheses in the command nest deeper than ${deepest} levels` };
  }
  // Bash joins lines before it looks for operators, the parser after.
  if (/\$\{?\\\n|[0-9}](\\\n)+[<>]|[<>&|;(](\\\n)+[<>&|;(]/.test(command)) {
    return {
      code: "unclear_syntax",
      message: "a line is continued within an operator or right after a `$`; put the line break elsewhere",
    };
  }
  if (endsOpen(command)) {
    return {
      code: "unclear_syntax",
      message: "the command ends with a backslash; take it away, or quote it",
    };
  }
  if (!command.isWellFormed()) return { code: "not_unicode", message: "the command is not valid Unicode" };
  return undefined;
}

function unique(faults: readonly Fault[]): readonly Fault[] {
  return [...new Map(faults.map((f) => [f.code + f.message, f])).values()];
}
