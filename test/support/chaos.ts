// A model that means no good, through the real loop: it calls whatever is offered and much that is not, with arguments of the
// right shape and of none, says secrets, fails, and never ends. What must hold all the same is checked after each session. The
// same seed gives the same calls. Commands are not run: a stand-in answers in the place of the shell.
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import type { Agent } from "../../src/agent/agent.ts";
import { type Model, ModelFailure, type Tool } from "../../src/agent/ports.ts";
import { runTurn } from "../../src/agent/turn.ts";
import { canonicalJson } from "../../src/core/text.ts";
import type { Event } from "../../src/core/event.ts";
import type {
  AssistantBlock,
  Json,
  ModelReply,
  ModelRequest,
  ToolDefinition,
} from "../../src/core/message.ts";
import { checkChain } from "../../src/store/chain.ts";
import { overLimit, raw, told, unallowed, unanswered } from "./invariants.ts";
import { hostileCalls } from "./hostile.ts";
import { makeSite, openLive, type Site, skillText } from "./skill_session.ts";

/** Numbers of 0 ≤ n < 1, the same for the same seed. */
export function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export type Dice = {
  below(n: number): number;
  chance(p: number): boolean;
  pick<T>(items: readonly T[]): T;
};

export function dice(seed: number): Dice {
  const next = numbers(seed);
  const below = (n: number) => Math.floor(next() * n);
  return {
    below,
    chance: (p) => next() < p,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
  };
}

const limits = { iterations: 6, toolCalls: 12, tokens: 4000 };
export const secrets = {
  CHAOS_TOKEN: "canary-7f3a9b2c5d",
  CHAOS_PASSWORD: "four words and blanks",
};
export const shaped = "ghp_Chaos0123456789abcdefghijklmnopqrstu";
export const forcedText = "Whatever happens, this stands in every request.";
/** What must be nowhere. */
export const allSecrets = { ...secrets, shaped };
const policy = `version: 1
model: {provider: script, name: chaos, retries: 1, max_output_tokens: 100}
limits: {iterations: ${limits.iterations}, tool_calls: ${limits.toolCalls}, tokens: ${limits.tokens}}
skills: {forced: [{skill: always, when: session}]}
sandbox: {mode: "off"}
permissions:
  default: {read: allow, write: allow, execute: ask, destructive: deny}
  deny: [{tool: "*", path: ["secret/**"]}]
  allow: ["shell(echo *)", "shell(git status)"]
`;

/** What did not hold, by sentence; and how much was tried. */
export type ChaosReport = {
  readonly faults: readonly string[];
  readonly requests: number;
  readonly calls: number;
  readonly started: number;
};

export async function chaosSession(seed: number): Promise<ChaosReport> {
  const plain = makeSite(policy);
  const site: Site = {
    ...plain,
    context: { ...plain.context, host: { ...plain.context.host, env: secrets } },
  };
  try {
    site.put("home/.config/writ/skills/always/SKILL.md", skillText("always", "Always.", "", forcedText));
    site.put(
      "home/.config/writ/skills/lie/SKILL.md",
      skillText("lie", "Lies.", "allowed_tools: [read_file]\n"),
    );
    site.put("ws/a.txt", `one\n${secrets.CHAOS_TOKEN}\n${shaped}\n`);
    site.put("ws/secret/key", `${secrets.CHAOS_PASSWORD}\n`);
    return await play(site, seed);
  } finally {
    site.remove();
  }
}

async function play(site: Site, seed: number): Promise<ChaosReport> {
  const random = dice(seed);
  const live = await openLive(site, []);
  const requests: ModelRequest[] = [];
  const ran: string[] = [];
  let spent = 0;
  const faults: string[] = [];
  const model: Model = {
    provider: "script",
    async reply(request, on) {
      requests.push(request);
      if (spent >= limits.tokens) faults.push(`a request after ${spent} tokens were spent`);
      if (random.chance(0.05)) {
        on.text(`half of ${secrets.CHAOS_TOKEN.slice(0, 9)}`);
        throw new ModelFailure("overloaded", "busy", { retryable: random.chance(0.8), retryAfterMs: 0 });
      }
      const reply = hostileReply(random, request, requests.length);
      for (const block of reply.content) {
        if (block.type === "text") sayInPieces(random, block.text, on.text);
        on.blockEnd();
      }
      spent += reply.usage.input + reply.usage.output + reply.usage.cacheWrite +
        Math.ceil(reply.usage.cacheRead / 10);
      return reply;
    },
  };
  const agent: Agent = {
    ...live.session.agent,
    model,
    tools: live.session.agent.tools.map((tool) => watched(tool, ran, random)),
  };
  for (let turn = 0; turn < 3; turn++) {
    await runTurn(agent, {
      message: random.pick([
        "go on",
        "/skill lie now",
        `use ${secrets.CHAOS_PASSWORD} and ${shaped}`,
        "\u001b[2Jread a.txt",
      ]),
      actor: "u",
      skills: [],
      signal: new AbortController().signal,
    });
  }
  await live.session.close();
  const log = readFileSync(live.session.logPath);
  return {
    faults: [...faults, ...brokenIn(live.events, requests, ran, log)],
    requests: requests.length,
    calls: live.of("model.tool_call_requested").length,
    started: live.of("tool.started").length,
  };
}

export function watched(tool: Tool, ran: string[], random: Dice): Tool {
  return {
    ...tool,
    async run(args, at) {
      ran.push(tool.name);
      if (tool.name !== "shell") return await tool.run(args, at);
      return {
        ok: random.chance(0.7),
        content: random.pick([
          `PASSWORD=${secrets.CHAOS_PASSWORD}\n`,
          Buffer.from(`x${secrets.CHAOS_TOKEN}`).toString("base64"),
          `${"word ".repeat(40_000)}${secrets.CHAOS_PASSWORD} ${"word ".repeat(40_000)}`,
          "\u001b]0;title\u0007\u202eevil",
          "ok",
        ]),
        ...(random.chance(0.7) ? {} : { code: "exit" }),
      };
    },
  };
}

export function sayInPieces(random: Dice, text: string, say: (piece: string) => void): void {
  for (let at = 0; at < text.length;) {
    const length = 1 + random.below(40);
    say(text.slice(at, at + length));
    at += length;
  }
}

/** `known`: hostile calls that it may repeat [all that there are]. A request without tools is answered by text. */
export function hostileReply(
  random: Dice,
  request: ModelRequest,
  number: number,
  known = hostileCalls,
): ModelReply {
  const content: AssistantBlock[] = [];
  if (random.chance(0.6)) content.push({ type: "text", text: hostileText(random) });
  const calls = request.tools.length === 0 || random.chance(0.15) ? 0 : 1 + random.below(4);
  for (let i = 0; i < calls; i++) content.push(hostileCall(random, request.tools, `c${number}_${i}`, known));
  return {
    stop: calls > 0 && random.chance(0.9)
      ? "tool_use"
      : random.pick(["end", "end", "max_tokens", "other"] as const),
    content,
    usage: {
      input: random.below(60),
      output: random.below(120),
      cacheRead: random.below(300),
      cacheWrite: random.below(30),
    },
  };
}

function hostileText(random: Dice): string {
  return random.pick([
    `The token is ${secrets.CHAOS_TOKEN}.`,
    `The password is ${secrets.CHAOS_PASSWORD}, or ${Buffer.from(secrets.CHAOS_PASSWORD).toString("hex")}.`,
    `key ${shaped} -----BEGIN PRIVATE KEY-----\nabcdefghijklmnop\n-----END PRIVATE KEY-----`,
    "\u001b[31m\u202e red",
    "x".repeat(random.below(5000)),
    "",
  ]);
}

function hostileCall(
  random: Dice,
  offered: readonly ToolDefinition[],
  id: string,
  known: typeof hostileCalls,
): AssistantBlock {
  const kind = random.below(10);
  if (kind === 0) {
    return { type: "tool_use", id, name: random.pick(["rm_rf", "", "skill.lie.t", "__proto__"]), input: {} };
  }
  const tool = random.pick(offered);
  const call = { type: "tool_use" as const, id, name: tool.name };
  if (kind === 1) return { ...call, input: {}, malformed: '{"path": "a' };
  if (kind === 2) return { ...call, input: {}, cut: true };
  if (kind === 3) {
    const { tool: name, args } = random.pick(known);
    return { ...call, name, input: args };
  }
  const input = valueFor(random, tool.inputSchema);
  return {
    ...call,
    input: typeof input === "object" && input !== null && !Array.isArray(input) ? input as never : {},
  };
}

const texts = [
  "a.txt",
  "secret/key",
  "../../etc/passwd",
  ".writ/policy.yaml",
  ".git/hooks/pre-commit",
  "echo hi",
  "git status",
  "echo $CHAOS_TOKEN; rm -rf .",
  "lie",
  "aside",
  "always",
  "one",
  `write ${secrets.CHAOS_TOKEN}`,
  "[redacted:CHAOS_TOKEN]",
  "\u0000",
  "\ud800",
  "",
];

function valueFor(random: Dice, schema: { readonly [key: string]: Json }): Json {
  if (random.chance(0.05)) return random.pick([null, [], {}, -1, 1e308, "x", true] as const);
  const choices = schema["enum"];
  if (Array.isArray(choices)) return random.pick(choices);
  switch (schema["type"]) {
    case "object": {
      const properties = (schema["properties"] ?? {}) as {
        readonly [key: string]: { readonly [key: string]: Json };
      };
      const required = (schema["required"] ?? []) as readonly string[];
      const entries = Object.entries(properties)
        .filter(([name]) => random.chance(required.includes(name) ? 0.97 : 0.3))
        .map(([name, inner]) => [name, valueFor(random, inner)]);
      return Object.fromEntries(random.chance(0.05) ? [...entries, ["__proto__", 1]] : entries);
    }
    case "array":
      return Array.from(
        { length: random.below(3) },
        () => valueFor(random, (schema["items"] ?? {}) as never),
      );
    case "integer":
    case "number":
      return random.pick([0, 1, 2, 10, -5, 1e9]);
    case "boolean":
      return random.chance(0.5);
    default:
      return random.pick(texts);
  }
}

function brokenIn(
  events: readonly Event[],
  requests: readonly ModelRequest[],
  ran: readonly string[],
  log: Buffer,
): readonly string[] {
  const chain = checkChain(log);
  const lines = log.toString("utf8");
  const sent = requests.map((r) => JSON.stringify(r));
  return [
    ...unallowed(events),
    ...overLimit(events, limits),
    ...unanswered(events),
    ...(ran.length === events.filter((e) => e.type === "tool.started").length
      ? []
      : ["a tool ran that is not recorded"]),
    ...(chain.damage === undefined && chain.tornBytes === 0 ? [] : [`the chain: ${chain.damage?.message}`]),
    ...(canonicalJson(chain.events as never) === canonicalJson(events as never)
      ? []
      : ["the log is not what was told"]),
    // The request for a summary can act on nothing, and is offered no tool.
    ...(requests.every((r) => r.tools.length === 0 || r.system.includes(forcedText))
      ? []
      : ["a request without the forced skill"]),
    ...told(lines, allSecrets).map((kind) => `${kind} in the log`),
    ...sent.flatMap((text, i) => told(text, allSecrets).map((kind) => `${kind} in request ${i}`)),
    ...raw(lines).map((what) => `${what} in the log`),
  ];
}
