// What a command is to the command line, and the options that several share.
import { type Command, InvalidArgumentError } from "commander";
import type { Host } from "./host.ts";
import type { Output } from "./output.ts";

export type Context = { readonly host: Host; readonly output: Output };

/** `define` adds options and actions; an action hands its exit code to `done`. */
export type CommandModule = {
  define(command: Command, context: Context, done: (code: number) => void): void;
};

/** Options of every command that reads a policy. */
export type PolicyOptions = {
  readonly policy?: readonly string[];
  readonly trust?: boolean;
  readonly untrusted?: boolean;
  readonly directory?: string;
  readonly json?: boolean;
};

/** Which policy, where. */
export function withPlaceOptions(command: Command): Command {
  return command
    .option("--policy <file>", "policy file in the place of the user's own (repeatable)", collect)
    .option("--trust", "trust what the workspace brings, for this run")
    .option("--untrusted", "ignore what the workspace brings, for this run")
    .option("-C, --directory <folder>", "start in this folder");
}

export function withPolicyOptions(command: Command): Command {
  return withPlaceOptions(command).option("--json", "print the result as JSON");
}

export function collect(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), value];
}

export function positiveInteger(value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number) || number <= 0) {
    throw new InvalidArgumentError("expected a whole number above zero");
  }
  return number;
}
