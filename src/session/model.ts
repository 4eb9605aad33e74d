// The one place where a provider is chosen, by what the policy says, never by what the environment holds.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Model } from "../agent/ports.ts";
import { choiceNames, chooseModel } from "../core/model_choice.ts";
import type { Policy } from "../core/policy.ts";
import type { Loaded } from "../core/problem.ts";
import { codeOf, messageOf } from "../core/thrown.ts";
import { machineFolder, projectPolicy, type Surroundings, userFolder } from "../load/locate.ts";
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
      `\`${name}\` is no model of this policy, which has ${names}`,
      "name one of these, or add it to `model.choices`",
    );
  }
  return { ok: true, value: { ...settings, policy: { ...policy, model } }, problems: [] };
}

export async function makeModel(
  { policy, surroundings }: Pick<Settings, "policy" | "surroundings">,
  options: ModelOptions,
): Promise<Loaded<Model>> {
  const settings = policy.model;
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
  if (settings.name === "") return noModel(policy, surroundings);
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

function noModel({ files, root }: Policy, surroundings: Surroundings): Loaded<never> {
  const id = "the exact id of a model";
  if (files.length > 0) return fault("no-model", "the policy names no model", `set model.name to ${id}`);
  const user = join(userFolder(surroundings), "policy.yaml");
  return fault(
    "no-policy",
    `no policy file was found, and so no model: ${
      noPolicyFiles(root, surroundings)
    }; what is built in holds: ` +
      "reading is allowed, all else is asked, commands run in the sandbox",
    `make one with \`mkdir -p ${word(dirname(user))} && printf 'version: 1\\nmodel: {name: MODEL}\\n' > ${
      word(user)
    }\`, ` +
      `with ${id} for MODEL, or name one with --policy FILE; \`writ help policy\` shows more, \`writ demo\` needs none`,
  );
}

function word(path: string): string {
  return /^[\w/.@:-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** Where policy files were looked for, when there were none. */
export function noPolicyFiles(root: string, surroundings: Surroundings): string {
  const [machine, user] = [machineFolder(surroundings), userFolder(surroundings)].map((f) =>
    join(f, "policy.yaml")
  );
  const project = projectPolicy(root);
  const none = `there is neither \`${machine}\` nor \`${user}\`, nor a \`policy.d/*.yaml\` beside them`;
  return existsSync(project)
    ? `${none}, and \`${project}\` does not count, since the workspace is not trusted`
    : `${none}, nor \`${project}\``;
}

async function scripted(file: string): Promise<Loaded<Model>> {
  const { loadScript, scriptModel } = await import("../provider/script.ts");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    return codeOf(error) === "ENOENT"
      ? fault(
        "no-script",
        `there is no script \`${file}\``,
        "the path of `model.script` is relative to its policy file, that of --script to the current folder",
      )
      : fault("no-script", `the script \`${file}\` cannot be read: ${codeOf(error) ?? messageOf(error)}`);
  }
  const replies = loadScript(text, file);
  return replies.ok ? { ok: true, value: scriptModel(replies.value), problems: [] } : replies;
}
