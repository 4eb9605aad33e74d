// What is redacted in a session: known at the start from policy and environment, and grows with every key that is read.
import type { Policy } from "../core/policy.ts";
import { redactText, redactValue, settledLength } from "../core/redact.ts";
import { makeRedactor } from "../load/redactor.ts";

export type Secrets = {
  use(policy: Policy): void;
  add(key: string): void;
  redact(text: string): string;
  /** The same for a policy that may not be in use yet; keys count that are added later as well. */
  under(policy: Policy): (text: string) => string;
  redactValue<T>(value: T): T;
  /** How much of a text that is still growing can be redacted by itself. */
  settled(text: string): number;
};

export function collectSecrets(
  env: { readonly [name: string]: string | undefined },
  aliases: readonly { readonly value: string; readonly as: string }[],
): Secrets {
  const keys: string[] = [];
  let settings: Policy["redact"] = { builtin: true, env: [], patterns: [] };
  const make = (redact = settings) => makeRedactor({ redact, env, secrets: keys, aliases });
  let redactor = make();
  return {
    use(policy) {
      settings = policy.redact;
      redactor = make();
    },
    add(key) {
      if (keys.includes(key)) return;
      keys.push(key);
      redactor = make();
    },
    redact: (text) => redactText(redactor, text),
    under: (policy) => (text) => redactText(make(policy.redact), text),
    redactValue: (value) => redactValue(redactor, value),
    settled: (text) => settledLength(redactor, text),
  };
}
