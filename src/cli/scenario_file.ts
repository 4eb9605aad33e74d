// A scenario file: workspace, policy, skills, messages, scripted replies and approvals. YAML, every fault with its place.
import * as v from "valibot";
import type { Loaded } from "../core/problem.ts";
import { checkValue } from "../load/check_value.ts";
import { parseYaml } from "../load/yaml.ts";
import { scriptSchema } from "../provider/script.ts";

const text = v.string("text");
const files = v.record(text, text, "a mapping of paths to texts");
const approval = v.union([
  v.picklist(["allow", "session", "deny"], "`allow`, `session` or `deny`"),
  v.strictObject({ deny: text }, "a mapping with `deny`"),
], "`allow`, `session`, `deny`, or `{deny: REASON}`");

const schema = v.strictObject({
  workspace: v.exactOptional(
    v.strictObject(
      { git: v.exactOptional(v.boolean("`true` or `false`")), files: v.exactOptional(files) },
      "a mapping",
    ),
  ),
  policy: text,
  project_policy: v.exactOptional(text),
  hosts: v.exactOptional(
    v.record(text, v.array(text, "a list of addresses"), "a mapping of host names to lists of addresses"),
  ),
  skills: v.exactOptional(files),
  user: v.union([text, v.array(text, "a list of messages")], "a message or a list of messages"),
  load: v.exactOptional(v.array(text, "a list of skill names")),
  approvals: v.exactOptional(v.array(approval, "a list of answers")),
  strict: v.exactOptional(v.boolean("`true` or `false`")),
  model: scriptSchema,
}, "a mapping");

export type Scenario = v.InferOutput<typeof schema>;
export type Approval = v.InferOutput<typeof approval>;

const longest = 1024 * 1024;

export function loadScenario(content: string, file: string): Loaded<Scenario> {
  const document = parseYaml(content, file, longest);
  if (!document.ok) return document;
  const problems = checkValue(schema, document.value, {});
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, value: v.parse(schema, document.value.value), problems: [] };
}
