// The options of every command that takes turns.
import { type Command, Option } from "commander";
import { collect, type PolicyOptions, withPlaceOptions } from "./command.ts";

export type TurnOptions = PolicyOptions & {
  readonly model?: string;
  readonly script?: string;
  readonly resume?: string;
  readonly continue?: boolean;
  readonly strict?: boolean;
};

export type RunOptions = TurnOptions & {
  readonly skill?: readonly string[];
  readonly unattended?: boolean;
  readonly quiet?: boolean;
  readonly json?: boolean;
};

export function withSessionOptions(command: Command): Command {
  return withTurnOptions(command)
    .addOption(new Option("--resume <id>", "go on with this session").conflicts("continue"))
    .option("--continue", "go on with the newest session of this workspace");
}

/** Without those that say which session. */
export function withTurnOptions(command: Command): Command {
  return withPlaceOptions(command)
    .option("--model <name>", "answer with this one of model.choices, or `default`")
    .option("--script <file>", "replies from this file instead of a model")
    .option("--strict", "a denied call ends the turn with exit code 5");
}

/** Of commands that give one answer. */
export function withAnswerOptions(command: Command): Command {
  return command
    .option("--json", "print the result as JSON")
    .option("--skill <name>", "load this skill first (repeatable)", collect)
    .option("--unattended", "ask nobody: what would be asked is denied")
    .option("-q, --quiet", "only the answer");
}
