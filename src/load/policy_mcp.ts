// `mcp_servers` of a policy: what single values must be, and the servers of all layers as one list.
import { dirname } from "node:path";
import { whyNeverPassed } from "../core/env_names.ts";
import type { ListedTool, McpServer, ServerValue, ServerValues } from "../core/mcp.ts";
import { redactText } from "../core/redact.ts";
import { type Position, showPosition } from "../core/problem.ts";
import { showFound, showPath } from "./check_value.ts";
import { milliseconds } from "./duration.ts";
import { resolvePath } from "./locate.ts";
import type { PolicyFile } from "./policy_file.ts";
import type { PolicyData } from "./policy_schema.ts";
import type { Settings } from "./policy_settings.ts";
import type { KeyFault } from "./policy_values.ts";
import { makeRedactor } from "./redactor.ts";
import type { YamlPath } from "./yaml.ts";

type Entry = NonNullable<PolicyData["mcp_servers"]>[string];
type WrittenValue = NonNullable<Entry["headers"]>[string];

/** What values must be beyond their shape. Values of headers and variables are never repeated: they may be secrets. */
export const serverChecks: readonly {
  readonly path: string;
  readonly fault: (path: YamlPath, value: unknown) => KeyFault | undefined;
}[] = [
  { path: "mcp_servers.*", fault: reachFault },
  { path: "mcp_servers.*.url", fault: urlFault },
  { path: "mcp_servers.*.env.*", fault: variableFault },
  { path: "mcp_servers.*.headers.*", fault: headerFault },
];

/** Sorted by name. A name that two files describe is a Problem with both places, whatever their layers. */
export function compileServers(settings: Settings, home: string): readonly McpServer[] {
  const servers = new Map<string, McpServer>();
  for (const file of settings.files) {
    for (const [name, entry] of Object.entries(file.data.mcp_servers ?? {})) {
      const base = ["mcp_servers", name];
      const at = file.keyAt(base);
      const before = servers.get(name);
      if (before !== undefined) {
        settings.problems.push(describedTwice(name, before, at));
        continue;
      }
      const server = compileServer(name, entry, file, home);
      servers.set(name, server);
      settings.problems.push(...warningsOf(server, entry, file));
      tellOrigin(settings, server, entry, file);
    }
  }
  return [...servers.values()].sort((a, b) => a.name < b.name ? -1 : 1);
}

function compileServer(name: string, entry: Entry, file: PolicyFile, home: string): McpServer {
  const base = ["mcp_servers", name];
  const values = (written: Entry["env"]) => compileValues(written, file.path, home);
  const [program = "", ...args] = entry.command ?? [];
  return {
    name,
    layer: file.layer,
    at: file.keyAt(base),
    reach: entry.url === undefined
      ? {
        kind: "command",
        argv: [program.startsWith("~/") ? resolvePath(program, { file: file.path, home }) : program, ...args],
        cwd: dirname(file.path),
        env: values(entry.env),
      }
      : { kind: "url", url: entry.url, headers: values(entry.headers) },
    tools: listedTools(entry, (path) => file.at([...base, "tools", ...path])),
    ...(entry.box === undefined ? {} : { box: entry.box }),
    required: entry.required ?? false,
    startMs: milliseconds(entry.timeout ?? "10s"),
    callMs: milliseconds(entry.call_timeout ?? "2m"),
  };
}

function listedTools(entry: Entry, at: (path: YamlPath) => Position): readonly ListedTool[] {
  const { tools } = entry;
  if (!Array.isArray(tools)) {
    return Object.entries(tools).map(([name, risk]) => ({ name, risk, at: at([name]) }));
  }
  const names: readonly string[] = tools;
  return [...new Set(names)].map((name) => ({ name, risk: "execute", at: at([names.indexOf(name)]) }));
}

function compileValues(written: Entry["env"], file: string, home: string): ServerValues {
  return Object.fromEntries(
    Object.entries(written ?? {}).map(([name, value]) => [name, compileValue(value, file, home)]),
  );
}

function compileValue(value: WrittenValue, file: string, home: string): ServerValue {
  if (typeof value === "string") return { text: value };
  const prefix = value.prefix ?? "";
  return value.file === undefined
    ? { env: value.env ?? "", prefix }
    : { file: resolvePath(value.file, { file, home }), prefix };
}

function describedTwice(name: string, first: McpServer, at: Position) {
  return {
    code: "set-twice",
    severity: "error",
    message: `the server \`${name}\` is described twice, at ${showPosition(first.at)} and at ${
      showPosition(at)
    }`,
    at,
    hint: "keep one of them, or choose another name",
  } as const;
}

function warningsOf(server: McpServer, entry: Entry, file: PolicyFile): Settings["problems"] {
  const base = ["mcp_servers", server.name];
  const found: Settings["problems"] = [];
  const warn = (code: string, message: string, path: YamlPath, hint: string) =>
    found.push({ code, severity: "warning", message, at: file.at([...base, ...path]), hint });
  if (server.tools.length === 0) {
    warn(
      "no-effect",
      `the server \`${server.name}\` lists no tools, so it is not started`,
      ["tools"],
      "list those that are used",
    );
  }
  if (entry.url !== undefined && isOpenHttp(entry.url)) {
    warn(
      "plain-http",
      `the server \`${server.name}\` is reached without encryption`,
      ["url"],
      "use an `https` address; only on this machine `http` is as good",
    );
  }
  const literal = Object.entries({ ...entry.headers, ...entry.env }).filter(([, v]) =>
    typeof v === "string" && looksSecret(v)
  );
  for (const [name] of literal) {
    warn(
      "literal-key",
      `\`${name}\` of the server \`${server.name}\` looks like a credential`,
      [entry.headers?.[name] === undefined ? "env" : "headers", name],
      "keep it in the environment or in a file: `{env: NAME}`, `{file: PATH}`",
    );
  }
  return found;
}

function isOpenHttp(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && hostname !== "localhost" && hostname !== "[::1]" && !/^127\./.test(hostname);
}

function looksSecret(text: string): boolean {
  const redactor = makeRedactor({
    redact: { builtin: true, env: [], patterns: [] },
    env: {},
    secrets: [],
  });
  return redactText(redactor, text) !== text;
}

// For `policy show`; what a header or a variable holds is not shown.
function tellOrigin(settings: Settings, server: McpServer, entry: Entry, file: PolicyFile): void {
  const base = ["mcp_servers", server.name];
  const tell = (path: YamlPath, value: string | number | boolean | readonly string[], at?: Position) =>
    settings.origin.push({
      key: [...base, ...path].join("."),
      value,
      layer: file.layer,
      at: at ?? file.at([...base, ...path]),
    });
  for (const key of ["command", "url", "required", "timeout", "call_timeout"] as const) {
    const value = entry[key];
    if (value !== undefined) tell([key], value);
  }
  for (const key of ["env", "headers"] as const) {
    for (const name of Object.keys(entry[key] ?? {})) tell([key, name], "…");
  }
  for (const tool of server.tools) tell(["tools", tool.name], tool.risk, tool.at);
}

function reachFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const has = (key: string) => Object.hasOwn(value, key);
  const wrong = (message: string, hint?: string): KeyFault => ({
    code: "wrong-value",
    message,
    expected: "either `command` (with `env`) or `url` (with `headers`)",
    ...(hint === undefined ? {} : { hint }),
    place: "key",
  });
  if (has("command") === has("url")) {
    return wrong(
      `${showPath(path)} has ${has("url") ? "both `command` and `url`" : "no `command` or `url`"}`,
    );
  }
  const stray = ["env", "box"].find((key) => has("url") && has(key)) ??
    (has("command") && has("headers") ? "headers" : undefined);
  return stray === undefined
    ? undefined
    : wrong(`${showPath([...path, stray])} has no meaning with \`${has("url") ? "url" : "command"}\``);
}

function urlFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "string") return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const expected = "an address such as `https://tools.example/mcp`";
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    const message = `${showPath(path)} is ${showFound(value)}`;
    return { code: "wrong-value", message, expected, place: "value" };
  }
  if (url.username === "" && url.password === "") return undefined;
  const message = `${showPath(path)} holds a user name or password`;
  return { code: "literal-key", message, expected, hint: "use `headers`", place: "value" };
}

function variableFault(path: YamlPath, value: unknown): KeyFault | undefined {
  const name = String(path.at(-1));
  if (whyNeverPassed(name) === "steers") {
    return {
      code: "not-allowed",
      message: `\`${name}\` is never passed to a program`,
      hint: "remove it; it can change what programs run",
      place: "key",
    };
  }
  return literalFault(path, value, whyNeverPassed(name) === "secret") ?? sourceFault(path, value);
}

function headerFault(path: YamlPath, value: unknown): KeyFault | undefined {
  const name = String(path.at(-1)).toLowerCase();
  const secret = ["authorization", "x-api-key", "proxy-authorization", "cookie"].includes(name);
  if (typeof value === "string" && /[^\t\x20-\x7e]/.test(value)) {
    const message = `${showPath(path)} holds characters that no header may have`;
    return { code: "wrong-value", message, place: "value" };
  }
  return literalFault(path, value, secret) ?? sourceFault(path, value);
}

function literalFault(path: YamlPath, value: unknown, secret: boolean): KeyFault | undefined {
  if (!secret || typeof value !== "string") return undefined;
  return {
    code: "literal-key",
    message: `${showPath(path)} holds a secret itself`,
    expected: "`{env: NAME}` or `{file: PATH}`, with `prefix` for a text before it",
    hint: "a key in a policy file is a key in every copy of it",
    place: "value",
  };
}

function sourceFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  if (Object.hasOwn(value, "env") !== Object.hasOwn(value, "file")) return undefined;
  return {
    code: "wrong-value",
    message: `${showPath(path)} names ${Object.hasOwn(value, "env") ? "two sources" : "no source"}`,
    expected: "one of `{env: NAME}` and `{file: PATH}`",
    place: "value",
  };
}
