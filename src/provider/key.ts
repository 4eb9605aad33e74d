// The model's key, from where the policy says it is. It stands in no message.
import { ModelFailure } from "../agent/ports.ts";
import type { KeySource } from "../core/policy.ts";
import { describeSource, readSecret, type SecretSite } from "../load/secret.ts";

/** The key; `again` runs a command anew. Throws ModelFailure `no_key`. */
export type KeyReader = (how?: "again") => Promise<string>;

/** A variable and a file are read at each call, a command is run once. */
export function keyReader(source: KeySource, site: SecretSite): KeyReader {
  const read = async () => {
    const secret = await readSecret(source, site);
    if (!secret.ok) throw noKey(source, secret.found);
    return usable(secret.text, source);
  };
  if (!("command" in source)) return read;
  let known: Promise<string> | undefined;
  return (how) => {
    if (known === undefined || how === "again") {
      const asked = known = read();
      // A failure is not kept.
      asked.catch(() => known === asked && (known = undefined));
    }
    return known;
  };
}

function usable(text: string, source: KeySource): string {
  const key = text.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw noKey(source, "holds several lines or characters that no key has");
  return key;
}

function noKey(source: KeySource, found: string): ModelFailure {
  const hint = "env" in source
    ? `set \`${source.env}\` to the key, or name another place in \`model.api_key\``
    : "file" in source
    ? `put the key, and nothing else, into \`${source.file}\`, or name another place in \`model.api_key\``
    : "the command must print the key, and nothing else, and end with status 0; it sees only PATH";
  return new ModelFailure("no_key", `no key for the model: ${describeSource(source)} ${found}`, { hint });
}
