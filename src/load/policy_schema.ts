// The shape of one policy file: every key and what it means. Only shapes: what keys mean together is checked where layers
// are merged.
import * as v from "valibot";
import { type Risk, risks } from "../core/decision.ts";
import {
  durationWords,
  parseDuration,
  parseRetention,
  parseSize,
  retentionWords,
  sizeWords,
} from "./duration.ts";

// Every message says what is expected, in words that fit after "expected".
const text = v.pipe(v.string("text"), v.nonEmpty("text that is not empty"));
const texts = v.array(text, "a list of texts");
const textOrTexts = v.union([text, texts], "text or a list of texts");
const flag = v.boolean("`true` or `false`");
const whole = wholeFrom(1, "a whole number above zero");
const count = wholeFrom(0, "a whole number, zero or more");
const amount = v.pipe(v.number("a number"), v.minValue(0, "a number, zero or more"));
const duration = checkedText(/^(\d+(d|h|ms|m|s))+$/, (s) => parseDuration(s) !== undefined, durationWords);
const size = checkedText(/^\d+(B|KiB|MiB|GiB|TiB)$/, (s) => parseSize(s) !== undefined, sizeWords);
const retention = checkedText(/^\d+d$/, (s) => parseRetention(s) !== undefined, retentionWords);
const variable = named(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of an environment variable");
const variables = v.array(variable, "a list of names of environment variables");
const id = named(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "a name of letters, digits, `.`, `_` and `-`");
const effects = ["allow", "ask", "deny"] as const;
const effect = oneOf(effects);
const risk = oneOf(risks as readonly [Risk, ...Risk[]]);
const tiers = ["builtin", "machine", "user", "project"] as const;
const tier = oneOf(tiers);

function wholeFrom(least: number, words: string) {
  return v.pipe(v.number(words), v.safeInteger(words), v.minValue(least, words));
}
function named(pattern: RegExp, words: string) {
  return v.pipe(v.string(words), v.regex(pattern, words));
}
// The pattern is for editors, which read it from the JSON Schema; the function has the last word.
function checkedText(pattern: RegExp, fits: (text: string) => boolean, words: string) {
  return v.pipe(v.string(words), v.regex(pattern, words), v.check(fits, words));
}
function oneOf<const T extends readonly [string, ...string[]]>(options: T) {
  return v.picklist(options, oneOfWords(options));
}
function oneOfWords(options: readonly string[]): string {
  return `${options.length === 1 ? "" : "one of "}${options.map((o) => `\`${o}\``).join(", ")}`;
}
function mapping<const E extends v.ObjectEntries>(entries: E) {
  return v.strictObject(entries, "a mapping");
}
function mapOf<K extends v.GenericSchema<string, string>, S extends v.GenericSchema>(key: K, value: S) {
  return v.record(key, value, "a mapping");
}
function key<S extends v.GenericSchema>(schema: S, meaning: string) {
  return v.exactOptional(v.pipe(schema, v.description(meaning)));
}

/** What a path in a policy leads to; `log` is what Writ writes itself. */
export type PathRole = "key" | "script" | "cassette" | "schema" | "policy" | "skills" | "program" | "log";

// Every key that holds a path says so here: by this mark it waits for trust where it leads into the workspace.
function pathOf(role: PathRole) {
  return v.pipe(text, v.metadata({ path: role }));
}
function programOf(words: string) {
  return v.pipe(texts, v.nonEmpty(words), v.metadata({ path: "program" satisfies PathRole }));
}

const ruleMapping = mapping({
  id: key(id, "shown in decisions; default `layer.effect[n]`"),
  tool: v.pipe(textOrTexts, v.description("tool names or globs such as `mcp.github.*`")),
  command: key(textOrTexts, "command patterns: words, a last `*` stands for any further words"),
  path: key(textOrTexts, "path globs, relative to the workspace root; `~` is home"),
  host: key(textOrTexts, "host patterns: exact, `*.sub`, `*` or `@private`"),
  arg: key(mapOf(text, textOrTexts), "globs over single arguments, by name"),
  except: key(textOrTexts, "carves from the command, path or host beside it"),
  box: key(textOrTexts, "named boxes that the rule covers"),
  risk: key(
    v.union([risk, v.array(risk, "a list of risks")], `${oneOfWords(risks)}, or a list of these`),
    "only calls of these risks",
  ),
  sourced_by: key(textOrTexts, "only calls sourced by these skills, as `skill:NAME`"),
  mode: key(oneOf(["interactive", "unattended"]), "only in runs of this mode"),
  workspace: key(text, "only in this workspace root"),
  always: key(flag, "an ask that no kept answer answers"),
  reason: key(text, "shown to people and to the model"),
  match: key(textOrTexts, "examples that the rule must match; decided at load"),
  no_match: key(textOrTexts, "examples that the rule must not match; decided at load"),
});
const ruleEntry = v.union(
  [text, ruleMapping],
  "a tool, a pattern such as `shell(git diff *)`, or a mapping with `tool`",
);
const ruleEntries = v.array(ruleEntry, "a list of rules");
const callPatterns = v.array(ruleEntry, "a list of call patterns such as `shell(git merge *)`");

const prices = mapping({
  input: v.pipe(amount, v.description("USD per million input tokens")),
  output: v.pipe(amount, v.description("USD per million output tokens")),
  cache_read: v.pipe(amount, v.description("USD per million tokens read from the cache")),
  cache_write: v.pipe(amount, v.description("USD per million tokens written to the cache")),
});
const keySource = mapping({
  env: key(variable, "the environment variable that holds the key"),
  file: key(pathOf("key"), "the file that holds the key; read again when it changes"),
  command: key(
    programOf("a list with at least the program"),
    "a program that prints the key, by absolute path",
  ),
});
const model = mapping({
  provider: key(oneOf(["anthropic", "script", "replay"]), "who answers; never guessed"),
  name: key(text, "exact id of the model"),
  base_url: key(text, "an endpoint that speaks the Anthropic Messages API"),
  api_key: key(keySource, "where the key is: `{env: NAME}`, `{file: PATH}` or `{command: [PROGRAM, …]}`"),
  headers: key(
    mapOf(named(/^[A-Za-z0-9!#$%&'*+.^_|~-]+$/, "the name of a header"), v.string("text")),
    "further request headers",
  ),
  request: key(mapOf(text, v.unknown()), "merged into the request body"),
  max_output_tokens: key(whole, "most tokens of one reply"),
  context_tokens: key(whole, "size of the model's context"),
  timeout: key(duration, "longest wait for a whole reply"),
  idle_timeout: key(duration, "longest silence within a reply"),
  retries: key(count, "how often a failed request is tried again"),
  prices: key(prices, "USD per million tokens"),
  choices: key(
    mapOf(
      id,
      mapping({
        name: v.pipe(text, v.description("exact id")),
        prices: key(prices, "USD per million tokens"),
        context_tokens: key(whole, "size of the context"),
      }),
    ),
    "models that may be chosen by these names; `default` is the one above",
  ),
  script: key(pathOf("script"), "scripted replies, for provider `script`"),
  cassette: key(pathOf("cassette"), "recorded replies, for provider `replay`"),
});

const limits = mapping({
  iterations: key(whole, "most model requests per turn"),
  tool_calls: key(count, "most tool calls per turn"),
  wall_time: key(duration, "longest turn; waiting for an approval does not count"),
  same_call: key(whole, "how often the same call may give the same result"),
  tokens: key(whole, "most tokens per session, forks included; cache reads count a tenth; default no limit"),
  cost_usd: key(
    amount,
    "most USD per session, forks included; needs the prices of every model that may answer",
  ),
});

const workspace = mapping({
  root: key(text, "`auto`, or the folder"),
  trust: key(oneOf(["trusted", "ask", "untrusted"]), "whether what the workspace brings counts"),
  instructions: key(texts, "names of instruction files"),
  protect: key(texts, "path globs that only a rule without wildcards covers"),
});

const forced = mapping({
  id: key(id, "shown in decisions; default `layer.forced[n]`"),
  skill: key(text, "the skill to load"),
  when: key(
    v.union([oneOf(["session"]), v.pipe(v.array(oneOf(["session"])), v.nonEmpty())], "`session`"),
    "loaded from the start",
  ),
  before: key(
    v.union(
      [oneOf(["finish"]), callPatterns],
      "`finish`, or a list of call patterns such as `shell(git merge *)`",
    ),
    "actions that are refused until the gate is met; `finish` is the end of a turn",
  ),
  evidence: key(v.pipe(callPatterns, v.nonEmpty("at least one rule")), "calls that must have completed"),
  verdict: key(v.pipe(texts, v.nonEmpty("at least one outcome")), "outcomes of the skill that open the gate"),
  arguments: key(v.string("text"), "arguments of the skill"),
  bounding: key(flag, "whether its allowed_tools bound the session; default `false`"),
  tier: key(tier, "lowest tier that may provide the skill"),
  by: key(oneOf(["fork"]), "who must give the verdict"),
  reuse: key(flag, "whether evidence and verdict stay after a gated call; default `false`"),
  gate_retries: key(count, "how often the end of a turn is refused before it ends all the same; default 3"),
});
const trigger = mapping({
  patterns: v.pipe(
    v.array(text, "a list of regular expressions"),
    v.description("regular expressions on the user's message"),
  ),
  match: key(textOrTexts, "messages that must match; decided at load"),
  no_match: key(textOrTexts, "messages that must not match; decided at load"),
});
const skills = mapping({
  sources: key(
    v.array(
      v.union([
        tier,
        mapping({
          path: v.pipe(pathOf("skills"), v.description("a folder of skills")),
          tier: key(tier, "whose skills these are; default `user`, in the machine's policy `machine`"),
        }),
      ], `${oneOfWords(tiers)}, or a folder as \`{path: …}\``),
      `a list of tiers (${tiers.map((t) => `\`${t}\``).join(", ")}) and folders (\`{path: …}\`)`,
    ),
    "where skills come from",
  ),
  scope: key(oneOf(["turn", "session"]), "how long a loaded skill stays"),
  forced: key(v.array(forced, "a list of mappings"), "skills and gates that cannot be avoided"),
  triggers: key(mapOf(text, trigger), "further patterns that load a skill, by its name"),
  disabled: key(texts, "globs of skills that nothing may load"),
  model_choice: key(flag, "whether the model sees the catalog"),
  undeclared_tools: key(
    oneOf(["reject", "read_only", "unbounded"]),
    "bound of a skill that declares no tools",
  ),
  combine_bounds: key(oneOf(["intersection", "union"]), "how bounds of several skills combine"),
  pins: key(
    mapOf(text, named(/^sha256:[0-9a-f]{64}$/, "`sha256:` and 64 hex digits, as `writ skill pin` prints it")),
    "hash of a skill's whole folder, by its name",
  ),
  require_pins: key(flag, "whether every skill must be pinned"),
  listing_tokens: key(whole, "room of the catalog"),
  active_tokens: key(whole, "room of loaded skills; default a quarter of context_tokens"),
  secrets: key(mapOf(text, mapOf(variable, keySource)), "secrets of a skill's command tools"),
  boxes: key(mapOf(text, text), "box of a skill's command tools"),
});

const permissions = mapping({
  default: key(
    v.union([
      effect,
      mapping({
        read: key(effect, "risk read"),
        write: key(effect, "risk write"),
        execute: key(effect, "risk execute"),
        network: key(effect, "risk network"),
        destructive: key(effect, "risk destructive"),
      }),
    ], `${oneOfWords(effects)}, or a mapping of risks to these`),
    "effect when no rule of the layer matches",
  ),
  delegate: key(ruleEntries, "calls that a project policy may allow"),
  non_interactive: key(oneOf(["deny"]), "what an ask is when nobody can answer"),
  ask_timeout: key(duration, "longest wait for an answer"),
  risky_options: key(texts, "options that `*` never covers, as `PROGRAM OPTION`"),
  sets: key(mapOf(id, texts), "lists that rules use as `@NAME`"),
  deny: key(ruleEntries, "calls that are refused"),
  ask: key(ruleEntries, "calls that need an answer"),
  allow: key(ruleEntries, "calls that may run"),
});

const box = mapping({
  mode: key(oneOf(["off"]), "no sandbox"),
  network: key(oneOf(["none", "all"]), "network access"),
  env: key(variables, "further environment variables"),
  sockets: key(texts, "sockets of the host"),
  read: key(texts, "further readable paths"),
  write: key(texts, "further writable paths"),
  note: key(text, "shown when the box is asked for"),
});
const sandbox = mapping({
  mode: key(oneOf(["required", "off"]), "whether commands must run in a sandbox"),
  backend: key(oneOf(["auto", "bwrap", "landlock"]), "which sandbox"),
  network: key(oneOf(["none", "all"]), "network access of commands"),
  read: key(texts, "what commands may read"),
  write: key(texts, "what commands may write"),
  hide: key(texts, "what commands cannot see"),
  env: key(variables, "environment variables that commands get"),
  limits: key(
    mapping({ processes: key(whole, "most processes"), memory: key(size, "most memory") }),
    "limits of a command",
  ),
  boxes: key(mapOf(id, box), "named ways out of the sandbox"),
});

const tools = mapping({
  enabled: key(texts, "tools that the model is offered"),
  shell: key(
    mapping({
      timeout: key(duration, "time limit of a command"),
      max_timeout: key(duration, "longest limit that a call may ask for"),
      max_output: key(whole, "characters of output that are kept"),
    }),
    "the shell tool",
  ),
});

// Without a dot or `__`: both separate the server from the tool in names such as `mcp.github.merge`.
const serverName = named(
  /^[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*$/,
  "a name of letters, digits, `-` and single `_`",
);
const serverTool = named(/^[A-Za-z0-9_.-]{1,128}$/, "a tool's name of letters, digits, `.`, `_` and `-`");
const serverValue = v.union([
  v.string("text"),
  mapping({
    env: key(variable, "the environment variable that holds it"),
    file: key(pathOf("key"), "the file that holds it"),
    prefix: key(v.string("text"), "a text before it, such as `Bearer `"),
  }),
], "text, `{env: NAME}` or `{file: PATH}`");
const mcpServer = mapping({
  command: key(
    programOf("a list with at least the program"),
    "program and arguments; relative to the folder of the policy file",
  ),
  env: key(mapOf(variable, serverValue), "further environment variables of the program"),
  url: key(text, "address of a server that speaks streamable HTTP"),
  headers: key(
    mapOf(named(/^[A-Za-z0-9!#$%&'*+.^_|~-]+$/, "the name of a header"), serverValue),
    "request headers",
  ),
  tools: v.pipe(
    v.union(
      [
        v.array(serverTool, "a list of names of tools"),
        mapOf(serverTool, risk),
      ],
      "a list of tools, or a mapping of tools to their risk",
    ),
    v.description("the tools that are used, with their risk; without one `execute`"),
  ),
  required: key(flag, "whether nothing starts without it; default `false`"),
  timeout: key(duration, "longest start, until its tools are known; default `10s`"),
  call_timeout: key(duration, "longest call; default `2m`"),
  box: key(text, "the box it runs in"),
});
const secrets = mapping({
  redact: key(
    mapping({
      builtin: key(
        v.literal(true, "`true`; the shipped patterns are always in force"),
        "the shipped patterns",
      ),
      env: key(variables, "environment variables whose values are redacted"),
      patterns: key(v.array(text, "a list of regular expressions"), "further regular expressions"),
    }),
    "what never reaches log, model or terminal",
  ),
});
const audit = mapping({
  dir: key(pathOf("log"), "folder of the session logs; default in the user's state folder"),
  on_failure: key(oneOf(["stop"]), "what happens when the log cannot be written"),
  keep: key(retention, "age from which `writ session prune` removes a log; nothing is removed by itself"),
  heads: key(
    pathOf("log"),
    "file that gets one line at the end of every turn, for what ships logs elsewhere",
  ),
  key: key(
    keySource,
    "key that signs every head, so that only who has it can rewrite a log: `{env: NAME}`, `{file: PATH}` or `{command: [PROGRAM, …]}`",
  ),
});
const output = mapping({
  schema: key(pathOf("schema"), "JSON Schema of the answer"),
  retries: key(count, "how often an answer is sent back"),
  verdict_field: key(text, "member that holds the verdict"),
});
const server = mapping({
  listen: key(text, "`unix:PATH` or `ADDRESS:PORT`; default `unix:` and `writ.sock` in the state folder"),
  token_file: key(
    pathOf("key"),
    "file of tokens, one a line; default one token that is made in the state folder",
  ),
  allow_remote: key(flag, "whether an address that other machines reach may be listened at"),
  hosts: key(texts, "values of `Host` that are answered beside the address itself"),
  origins: key(texts, "web origins whose pages may call; default none"),
  inspector: key(flag, "whether the inspector is served"),
  drain_grace: key(duration, "time that running turns get at shutdown"),
  max_sessions: key(whole, "most sessions that are held open at once"),
  max_concurrent_turns: key(whole, "most turns that run at once"),
  idle_unload: key(
    duration,
    "idle time after which a session is put away until it is used again",
  ),
  workspaces: key(texts, "folders, or globs of folders, that a session may name to work in; default none"),
  profiles: key(
    mapOf(id, pathOf("policy")),
    "policy files in the user layer's place, by the name that a session gives",
  ),
});

export const policySchema = mapping({
  version: v.pipe(v.number("the number `1`"), v.value(1, "`1`"), v.description("version of the file format")),
  name: key(text, "shown in log and health"),
  min_version: key(
    named(/^\d+\.\d+\.\d+$/, "a version such as `0.1.0`"),
    "oldest binary that may use the file",
  ),
  model: key(model, "the model and how it is reached"),
  limits: key(limits, "hard stops"),
  workspace: key(workspace, "the folder that is worked on"),
  skills: key(skills, "skills: sources, forced ones, triggers"),
  permissions: key(permissions, "which calls are allowed, asked about or refused"),
  sandbox: key(sandbox, "where commands run"),
  tools: key(tools, "which tools exist"),
  mcp_servers: key(mapOf(serverName, mcpServer), "servers of tools that speak the Model Context Protocol"),
  secrets: key(secrets, "redaction"),
  audit: key(audit, "the session log"),
  output: key(output, "the final answer"),
  server: key(server, "the HTTP sidecar"),
});
export type PolicyData = v.InferOutput<typeof policySchema>;
export type RuleEntry = v.InferOutput<typeof ruleEntry>;
export type RuleMapping = v.InferOutput<typeof ruleMapping>;
export type ForcedEntry = v.InferOutput<typeof forced>;
