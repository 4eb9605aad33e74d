// The words with a slash that a chat itself answers.
import { compact, contextOf, showTokens } from "../agent/compact.ts";
import { stopFor } from "../agent/stop.ts";
import { contextRoom } from "../core/budget.ts";
import { choiceNames, chooseModel } from "../core/model_choice.ts";
import { plural } from "../core/plural.ts";
import { nearest } from "../core/problem.ts";
import type { Session } from "../session/session.ts";
import type { Context } from "./command.ts";
import type { Interrupt } from "./interrupt.ts";
import type { TurnOptions } from "./session_options.ts";
import type { Terminal } from "./terminal.ts";

export type Chat = {
  readonly context: Context;
  readonly options: TurnOptions;
  readonly session: Session;
  readonly terminal: Terminal;
  readonly interrupt: Interrupt;
  /** What /model or --model asked for. */
  model: string | undefined;
};

type ChatCommand = {
  readonly name: string;
  readonly help: string;
  /** Absent: not for the chat to answer. `rest` is what follows the word. */
  run?(chat: Chat, rest: string): void | Promise<void>;
};

const commands: readonly ChatCommand[] = [
  { name: "/help", help: "this list", run: showHelp },
  { name: "/status", help: "session, policy, skills, tokens", run: showStatus },
  {
    name: "/model",
    help: "/model NAME answers with another of the policy's models; /model lists them",
    run: chooseModelNow,
  },
  {
    name: "/compact",
    help: "cut old results, and have the earlier part of the conversation summed up",
    run: compactNow,
  },
  {
    name: "/skill",
    help:
      "/skill NAME [arguments] loads one; /skill list, /skill find WORDS, /skill clear [NAME], /skill reload",
  },
  { name: "/grants", help: "answers that were kept for this session", run: showGrants },
  { name: "/quit", help: "end the chat" },
];

/** A word with a slash that nobody knows is a slip, not a message for the model. */
export async function answerCommand(chat: Chat, text: string): Promise<"quit" | "answered" | "message"> {
  const { output } = chat.context;
  const word = /^\/[\p{L}\p{N}_-]+(?=\s|$)/u.exec(text)?.[0];
  if (word === undefined || word === "/skill" || word === "/discover-skills") return "message";
  if (word === "/quit" || word === "/exit") return "quit";
  const run = commands.find((c) => c.name === word)?.run;
  if (run !== undefined) await run(chat, text.slice(word.length).trim());
  else {
    const near = nearest(word, commands.map((c) => c.name));
    output.note(
      output.safe(
        `error: no command ${word}${near === undefined ? "; /help lists them" : `; did you mean ${near}?`}`,
      ),
    );
  }
  return "answered";
}

function showHelp({ context: { output } }: Chat): void {
  for (const c of commands) output.result(`${c.name.padEnd(8)} ${c.help}\n`);
}

function showStatus(chat: Chat): void {
  const { output } = chat.context;
  for (const line of statusLines(chat)) output.result(`${output.safe(line)}\n`);
}

function showGrants({ context: { output }, session }: Chat): void {
  const { grants } = session.agent;
  if (grants.length === 0) output.note("no kept answers");
  for (const grant of grants) output.result(`${output.safe(grant.rule)}\n`);
}

function chooseModelNow(chat: Chat, name: string): void {
  const { output } = chat.context;
  const { model } = chat.session.agent.policy;
  const chosen = name === "" ? undefined : chooseModel(model, name);
  if (chosen !== undefined) {
    chat.session.useModel(chosen);
    chat.model = name;
    output.note(output.safe(`model ${chosen.name}`));
    return;
  }
  if (name !== "") output.note(output.safe(`error: \`${name}\` is no model of this policy`));
  for (const choice of choiceNames(model)) {
    const settings = chooseModel(model, choice);
    const mark = settings?.name === model.name ? "*" : " ";
    output.result(output.safe(`${mark} ${choice.padEnd(12)} ${settings?.name ?? ""}\n`));
  }
}

// What it did is told by its event.
async function compactNow({ context, session, interrupt }: Chat): Promise<void> {
  const { output } = context;
  const { agent } = session;
  try {
    const done = await compact(agent, interrupt.signal, true);
    if (!done.ok) output.note(output.safe(`not compacted: ${done.why}`));
    await agent.recorder.sync();
  } catch (error) {
    const never = new AbortController().signal;
    const stop = stopFor(error, { user: interrupt.signal, deadline: never, policy: agent.policy });
    output.note(output.safe(`not compacted: ${stop.message ?? stop.stop}`));
  }
}

function costLines(costUsd: number | undefined, cap: number | undefined): readonly string[] {
  if (costUsd === undefined && cap === undefined) return [];
  return [`cost     ${costUsd ?? 0} USD${cap === undefined ? "" : ` of ${cap}`}`];
}

function statusLines(chat: Chat): readonly string[] {
  const { agent } = chat.session;
  const { state } = agent.recorder;
  const { tokens, total } = contextOf(agent).report;
  const skills = state.active.map((s) => `${s.name} (${s.trigger}, ${s.scope})`).join(", ");
  return [
    `session  ${chat.session.id}, ${plural(state.turn.number, "turn")}, ${plural(state.seq, "event")}`,
    `policy   ${agent.policy.name ?? "(unnamed)"} ${agent.policy.revision.slice(0, 12)}`,
    `model    ${agent.model.provider}/${agent.policy.model.name || agent.model.provider}`,
    `skills   ${skills === "" ? "none active" : skills}`,
    `tokens   ${state.usage.input} in, ${state.usage.output} out, ${state.usage.cacheRead} from cache`,
    ...costLines(state.costUsd, agent.policy.limits.costUsd),
    `context  ${total} of ${contextRoom(agent.policy.model)} tokens: ${showTokens(tokens)}`,
    `log      ${chat.session.logPath}`,
  ];
}
