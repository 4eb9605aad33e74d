import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { pathKeys } from "../../src/load/policy_paths.ts";
import { policySchema } from "../../src/load/policy_schema.ts";

type Node = {
  readonly type?: string;
  readonly entries?: { readonly [key: string]: Node };
  readonly wrapped?: Node;
  readonly item?: Node;
  readonly value?: Node;
  readonly options?: readonly (Node | string)[];
  readonly pipe?: readonly { readonly type?: string }[];
};

/** Every key that takes any text at all: words from a list, and texts of a fixed form, are no paths. */
function textKeys(node: Node, path: string): readonly string[] {
  if (node.type === "string") return isFormed(node) ? [] : [path];
  return [
    ...(node.wrapped === undefined ? [] : textKeys(node.wrapped, path)),
    ...Object.entries(node.entries ?? {}).flatMap(([k, member]) =>
      textKeys(member, path === "" ? k : `${path}.${k}`)
    ),
    ...(node.item === undefined ? [] : textKeys(node.item, `${path}.*`)),
    ...(node.type !== "record" || node.value === undefined ? [] : textKeys(node.value, `${path}.*`)),
    ...(node.options ?? []).flatMap((o) => typeof o === "string" ? [] : textKeys(o, path)),
  ];
}

function isFormed({ pipe = [] }: Node): boolean {
  const inner = pipe[0] as Node | undefined;
  return pipe.some((step) => step.type === "regex") ||
    (inner?.pipe !== undefined && inner.pipe !== pipe && isFormed(inner));
}

// Whoever adds a key that takes text says here that it is no path, or marks it in the schema.
const noPaths: readonly string[] = [
  "name",
  "model.name",
  "model.base_url",
  "model.headers.*",
  "model.choices.*.name",
  "workspace.root",
  "workspace.instructions.*",
  "workspace.protect.*",
  "skills.forced.*.skill",
  "skills.forced.*.verdict.*",
  "skills.forced.*.arguments",
  "skills.triggers.*.patterns.*",
  "skills.triggers.*.match",
  "skills.triggers.*.match.*",
  "skills.triggers.*.no_match",
  "skills.triggers.*.no_match.*",
  "skills.disabled.*",
  "skills.boxes.*",
  "permissions.risky_options.*",
  "permissions.sets.*.*",
  "sandbox.read.*",
  "sandbox.write.*",
  "sandbox.hide.*",
  "sandbox.boxes.*.sockets.*",
  "sandbox.boxes.*.read.*",
  "sandbox.boxes.*.write.*",
  "sandbox.boxes.*.note",
  "tools.enabled.*",
  "mcp_servers.*.env.*",
  "mcp_servers.*.env.*.prefix",
  "mcp_servers.*.url",
  "mcp_servers.*.headers.*",
  "mcp_servers.*.headers.*.prefix",
  "mcp_servers.*.box",
  "secrets.redact.patterns.*",
  "output.verdict_field",
  "server.listen",
  "server.hosts.*",
  "server.origins.*",
  "server.workspaces.*",
];

test("every key of a policy that takes text is marked as a path, or known to be none", () => {
  const marked = pathKeys.map((k) => k.path.join("."));
  const isMarked = (key: string) => marked.some((m) => key === m || key === `${m}.*`);
  const rules = /^(permissions\.(deny|ask|allow|delegate)|skills\.forced\.\*\.(before|evidence))\.\*/;
  const found = textKeys(policySchema as unknown as Node, "").filter((key) =>
    !isMarked(key) && !rules.test(key)
  );
  assertEquals([...new Set(found)], noPaths);
});

test("what is marked", () => {
  assertEquals(pathKeys.map((k) => `${k.path.join(".")} ${k.role}`), [
    "model.api_key.file key",
    "model.api_key.command program",
    "model.script script",
    "model.cassette cassette",
    "skills.sources.*.path skills",
    "skills.secrets.*.*.file key",
    "skills.secrets.*.*.command program",
    "mcp_servers.*.command program",
    "mcp_servers.*.env.*.file key",
    "mcp_servers.*.headers.*.file key",
    "audit.dir log",
    "audit.heads log",
    "audit.key.file key",
    "audit.key.command program",
    "output.schema schema",
    "server.token_file key",
    "server.profiles.* policy",
  ]);
});
