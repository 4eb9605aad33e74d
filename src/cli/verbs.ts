// The table of commands: one line each. A command's module is loaded only when it is called.
import type { CommandModule } from "./command.ts";

export type Verb = {
  readonly name: string;
  readonly usage: string;
  readonly summary: string;
  load(): Promise<CommandModule>;
};

export const verbs: readonly Verb[] = [
  {
    name: "run",
    usage: "run [PROMPT|-]",
    summary: "run one turn and print the answer",
    load: async () => (await import("./commands/run.ts")).run,
  },
  {
    name: "chat",
    usage: "chat",
    summary: "talk at the terminal, approve at the prompt",
    load: async () => (await import("./commands/chat.ts")).chat,
  },
  {
    name: "skill",
    usage: "skill list|find|show|trigger|pin|lint|run",
    summary: "see and use skills",
    load: async () => (await import("./commands/skill.ts")).skill,
  },
  {
    name: "policy",
    usage: "policy check|show|lint|diff",
    summary: "check policy files, show what is in force and where it is written, lint, compare",
    load: async () => (await import("./commands/policy.ts")).policy,
  },
  {
    name: "explain",
    usage: "explain TOOL ARGS",
    summary: "say what the policy decides on a call, and why",
    load: async () => (await import("./commands/explain.ts")).explain,
  },
  {
    name: "session",
    usage: "session list|show|resume|verify|repair|export|prune",
    summary: "read, go on with, check, mend and clear away the record of past runs",
    load: async () => (await import("./commands/session.ts")).session,
  },
  {
    name: "serve",
    usage: "serve",
    summary: "offer sessions, events and approvals over HTTP",
    load: async () => (await import("./commands/serve.ts")).serve,
  },
  {
    name: "demo",
    usage: "demo [--live]",
    summary: "show what writ is for, without a key",
    load: async () => (await import("./commands/demo.ts")).demo,
  },
  {
    name: "help",
    usage: "help [TOPIC]",
    summary: "read about a topic",
    load: async () => (await import("./commands/help.ts")).help,
  },
  {
    name: "version",
    usage: "version",
    summary: "print the version",
    load: async () => (await import("./commands/version.ts")).versionCommand,
  },
];

/** Not for people: what the project's own tests call. */
export const hiddenVerbs: readonly Verb[] = [
  {
    name: "__scenario",
    usage: "__scenario FILE",
    summary: "run a scenario with a standing clock and print its log",
    load: async () => (await import("./commands/scenario.ts")).scenario,
  },
];
