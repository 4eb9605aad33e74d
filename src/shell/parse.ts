// Bash source → what is judged of it. Never throws; what cannot be parsed gives errors, what cannot be followed gives
// parts that no allow rule covers.
import type { Part } from "../core/facts.ts";
import { byteLength } from "../core/text.ts";
import { collect } from "./collect.ts";
import type { Fault, FoundOperand, OpenedFile } from "./found.ts";
import { parseScript } from "./syntax.ts";

export type ShellText = {
  /** Simple commands in the order of the text, those inside a command after it. */
  readonly parts: readonly Part[];
  readonly redirections: readonly OpenedFile[];
  readonly operands: readonly FoundOperand[];
  /** Each is a reason not to run the text at all. */
  readonly errors: readonly Fault[];
  /** The shell may leave its folder on the way. */
  readonly moves: boolean;
};

/** Longer texts are refused: nobody can judge them, and a file says the same. */
export const longestCommand = 64 * 1024;

// The parser goes over the rest of the text for every open parenthesis, and gives up at about this many itself.
const deepest = 250;

function parenthesisDepth(text: string): number {
  let depth = 0, most = 0;
  for (const c of text) {
    if (c === "(") most = Math.max(most, ++depth);
    else if (c === ")") depth = Math.max(0, depth - 1);
  }
  return most;
}

/** Never throws, looks at nothing but the text. With errors the rest is only what was found until then. */
export function parseShell(command: string): ShellText {
  const refused = refusal(command);
  if (refused !== undefined) {
    return { parts: [], redirections: [], operands: [], errors: [refused], moves: false };
  }
  const found = collect(parseScript(command), command);
  const { parts, redirections, operands, faults, moved } = found;
  return { parts, redirections, operands, errors: unique(faults), moves: moved };
}

function refusal(command: string): Fault | undefined {
  if (command.includes("\0")) return { code: "nul_in_command", message: "the command holds a NUL character" };
  if (byteLength(command) > longestCommand) {
    return {
      code: "command_too_long",
      message: `the command is longer than ${longestCommand} bytes; write it to a script file and run that`,
    };
  }
  if (parenthesisDepth(command) > deepest) {
    return { code: "too_complex", message: `parentheses in the command nest deeper than ${deepest} levels` };
  }
  // Bash joins lines before it looks for operators, the parser after.
  if (/\$\{?\\\n|[0-9}](\\\n)+[<>]|[<>&|;(](\\\n)+[<>&|;(]/.test(command)) {
    return {
      code: "unclear_syntax",
      message: "a line is continued within an operator or right after a `$`; put the line break elsewhere",
    };
  }
  if (!command.isWellFormed()) return { code: "not_unicode", message: "the command is not valid Unicode" };
  if (parseScript(command).commands.length === 0) {
    const [error] = parseScript(command).errors ?? [];
    return error === undefined
      ? { code: "empty_command", message: "the command is empty" }
      : { code: "syntax_error", message: `the command is not valid bash: ${error.message}` };
  }
  return undefined;
}

function unique(faults: readonly Fault[]): readonly Fault[] {
  return [...new Map(faults.map((f) => [f.code + f.message, f])).values()];
}
