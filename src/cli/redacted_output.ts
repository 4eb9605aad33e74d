// For commands that print what others wrote.
import type { Policy } from "../core/policy.ts";
import { collectSecrets } from "../session/secrets.ts";
import type { Context } from "./command.ts";
import type { Output } from "./output.ts";

/** The same output without what is secret here. */
export function withoutSecrets(context: Context, policy: Policy): Output {
  const secrets = collectSecrets(context.host.env, []);
  secrets.use(policy);
  const { output } = context;
  return {
    ...output,
    result: (text) => output.result(secrets.redact(text)),
    note: (line) => output.note(secrets.redact(line)),
  };
}
