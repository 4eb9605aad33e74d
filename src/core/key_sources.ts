// Where a policy says that keys and tokens are: files that no command may see, and programs that run outside of every box.
import type { ServerValues } from "./mcp.ts";
import type { KeySource, Policy } from "./policy.ts";

/** `key`: the policy's own, such as `model.api_key`. */
export type NamedKey = { readonly key: string; readonly source: KeySource };

/** All of them, in the order of a policy's keys. */
export function keySources(
  { model, skills, mcpServers, audit, server }: Pick<
    Policy,
    "model" | "skills" | "mcpServers" | "audit" | "server"
  >,
): readonly NamedKey[] {
  return [
    { key: "model.api_key", source: model.apiKey },
    ...skills.secrets.map(({ skill, variable, source }) => ({
      key: `skills.secrets.${skill}.${variable}`,
      source,
    })),
    ...mcpServers.flatMap(({ name, reach }) =>
      reach.kind === "command"
        ? valueSources(`mcp_servers.${name}.env`, reach.env)
        : valueSources(`mcp_servers.${name}.headers`, reach.headers)
    ),
    ...(audit.key === undefined ? [] : [{ key: "audit.key", source: audit.key }]),
    ...(server.tokenFile === undefined
      ? []
      : [{ key: "server.token_file", source: { file: server.tokenFile } }]),
  ];
}

function valueSources(key: string, values: ServerValues): readonly NamedKey[] {
  return Object.entries(values).flatMap(([name, value]) =>
    "text" in value ? [] : [{ key: `${key}.${name}`, source: value }]
  );
}

/** Absolute paths. */
export function keyFiles(keys: readonly NamedKey[]): readonly string[] {
  return keys.flatMap(({ source }) => "file" in source ? [source.file] : []);
}

/** Keys of the policy whose program is asked. */
export function keyPrograms(keys: readonly NamedKey[]): readonly string[] {
  return keys.flatMap(({ key, source }) => "command" in source ? [key] : []);
}
