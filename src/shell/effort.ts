// How much one text may ask of whoever looks at it. Counted, never timed: what is refused here is refused everywhere.

/** What is left of each allowance. Below zero the text is refused, and the walk through it ends. */
export type Effort = {
  commands: number;
  inner: number;
  redirections: number;
  operands: number;
  words: number;
  nodes: number;
  characters: number;
};
export type Allowance = keyof Effort;

export const allowances: Readonly<Effort> = {
  commands: 2_048,
  // Commands inside other commands: what wrappers and shells are given, substitutions, functions.
  inner: 1_000,
  redirections: 1_000,
  operands: 5_000,
  words: 10_000,
  // Of the syntax tree: the parser makes them only when they are looked at.
  nodes: 30_000,
  // Of texts inside the text: substitutions, and what wrappers and shells are given.
  characters: 224 * 1024,
};

/** What a text inside the text costs beside its characters. */
export const textCost = 32;

export function newEffort(): Effort {
  return { ...allowances };
}

/** Takes `count` from an allowance; false when the text has used up this one or another. */
export function spend(effort: Effort, on: Allowance, count: number): boolean {
  if (isSpent(effort)) return false;
  effort[on] -= count;
  return effort[on] >= 0;
}

/** Whether the text is to be refused. */
export function isSpent(effort: Effort): boolean {
  return spentOn(effort) !== undefined;
}

const names: Readonly<Record<Allowance, string>> = {
  commands: `more than ${allowances.commands} commands`,
  inner: `more than ${allowances.inner} commands inside other commands`,
  redirections: `more than ${allowances.redirections} redirections`,
  operands: `more than ${allowances.operands} arguments that may be paths`,
  words:
    `more words than are looked at (${allowances.words}, unknown ones and those inside other commands several times)`,
  nodes: `more pieces of syntax than are looked at (${allowances.nodes})`,
  characters: `more text inside text than is looked at (${allowances.characters} characters)`,
};

/** Why the text is refused, for people; undefined when it is not. */
export function excess(effort: Effort): string | undefined {
  const on = spentOn(effort);
  return on === undefined ? undefined : `the command holds ${names[on]}; split it, or write a script file`;
}

function spentOn(effort: Effort): Allowance | undefined {
  if (effort.commands < 0) return "commands";
  if (effort.inner < 0) return "inner";
  if (effort.words < 0) return "words";
  if (effort.nodes < 0) return "nodes";
  if (effort.characters < 0) return "characters";
  if (effort.redirections < 0) return "redirections";
  return effort.operands < 0 ? "operands" : undefined;
}
