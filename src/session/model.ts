// The one place where a provider is chosen, by what the policy says, never by what the environment holds.
import { readFileSync } from "node:fs";
import type { Model } from "../agent/ports.ts";
import { choiceNames, chooseModel } from "../core/model_choice.ts";
import type { ModelSettings } from "../core/policy.ts";
import type { Loaded } from "../core/problem.ts";
import { messageOf } from "../core/thrown.ts";
import type { ScriptReply } from "../provider/script.ts";
import { fault } from "./fault.ts";
import type { Settings } from "./settings.ts";

export type ModelOptions = {
  readonly env: { readonly [name: string]: string | undefined };
  /** `--script`: replies from this file, whatever the policy's provider is. */
  readonly script?: string;
  /** Replies that are read already. */
  readonly replies?: readonly ScriptReply[];
  /** Told of every key that is read, so that it can be redacted. */
  onKey(key: string): void;
};

/** The settings with the model in force that was asked for by a name of the policy. */
export function withChosenModel(settings: Settings, name: string | undefined): Loaded<Settings> {
  if (name === undefined) return { ok: true, value: settings, problems: [] };
  const { policy } = settings;
  const model = chooseModel(policy.model, name);
  if (model === undefined) {
    const names = choiceNames(policy.model).map((n) => `\`${n}\``).join(", ");
    return fault(
      "unknown-model",
      `\`${name}\` is no model of this policy; there are ${names}`,
      "see model.choices",
    );
  }
  return { ok: true, value: { ...settings, policy: { ...policy, model } }, problems: [] };
}

export async function makeModel(settings: ModelSettings, options: ModelOptions): Promise<Loaded<Model>> {
  if (options.replies !== undefined) {
    const { scriptModel } = await import("../provider/script.ts");
    return { ok: true, value: scriptModel(options.replies), problems: [] };
  }
  const script = options.script ?? (settings.provider === "script" ? settings.script : undefined);
  if (script !== undefined) return await scripted(script);
  if (settings.provider === "script") {
    return fault(
      "no-script",
      "`model.provider` is `script`, but no script is named",
      "set model.script, or give --script FILE",
    );
  }
  if (settings.name === "") {
    return fault("no-model", "the policy names no model", "set model.name to the exact id of a model");
  }
  const [{ anthropicModel }, { keyReader }, { run }] = await Promise.all([
    import("../provider/anthropic.ts"),
    import("../provider/key.ts"),
    import("../sandbox/subprocess.ts"),
  ]);
  const read = keyReader(settings.apiKey, { env: options.env, run });
  const key: typeof read = async (how) => {
    const value = await read(how);
    options.onKey(value);
    return value;
  };
  return { ok: true, value: anthropicModel(settings, { key }), problems: [] };
}

async function scripted(file: string): Promise<Loaded<Model>> {
  const { loadScript, scriptModel } = await import("../provider/script.ts");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    return fault(
      "no-script",
      `the script \`${file}\` cannot be read: ${messageOf(error)}`,
    );
  }
  const replies = loadScript(text, file);
  return replies.ok ? { ok: true, value: scriptModel(replies.value), problems: [] } : replies;
}
