// Files that a clumsy or a hostile hand could have written: by the grammar of SKILL.md and of policies, with values of every kind
// in every place, then with bytes changed. The same seed gives the same file.
import { Buffer } from "node:buffer";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadPolicy } from "../../src/load/load_policy.ts";
import { parseSkillFile } from "../../src/load/skill_file.ts";
import { dice } from "./chaos.ts";

type Dice = ReturnType<typeof dice>;

const skillKeys = [
  "name",
  "description",
  "allowed_tools",
  "allowed-tools",
  "version",
  "trigger",
  "model",
  "mode",
  "context",
  "metadata",
  "license",
  "depends",
  "arguments",
  "__proto__",
  "constructor",
  "Name",
];
const policyKeys: { readonly [key: string]: readonly string[] } = {
  version: [],
  name: [],
  min_version: [],
  model: [
    "provider",
    "name",
    "base_url",
    "api_key",
    "headers",
    "request",
    "timeout",
    "retries",
    "prices",
    "choices",
  ],
  limits: ["iterations", "tool_calls", "wall_time", "same_call", "tokens", "cost_usd"],
  workspace: ["root", "trust", "instructions", "protect"],
  skills: [
    "sources",
    "scope",
    "forced",
    "triggers",
    "disabled",
    "pins",
    "listing_tokens",
    "boxes",
    "secrets",
  ],
  permissions: ["default", "deny", "ask", "allow", "sets", "delegate", "ask_timeout", "risky_options"],
  sandbox: ["mode", "backend", "network", "read", "write", "hide", "env", "limits", "boxes"],
  tools: ["enabled", "shell"],
  mcp_servers: ["metrics"],
  secrets: ["redact"],
  audit: ["dir", "keep", "heads", "key"],
  __proto__: ["allow"],
  permisions: ["allow"],
};

function scalar(random: Dice): string {
  return random.pick([
    "x",
    "1",
    "0",
    "-1",
    "1e400",
    "0x10",
    "true",
    "no",
    "~",
    "null",
    "2026-01-01",
    '""',
    '"a\\u0000b"',
    '"\\e[2J"',
    "'it''s'",
    '"(a+)+$"',
    "'([a-z'",
    '"shell(git *)"',
    '"tool(*"',
    '"**/*"',
    '"\\uD800"',
    "*a",
    "&a b",
    "!!js/function x",
    "!x y",
    "| \n   text\n   more",
    "10m",
    "99999999999999999999h",
    "{env: HOME}",
    "read_file",
    '"mcp.*"',
    "trusted",
    "off",
    "${HOME}",
    "../../..",
    "日本語",
    "\u202eevil",
    `"${"y".repeat(random.below(2000))}"`,
  ]);
}

function node(random: Dice, depth: number): string {
  const kind = random.below(depth > 4 ? 1 : 6);
  if (kind === 1) return `[${list(random, depth).join(", ")}]`;
  if (kind === 2) {
    return `{${list(random, depth).map((value) => `${scalarKey(random)}: ${value}`).join(", ")}}`;
  }
  if (kind === 3) {
    return `{tool: shell, command: [${scalar(random)}], ${scalarKey(random)}: ${scalar(random)}}`;
  }
  return scalar(random);
}

const list = (random: Dice, depth: number) =>
  Array.from({ length: random.below(4) }, () => node(random, depth + 1));

function scalarKey(random: Dice): string {
  return random.pick([
    "tool",
    "command",
    "path",
    "args",
    "id",
    "skill",
    "when",
    "before",
    "evidence",
    "match",
    "a",
    "__proto__",
    "?",
    '""',
    "<<",
  ]);
}

/** What opens something and closes nothing, on one line or on many. */
const openers = [
  "[",
  "{",
  "- ",
  "? ",
  ": ",
  "a: ",
  "'a': ",
  "- a: ",
  "? a: ",
  "{a: ",
  "a:\n",
  "?\n",
  "-\n",
  "&a ",
  "!a ",
  "| ",
];

function skillText(random: Dice): string {
  const lines = Array.from(
    { length: random.below(9) },
    () => `${random.pick(skillKeys)}: ${node(random, 0)}`,
  );
  const sound = random.chance(0.7) ? ["name: fuzz", "description: A text."] : [];
  const deep = random.chance(0.02) ? [`deep: ${random.pick(openers).repeat(random.below(5000))}`] : [];
  const front = [...sound, ...lines, ...deep].join(random.chance(0.95) ? "\n" : "\r\n");
  const open = random.chance(0.95) ? "---\n" : random.pick(["", "--- \n", "\ufeff---\n", "----\n", "---"]);
  return `${open}${front}\n${random.chance(0.95) ? "---\n" : "..."}${
    random.pick(["Body.\n", "", "$ARGUMENTS {{x}}\n"])
  }`;
}

function policyText(random: Dice): string {
  const lines = random.chance(0.8) ? ["version: 1"] : [];
  for (let i = random.below(7); i > 0; i--) {
    const [key, inner] = random.pick(Object.entries(policyKeys));
    if (inner.length === 0 || random.chance(0.2)) lines.push(`${key}: ${node(random, 0)}`);
    else {
      lines.push(`${key}:`);
      for (let j = 1 + random.below(4); j > 0; j--) lines.push(`  ${random.pick(inner)}: ${node(random, 1)}`);
    }
  }
  if (random.chance(0.01)) lines.push(`name: ${random.pick(openers).repeat(random.below(8000))}`);
  if (random.chance(0.01)) {
    lines.push(`permissions: {deny: [${'"shell(git *)", '.repeat(random.below(8000))}]}`);
  }
  return `${lines.join("\n")}\n`;
}

function changed(random: Dice, bytes: Buffer): Buffer {
  let result = bytes;
  for (let i = random.below(4); i > 0 && result.length > 0; i--) {
    const at = random.below(result.length);
    const kind = random.below(5);
    const before = result.subarray(0, at);
    const after = result.subarray(at);
    if (kind === 0) result = Buffer.concat([before, Buffer.from([random.below(256)]), after.subarray(1)]);
    else if (kind === 1) result = Buffer.concat([before, Buffer.from([random.below(256)]), after]);
    else if (kind === 2) result = Buffer.from(before);
    else if (kind === 3) result = Buffer.concat([before, after.subarray(random.below(20))]);
    else result = Buffer.concat([before, after.subarray(0, random.below(50)), after]);
  }
  return result;
}

export type Fuzzed = {
  /** What did not hold, if anything; and how long the file took. */
  readonly fault?: string;
  readonly ms: number;
  readonly taken: boolean;
  readonly text: string;
};

export type Fuzzer = {
  skill(seed: number): Fuzzed;
  policy(seed: number): Promise<Fuzzed>;
  close(): void;
};

/** Reads files as Writ does: a SKILL.md by its reader, a policy through all that a start does with it. */
export function makeFuzzer(): Fuzzer {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "writ-fuzz-")));
  const file = join(top, "policy.yaml");
  mkdirSync(join(top, "ws/.git"), { recursive: true });
  mkdirSync(join(top, "home"));
  return {
    skill(seed) {
      const random = dice(seed);
      const text = changed(random, Buffer.from(skillText(random))).toString("utf8");
      const started = performance.now();
      try {
        const read = parseSkillFile(text, { file: "/s/fuzz/SKILL.md", folderName: "fuzz" });
        const ms = performance.now() - started;
        const sound = read.ok ? typeof read.meta.name === "string" : read.message !== "" && read.at.line >= 1;
        return {
          ms,
          text,
          taken: read.ok,
          ...faultOf(sound ? undefined : "a refusal without place or reason"),
        };
      } catch (error) {
        return { ms: performance.now() - started, text, taken: false, fault: String(error) };
      }
    },
    async policy(seed) {
      const random = dice(seed);
      const bytes = changed(random, Buffer.from(policyText(random)));
      writeFileSync(file, bytes);
      const text = bytes.toString("latin1");
      const started = performance.now();
      try {
        const loaded = await loadPolicy(
          {
            at: {
              cwd: join(top, "ws"),
              home: join(top, "home"),
              env: {},
              machineFolder: join(top, "machine"),
              platform: "linux-x64",
            },
            version: "0.1.0",
            policies: [file],
          },
        );
        const ms = performance.now() - started;
        const errors = loaded.ok ? [] : loaded.problems.filter((p) => p.severity === "error");
        const sound = loaded.ok || (errors.length > 0 && errors.every((p) => p.message !== ""));
        return { ms, text, taken: loaded.ok, ...faultOf(sound ? undefined : "a refusal without a reason") };
      } catch (error) {
        return { ms: performance.now() - started, text, taken: false, fault: String(error) };
      }
    },
    close: () => rmSync(top, { recursive: true, force: true }),
  };
}

function faultOf(fault: string | undefined): { readonly fault?: string } {
  const polluted = Object.keys(Object.prototype).length > 0 ||
    ({} as { allow?: unknown }).allow !== undefined;
  const found = polluted ? "the prototype of all objects was changed" : fault;
  return found === undefined ? {} : { fault: found };
}
