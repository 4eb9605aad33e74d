import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { keyFiles, keyPrograms, keySources } from "../../src/core/key_sources.ts";
import { loadPolicyFile } from "../../src/load/policy_file.ts";
import { mergePolicy } from "../../src/load/policy_merge.ts";
import { pathKeys } from "../../src/load/policy_paths.ts";

function keysOf(yaml: string) {
  const file = loadPolicyFile(`version: 1\n${yaml}`, "/conf/p.yaml", "user", "0.1.0");
  if (!file.ok) throw new Error(JSON.stringify(file.problems));
  const merged = mergePolicy({
    files: [file.value],
    revision: "r",
    root: "/ws",
    home: "/home/u",
    protect: { skillFolders: [], gitFolders: [], own: [] },
  });
  if (!merged.ok) throw new Error(JSON.stringify(merged.problems));
  return keySources(merged.value.policy);
}

const files = `
model: {name: m, api_key: {file: a}}
skills: {secrets: {deploy: {TOKEN: {file: ~/b}}}}
mcp_servers:
  one: {command: [one], tools: [t], env: {A: {file: c}, B: plain, C: {env: X}}}
  two: {url: "https://h.example/", tools: [t], headers: {H: {file: /d, prefix: "Bearer "}}}
audit: {key: {file: e}}
server: {token_file: f}
`;

test("keySources() knows every key of a policy that the schema marks as the file of a key", () => {
  const keys = keysOf(files);
  assertEquals(keyFiles(keys), ["/conf/a", "/home/u/b", "/conf/c", "/d", "/conf/e", "/conf/f"]);
  const named = keys.filter(({ source }) => "file" in source).map(({ key }) => key.split("."));
  const marked = pathKeys.filter((k) => k.role === "key").map(({ path }) =>
    path.at(-1) === "file" ? path.slice(0, -1) : path
  );
  const fits = (key: readonly string[], pattern: readonly (string | number)[]) =>
    key.length === pattern.length && pattern.every((step, at) => step === "*" || step === key[at]);
  assertEquals(marked.filter((pattern) => !named.some((key) => fits(key, pattern))), []);
});

test("keyPrograms() names the keys whose programs are asked", () => {
  const text = "model: {name: m, api_key: {command: [/bin/k]}}\n" +
    "skills: {secrets: {deploy: {TOKEN: {command: [/bin/k]}}}}\naudit: {key: {command: [/bin/k]}}\n";
  assertEquals(keyPrograms(keysOf(text)), ["model.api_key", "skills.secrets.deploy.TOKEN", "audit.key"]);
  assertEquals(keyPrograms(keysOf(files)), []);
});
