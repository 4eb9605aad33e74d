// What is redacted in a session: known at the start from policy and environment, and grows with every key that is read.
import type { Policy } from "../core/policy.ts";
import { redactText, redactValue, settledLength } from "../core/redact.ts";
import { makeRedactor } from "../load/redactor.ts";

export type Secrets = {
  use(policy: Policy): void;
  add(key: string): void;
  redact(text: string): string;
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
  const make = () => makeRedactor({ redact: settings, env, secrets: keys, aliases });
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
    redactValue: (value) => redactValue(redactor, value),
    settled: (text) => settledLength(redactor, text),
  };
}
