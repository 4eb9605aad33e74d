// The loop in a world that a seed makes: a model that means no good, a disk that fails, a process that is ended, power that is cut,
// a clock that jumps, a person who answers as he likes or not at all. The same seed gives the same log, byte by byte.
import type { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import type { Agent } from "../../src/agent/agent.ts";
import { replay } from "../../src/agent/open.ts";
import { type Approver, type Clock, type Model, ModelFailure } from "../../src/agent/ports.ts";
import { runTurn } from "../../src/agent/turn.ts";
import { loadCatalog } from "../../src/session/catalog.ts";
import { openSession } from "../../src/session/open.ts";
import type { Session } from "../../src/session/session.ts";
import type { Event } from "../../src/core/event.ts";
import type { Args, ModelReply, ModelRequest } from "../../src/core/message.ts";
import { isWithin } from "../../src/core/path.ts";
import { canonicalJson } from "../../src/core/text.ts";
import { fixedNetwork } from "../../src/runtime/network.ts";
import { checkChain } from "../../src/store/chain.ts";
import {
  allSecrets,
  type Dice,
  dice,
  forcedText,
  hostileReply,
  sayInPieces,
  secrets,
  watched,
} from "./chaos.ts";
import { hostileCalls } from "./hostile.ts";
import { overLimit, raw, told, unallowed, unanswered } from "./invariants.ts";
import { type DiskFates, type SimulatedDisk, simulatedDisk, soundDisk } from "./simulated_disk.ts";
import { eventsOf } from "./machine.ts";
import { makeSite, type Site, skillText } from "./skill_session.ts";

const limits = { iterations: 8, toolCalls: 14, tokens: 20_000, wallTimeMs: 30 * 60_000 };
const policy = `version: 1
model: {provider: script, name: chaos, retries: 2, max_output_tokens: 200, context_tokens: 9000}
limits: {iterations: ${limits.iterations}, tool_calls: ${limits.toolCalls}, tokens: ${limits.tokens}, wall_time: 30m}
skills:
  forced:
    - {skill: always, when: session}
    - {id: ship, before: ["shell(git status)"], evidence: [read_file]}
# A person may let the model write a policy into the workspace.
workspace: {trust: untrusted}
sandbox: {mode: "off"}
permissions:
  default: {read: allow, write: ask, execute: ask, destructive: deny}
  ask_timeout: 5m
  deny: [{tool: "*", path: ["secret/**"]}]
  allow: ["shell(echo *)", "shell(git status)", "write_file(notes/**)"]
`;
// What a command of 64 KiB comes to is tried elsewhere; here it would take most of the time.
const shortCalls = hostileCalls.filter((c) => JSON.stringify(c.args).length < 300);
const mostLives = 5;
const session = "simulated";

export type Simulated = {
  /** What did not hold. */
  readonly faults: readonly string[];
  /** Session → its log as text, the forks beside it. */
  readonly logs: ReadonlyMap<string, string>;
  readonly fingerprint: string;
  readonly events: number;
  /** How often the process was started. */
  readonly lives: number;
};

type World = {
  readonly site: Site;
  readonly disk: SimulatedDisk;
  readonly clock: SimulatedClock;
  /** One stream of numbers for each thing, so that more of one changes nothing of another. */
  readonly of: { readonly life: Dice; readonly model: Dice; readonly person: Dice; readonly tool: Dice };
  readonly requests: string[];
  readonly faults: string[];
  /** Names of tools as they ran, and of those among them that did more than read. */
  readonly ran: string[];
  readonly changed: string[];
  readonly counts: { silent: number; stalls: number; spent: number };
};

/** Plays the world of a seed to its end; the last life is one in which nothing fails any more. */
export async function simulate(seed: number): Promise<Simulated> {
  const plain = makeSite(policy);
  const site: Site = {
    ...plain,
    context: { ...plain.context, host: { ...plain.context.host, env: secrets } },
  };
  const stream = (n: number) => dice(Math.imul(seed, 8) + n);
  const world: World = {
    site,
    disk: simulatedDisk(),
    clock: simulatedClock(stream(1)),
    of: { life: stream(2), model: stream(3), person: stream(4), tool: stream(5) },
    requests: [],
    faults: [],
    ran: [],
    changed: [],
    counts: { silent: 0, stalls: 0, spent: 0 },
  };
  try {
    furnish(site);
    const lives = 1 + world.of.life.below(mostLives - 1);
    for (let life = 0; life < lives; life++) await live(world, fatesOf(stream(10 + life)));
    const last = await live(world, soundDisk);
    return resultOf(world, last, lives + 1);
  } finally {
    site.remove();
  }
}

function furnish(site: Site): void {
  const skill = (name: string, more: string, body?: string) =>
    site.put(`home/.config/writ/skills/${name}/SKILL.md`, skillText(name, `Does ${name}.`, more, body));
  skill("always", "", forcedText);
  skill("lie", "allowed_tools: [read_file]\n");
  skill("aside", "mode: fork\nallowed_tools: [read_file, shell]\n");
  site.put("ws/a.txt", `one\n${secrets.CHAOS_TOKEN}\n${allSecrets.shaped}\n`);
  site.put("ws/secret/key", `${secrets.CHAOS_PASSWORD}\n`);
}

function fatesOf(random: Dice): DiskFates {
  const failing = random.pick([0, 0, 0.01, 0.05]);
  // The append in which the process ends; most lives end by themselves.
  let left = random.chance(0.6) ? random.below(120) : Infinity;
  return {
    append() {
      if (left-- <= 0) return { torn: random.pick([0, random.below(1000) / 1000, 1]) };
      return random.chance(failing) ? "fails" : "done";
    },
    sync: () => random.chance(failing) ? "fails" : "done",
    later: random.chance(0.3),
  };
}

/** One start of the process and some turns; undefined when it could not start, or was ended. */
async function live(world: World, fates: DiskFates): Promise<Session | undefined> {
  const { site, disk, clock, of } = world;
  const settings = await site.settings();
  let opened: Awaited<ReturnType<typeof openSession>>;
  try {
    opened = await openSession(site.context.host, settings, loadCatalog(settings), {
      mode: "interactive",
      approver: person(world),
      listeners: [],
      replies: [],
      store: { dir: join(site.top, "state"), store: disk.open(fates) },
      ...(disk.logs().has(session) ? { resume: session } : {}),
      fixed: {
        clock,
        network: fixedNetwork({}),
        session,
        platform: "any",
        actor: "user",
        // Where a rule just does not meet a path, one part of it is named by itself.
        aliases: [{ value: site.top, as: "/world" }, { value: basename(site.top), as: "world" }],
      },
    });
  } catch (error) {
    // The end of the process, in whatever it came up.
    if (!disk.ended) throw error;
    disk.crash(1);
    return undefined;
  }
  if (!opened.ok) {
    const unexpected = opened.problems.filter((p) => p.code !== "log_unwritable");
    if (!disk.ended) world.faults.push(...unexpected.map((p) => `no start: ${p.code}: ${p.message}`));
    // What was claimed is given back or gone.
    disk.crash(1);
    return undefined;
  }
  const running = opened.value;
  const agent: Agent = {
    ...running.agent,
    model: modelOf(world),
    tools: running.agent.tools.map((tool) => {
      const inner = watched(tool, world.ran, of.tool);
      return {
        ...inner,
        run(args, at) {
          if (disk.ended) throw new Error("a tool ran after the process had ended");
          // Reads run side by side, and end in the order in which the machine answers: they take no time here.
          if (tool.inspect(args, at).risk !== "read") {
            world.changed.push(tool.name);
            clock.pass(of.tool.below(5000));
            // Nothing is told of what a process did that ended in the middle of it.
            if (fates !== soundDisk && of.tool.chance(0.1)) disk.end();
          }
          return inner.run(args, at);
        },
      };
    }),
  };
  const turns = fates === soundDisk ? 1 : 1 + of.life.below(3);
  for (let turn = 0; turn < turns && !disk.ended; turn++) await oneTurn(world, agent);
  if (!disk.ended) await running.close();
  else disk.crash(of.life.pick([1, 1, 0, of.life.below(1000) / 1000]));
  return running;
}

async function oneTurn({ of, clock, counts, faults }: World, agent: Agent): Promise<void> {
  const stop = new AbortController();
  if (of.life.chance(0.1)) clock.after(of.life.below(60_000), () => stop.abort());
  clock.jump(of.life);
  const began = { elapsed: clock.elapsed(), stalls: counts.stalls };
  const end = await runTurn(agent, {
    message: of.life.pick([
      "go on",
      "/skill lie now",
      "/skill aside",
      `use ${allSecrets.shaped}`,
      "\u001b[2Jgo",
    ]),
    actor: "user",
    skills: [],
    signal: stop.signal,
  });
  if (end.stop === "internal_error" && !/the process has ended/.test(end.message ?? "")) {
    faults.push(`a fault of our own: ${end.message}`);
  }
  if (/wall_time/.test(end.message ?? "") && clock.elapsed() - began.elapsed < limits.wallTimeMs) {
    faults.push("the limit of wall time came early");
  }
  if (end.stop === "final" && counts.stalls > began.stalls) {
    faults.push("the limit of wall time did not come");
  }
}

function modelOf({ of: { model: random }, clock, counts, faults, requests }: World): Model {
  return {
    provider: "script",
    async reply(request, on, signal) {
      requests.push(JSON.stringify(request));
      if (counts.spent >= limits.tokens) faults.push(`a request after ${counts.spent} tokens were spent`);
      if (random.chance(0.02)) {
        counts.stalls++;
        clock.pass(1.5 * limits.wallTimeMs);
      } else clock.pass(random.below(20_000));
      clock.jump(random);
      signal.throwIfAborted();
      if (random.chance(0.05)) {
        on.text(`half of ${secrets.CHAOS_TOKEN.slice(0, 9)}`);
        throw new ModelFailure("overloaded", "busy", { retryable: random.chance(0.8) });
      }
      const reply = withUsefulCall(
        random,
        hostileReply(random, request, requests.length, shortCalls),
        request,
      );
      for (const block of reply.content) {
        if (block.type === "text") sayInPieces(random, block.text, on.text);
        on.blockEnd();
      }
      const { usage } = reply;
      counts.spent += usage.input + usage.output + usage.cacheWrite + Math.ceil(usage.cacheRead / 10);
      return reply;
    },
  };
}

// Few hostile calls come to anything: some that do, so that there is something to lose.
function withUsefulCall(random: Dice, reply: ModelReply, { tools }: ModelRequest): ModelReply {
  if (tools.length === 0 || random.chance(0.4)) return reply;
  const id = `u${random.below(1e9)}`;
  const { tool, args } = random.pick<{ readonly tool: string; readonly args: Args }>([
    { tool: "write_file", args: { path: `notes/${random.below(5)}.txt`, content: `note ${id}\n` } },
    { tool: "shell", args: { command: `echo ${id}` } },
    { tool: "shell", args: { command: "make test" } },
    { tool: "shell", args: { command: "git status" } },
    { tool: "read_file", args: { path: "a.txt" } },
    { tool: "load_skill", args: { name: random.pick(["lie", "aside"]) } },
    { tool: "complete_skill", args: { name: "lie", outcome: "DONE", summary: id } },
  ]);
  return {
    ...reply,
    stop: "tool_use",
    content: [...reply.content, { type: "tool_use", id, name: tool, input: args }],
  };
}

function person({ of: { person: random }, clock, counts, disk, site }: World): Approver {
  return {
    async ask(approval, signal) {
      if (disk.ended) throw new Error("a question after the process had ended");
      if (random.chance(0.1)) {
        counts.silent++;
        clock.pass(10 * 60_000);
      } else clock.pass(random.below(60_000));
      signal.throwIfAborted();
      const by = { by: "user", actor: "user" } as const;
      // The world ends at its folder: a yes would change the machine that this runs on.
      const outside = approval.facts.subjects.some((subject) =>
        subject.kind === "path" && !isWithin(subject.path.resolved ?? "/", site.top)
      );
      if (outside) return { allow: false, answer: { ...by, reason: "not out there" } };
      if (random.chance(0.4)) return { allow: false, answer: { ...by, reason: `no: ${allSecrets.shaped}` } };
      const { grant } = approval;
      return grant !== undefined && random.chance(0.3)
        ? { allow: true, answer: { ...by, scope: "session", rule: grant } }
        : { allow: true, answer: { ...by, scope: "once" } };
    },
  };
}

type SimulatedClock = Clock & {
  /** Time goes on by so much, and what was to happen in it happens. */
  pass(ms: number): void;
  /** Now and then the date is another, by 400 days; how much time has passed stays. */
  jump(random: Dice): void;
};

function simulatedClock(random: Dice): SimulatedClock {
  let elapsed = 0;
  let date = Date.UTC(2026, 0, 1) + random.below(1_000_000);
  let timers: { readonly at: number; readonly call: () => void }[] = [];
  const pass = (ms: number) => {
    const end = elapsed + ms;
    for (;;) {
      const next = timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      timers = timers.filter((t) => t !== next);
      elapsed = Math.max(elapsed, next.at);
      next.call();
    }
    elapsed = end;
  };
  return {
    now: () => date + elapsed,
    elapsed: () => elapsed,
    pass,
    jump(dice) {
      if (dice.chance(0.1)) date += dice.pick([400, -400]) * 86_400_000;
    },
    async sleep(ms, signal) {
      pass(ms);
      signal.throwIfAborted();
    },
    after(ms, call) {
      const timer = { at: elapsed + ms, call };
      timers.push(timer);
      return () => {
        timers = timers.filter((t) => t !== timer);
      };
    },
  };
}

function resultOf(world: World, last: Session | undefined, lives: number): Simulated {
  const { disk, requests, counts, changed } = world;
  const logs = new Map([...disk.logs()].map(([id, bytes]) => [id, bytes.toString("utf8")]));
  const all = [...disk.logs()].map(([id, bytes]) => ({ id, bytes, events: checkChain(bytes).events }));
  const events = all.flatMap((log) => log.events);
  const own = all.find((log) => log.id === session)?.events ?? [];
  const timeouts =
    eventsOf(events, "permission.resolved").filter((e) => e.data.answer?.by === "timeout").length;
  const faults = [
    ...world.faults,
    ...all.flatMap((log) => brokenIn(log).map((fault) => `${log.id}: ${fault}`)),
    ...unsecured(disk),
    ...unrecorded(events, changed),
    ...(timeouts <= counts.silent ? [] : ["a question ended early"]),
    ...(last === undefined ? ["the session does not go on"] : []),
    ...(last !== undefined && canonicalJson(replay(own) as never) !==
        canonicalJson(last.agent.recorder.state as never)
      ? ["the log gives another state than the one that was"]
      : []),
    ...requests.flatMap((text, i) => [
      ...told(text, allSecrets).map((kind) => `${kind} in request ${i}`),
      // The request for a summary can act on nothing, and is offered no tool.
      ...(text.includes(forcedText) || /"tools":\[\]/.test(text)
        ? []
        : [`request ${i} without the forced skill`]),
    ]),
  ];
  const fingerprint = createHash("sha256").update(JSON.stringify([...logs])).digest("hex");
  return { faults, logs, fingerprint, events: events.length, lives };
}

function brokenIn({ bytes, events }: { readonly bytes: Buffer; readonly events: readonly Event[] }) {
  const { damage, tornBytes } = checkChain(bytes);
  const text = bytes.toString("utf8");
  return [
    ...unallowed(events),
    ...unanswered(events),
    ...overLimit(events, limits),
    ...(damage === undefined && tornBytes === 0 ? [] : [`the chain: ${damage?.message ?? "torn"}`]),
    ...told(text, allSecrets).map((kind) => `${kind} in the log`),
    ...raw(text).map((what) => `${what} in the log`),
  ];
}

function unsecured(disk: SimulatedDisk): readonly string[] {
  const logs = disk.logs();
  return [...disk.secured()].flatMap(([id, seq]) => {
    const there = checkChain(logs.get(id) ?? new Uint8Array()).events.length;
    return there >= seq ? [] : [`${id}: of ${seq} events that were secured, ${there} are there`];
  });
}

// What only reads may run before its record is safe.
function unrecorded(events: readonly Event[], changed: readonly string[]): readonly string[] {
  return [...new Set(changed)].flatMap((tool) => {
    const times = changed.filter((name) => name === tool).length;
    const recorded = eventsOf(events, "tool.started").filter((e) =>
      e.data.tool === tool && e.data.risk !== "read"
    ).length;
    return times <= recorded ? [] : [`${tool} ran ${times} times, and ${recorded} are recorded`];
  });
}

/** Plays a seed twice: what did not hold, and where the two logs differ. */
export async function simulateTwice(seed: number): Promise<Simulated> {
  const [first, second] = [await simulate(seed), await simulate(seed)];
  if (first.fingerprint === second.fingerprint) return first;
  const [a, b] = [first, second].map((s) => [...s.logs].flatMap(([id, log]) => [id, ...log.split("\n")]));
  const at = a?.findIndex((line, i) => line !== b?.[i]) ?? 0;
  const differ = `the same seed gave other bytes:\n         ${a?.[at]?.slice(0, 600)}\n         ${
    b?.[at]?.slice(0, 600)
  }`;
  return { ...first, faults: [...first.faults, differ] };
}
