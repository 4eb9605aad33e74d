// What single values of a policy file must be beyond their shape: one line per key.
import { whyNeverPassed } from "../core/env_names.ts";
import { nearest } from "../core/problem.ts";
import { mapToolName } from "../core/skill.ts";
import { enableableTools, engineTools } from "../core/tool_names.ts";
import { showFound, showPath } from "./check_value.ts";
import { keyMatches } from "./policy_keys.ts";
import { serverChecks } from "./policy_mcp.ts";
import { sandboxChecks } from "./policy_sandbox.ts";
import type { YamlPath } from "./yaml.ts";

export type KeyFault = {
  readonly code: string;
  readonly message: string;
  readonly expected?: string;
  readonly hint?: string;
  readonly place: "key" | "value";
};

/** Looks at values of any shape; faults of shape are for the schema. */
export function checkKey(path: YamlPath, value: unknown): KeyFault | undefined {
  for (const check of checks) {
    const fault = keyMatches(check.path, path) ? check.fault(path, value) : undefined;
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const checks: readonly {
  readonly path: string;
  readonly fault: (path: YamlPath, value: unknown) => KeyFault | undefined;
}[] = [
  { path: "model.api_key", fault: keySourceFault },
  { path: "audit.key", fault: keySourceFault },
  { path: "skills.secrets.*.*", fault: (path, value) => keySourceFault(path, value) ?? secretFault(path) },
  { path: "model.headers.*", fault: headerFault },
  { path: "model.request.*", fault: requestFault },
  { path: "model.base_url", fault: urlFault },
  { path: "sandbox.env.*", fault: passedFault },
  { path: "sandbox.boxes.*.env.*", fault: passedFault },
  { path: "tools.enabled.*", fault: enabledFault },
  { path: "workspace.instructions.*", fault: instructionFault },
  ...serverChecks,
  ...sandboxChecks,
];

// The value is never repeated: it may be the key.
function keySourceFault(path: YamlPath, value: unknown): KeyFault | undefined {
  const expected = "one of `{env: NAME}`, `{file: PATH}` and `{command: [PROGRAM, …]}`";
  if (typeof value === "string") {
    return {
      code: "literal-key",
      message: `${showPath(path)} holds a key itself`,
      expected,
      hint:
        "a key in a policy file is a key in every copy of it; keep it in the environment or in a file, and change it now",
      place: "value",
    };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const source = value as { readonly [key: string]: unknown };
  if (Object.values(source).some((s) => typeof s === "string" && /^sk-/.test(s))) {
    return { code: "literal-key", message: `${showPath(path)} holds a key itself`, expected, place: "value" };
  }
  const set = ["env", "file", "command"].filter((k) => Object.hasOwn(source, k));
  if (set.length !== 1) {
    const found = set.length === 0 ? "names no source" : `names ${set.length} sources`;
    return { code: "wrong-value", message: `${showPath(path)} ${found}`, expected, place: "value" };
  }
  const program = Array.isArray(source["command"]) ? source["command"][0] : undefined;
  if (typeof program === "string" && !/^(\/|[A-Za-z]:[\\/])/.test(program)) {
    return {
      code: "wrong-value",
      message: `the program in ${showPath([...path, "command"])} is ${showFound(program)}`,
      expected: "an absolute path",
      place: "value",
    };
  }
  return undefined;
}

// Of the names that reach no child those that are secrets are just what this is for.
function secretFault(path: YamlPath): KeyFault | undefined {
  const name = String(path.at(-1));
  const taken = ["PATH", "HOME", "TMPDIR", "SKILL_WORKSPACE"].includes(name.toUpperCase());
  if (!taken && whyNeverPassed(name) !== "steers") return undefined;
  return {
    code: "wrong-value",
    message: `${showPath(path)}: the variable \`${name}\` ${
      taken ? "is set by Writ itself" : "steers the programs that see it"
    }`,
    expected: "the name of a variable that only holds a secret",
    place: "key",
  };
}

function headerFault(path: YamlPath, _value: unknown): KeyFault | undefined {
  const name = String(path.at(-1)).toLowerCase();
  if (!["authorization", "x-api-key", "proxy-authorization", "cookie"].includes(name)) return undefined;
  return {
    code: "literal-key",
    message: `the header ${showPath(path)} would hold a secret`,
    hint: "use `model.api_key`",
    place: "key",
  };
}

const ownedMembers: { readonly [member: string]: string } = {
  model: "use `model.name`",
  max_tokens: "use `model.max_output_tokens`",
  messages: "writ builds it",
  system: "writ builds it",
  tools: "writ builds it",
  stream: "writ always streams",
};

function requestFault(path: YamlPath, value: unknown): KeyFault | undefined {
  const member = String(path.at(-1));
  if (Object.hasOwn(ownedMembers, member)) {
    const hint = ownedMembers[member] ?? "";
    return { code: "not-allowed", message: `${showPath(path)} may not be set`, hint, place: "key" };
  }
  if (isJson(value, 20)) return undefined;
  return {
    code: "wrong-value",
    message: `${showPath(path)} cannot be sent as JSON`,
    expected: "plain data, at most 20 levels deep",
    place: "value",
  };
}

function isJson(value: unknown, depth: number): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || depth === 0) return false;
  return Object.entries(value).every(([k, v]) => k !== "__proto__" && isJson(v, depth - 1));
}

function urlFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "string") return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const expected = "an address such as `https://gateway.example/anthropic`";
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    return {
      code: "wrong-value",
      message: `${showPath(path)} is ${showFound(value)}`,
      expected,
      place: "value",
    };
  }
  if (url.username === "" && url.password === "") return undefined;
  return {
    code: "literal-key",
    message: `${showPath(path)} holds a user name or password`,
    expected,
    hint: "use `model.api_key`",
    place: "value",
  };
}

function passedFault(_path: YamlPath, value: unknown): KeyFault | undefined {
  const why = typeof value === "string" ? whyNeverPassed(value) : undefined;
  if (why === undefined) return undefined;
  return {
    code: "not-allowed",
    message: `${showFound(value)} is never passed to a command`,
    hint: why === "steers"
      ? "remove it; it can change what programs run"
      : "remove it; by its name it holds a secret",
    place: "value",
  };
}

function enabledFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "string" || enableableTools.includes(value)) return undefined;
  if (engineTools.includes(value)) {
    return {
      code: "not-allowed",
      message: `${showFound(value)} stands outside ${showPath(path.slice(0, -1))}`,
      hint: "remove it; it is offered when it is of use, and `permissions` decide on it",
      place: "value",
    };
  }
  return { ...unknownTool(value, enableableTools), place: "value" };
}

/** What is wrong with a tool name that nobody knows. */
export function unknownTool(name: string, known: readonly string[]): Omit<KeyFault, "place"> {
  const mapped = mapToolName(name).tool;
  const near = known.includes(mapped) ? mapped : nearest(name, known);
  return {
    code: "unknown-tool",
    message: `no tool ${showFound(name)}`,
    hint: near === undefined
      ? `tools are ${known.map((t) => `\`${t}\``).join(", ")}`
      : `did you mean \`${near}\`?`,
  };
}

function instructionFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  const steps = value.split(/[\\/]/);
  if (!/^([\\/~]|[A-Za-z]:)/.test(value) && !steps.includes("..") && !/[*?\0]/.test(value)) return undefined;
  return {
    code: "wrong-value",
    message: `${showPath(path)} is ${showFound(value)}`,
    expected: "a file name such as `AGENTS.md`, looked for in the workspace",
    place: "value",
  };
}
