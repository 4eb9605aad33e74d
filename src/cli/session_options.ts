// The options of every command that takes turns.
import { type Command, Option } from "commander";
import { type PolicyOptions, withPlaceOptions } from "./command.ts";

export type TurnOptions = PolicyOptions & {
  readonly model?: string;
  readonly script?: string;
  readonly resume?: string;
  readonly continue?: boolean;
  readonly strict?: boolean;
};

export function withSessionOptions(command: Command): Command {
  return withPlaceOptions(command)
    .option("--model <name>", "answer with this one of model.choices, or `default`")
    .option("--script <file>", "replies from this file instead of a model")
    .addOption(new Option("--resume <id>", "go on with this session").conflicts("continue"))
    .option("--continue", "go on with the newest session of this workspace")
    .option("--strict", "a denied call ends the turn with exit code 5");
}
