// What is legal in a policy and cannot have been meant, as it stands on this machine: skills, folders and files that are not
// there, and commands that this version refuses.
import { existsSync } from "node:fs";
import { boundedEvidence } from "../core/gate_bound.ts";
import { plural } from "../core/plural.ts";
import { type Position, type Problem, showProblems } from "../core/problem.ts";
import { skillModel } from "../core/model_choice.ts";
import type { Rule } from "../core/rule.ts";
import { escapeLine } from "../core/text.ts";
import { misspeltVerdicts, unknownNames } from "../core/unknown_names.ts";
import { compileAllowedTool } from "../load/allowed_tool.ts";
import { boundPlace } from "../load/bound_place.ts";
import { readInstructions } from "../load/instructions.ts";
import { inOrder } from "../load/policy_merge.ts";
import { readSkillBody } from "../load/skill_body.ts";
import { placeOf } from "../session/agent_parts.ts";
import { type LoadedCatalog, mayLackSkills } from "../session/catalog.ts";
import type { Context } from "./command.ts";
import type { Settings } from "../session/settings.ts";

/** `noSandbox`: why no command can run on this machine. Warnings, and an error where nothing can be answered: a script that is the model and is not there. */
export function doubts(
  settings: Settings,
  loaded: LoadedCatalog,
  noSandbox: string | undefined,
): readonly Problem[] {
  return [
    ...unknownSkills(settings, loaded),
    ...unknownModels(settings, loaded),
    ...gateBounds(settings, loaded),
    ...absentFolders(settings),
    ...absentScript(settings),
    ...(noSandbox === undefined ? [] : refusedCommands(settings, noSandbox)),
    ...(noSandbox === undefined ? [] : refusedServers(settings, noSandbox)),
    ...cutInstructions(settings),
  ];
}

/** Says the warnings of a policy on stderr, for the start of a run; errors are for whoever starts it. `noSandbox` as above. */
export function sayWarnings(
  { output }: Context,
  settings: Settings,
  found: readonly Problem[],
  loaded: LoadedCatalog,
  noSandbox: string | undefined,
): void {
  const warnings = [...found, ...doubts(settings, loaded, noSandbox)].filter((p) => p.severity === "warning");
  for (const line of showProblems(inOrder(warnings, settings.policy.files))) {
    output.note(output.paint.yellow(output.safe(line)));
  }
}

function unknownSkills(settings: Settings, { catalog }: LoadedCatalog): readonly Problem[] {
  const { policy } = settings;
  return [
    ...(mayLackSkills(settings) ? [] : unknownNames(policy, catalog)),
    ...misspeltVerdicts(policy.gates, (name) => {
      const skill = catalog.get(name);
      const read = skill === undefined ? undefined : readSkillBody(skill);
      return read?.ok === true ? read.body.body : undefined;
    }),
  ];
}

// Skills of others often name a model; one line tells of all.
function unknownModels({ policy }: Settings, { catalog }: LoadedCatalog): Problem[] {
  const unknown = catalog.items.filter((s) => skillModel(policy.model, s.model).unknown === true);
  const [first] = unknown;
  if (first === undefined) return [];
  const shown = unknown.slice(0, 3).map((s) =>
    `\`${escapeLine(s.name)}\` (\`${escapeLine(s.model ?? "")}\`)`
  );
  const more = unknown.length > shown.length ? ` and ${unknown.length - shown.length} more` : "";
  return [warning(
    "unknown-model",
    `${plural(unknown.length, "skill")} ${
      unknown.length === 1 ? "asks" : "ask"
    } for a model that is none of model.choices: ${shown.join(", ")}${more}; the session's model answers`,
    { file: first.file, line: 1, col: 1 },
    { hint: "name a choice as the skill does, or take `model` out of it" },
  )];
}

function gateBounds(settings: Settings, { catalog }: LoadedCatalog): readonly Problem[] {
  const place = placeOf(settings);
  return boundedEvidence({
    policy: settings.policy,
    catalog,
    home: place.home,
    allowedTool: (declared) => compileAllowedTool(declared, place),
    boundAt: (skill) => boundPlace(skill.file),
  });
}

function absentFolders({ policy }: Settings): Problem[] {
  return policy.skills.sources.flatMap((source): Problem[] =>
    source.kind !== "path" || existsSync(source.path) ? [] : [
      warning(
        "absent-folder",
        `\`skills.sources\` names \`${escapeLine(source.path)}\`, which does not exist`,
        source.at,
        {
          hint: "a path is relative to the policy file",
        },
      ),
    ]
  );
}

function absentScript({ policy, origin }: Settings): Problem[] {
  const { provider, script } = policy.model;
  const at = origin.find((o) => o.key === "model.script")?.at;
  // With another provider it has no effect, which is said already.
  if (provider !== "script" || script === undefined || at === undefined || at === "default") return [];
  if (existsSync(script)) return [];
  return [{
    ...warning("absent-file", `\`model.script\` is \`${escapeLine(script)}\`, which does not exist`, at, {
      hint: "a path is relative to the policy file",
    }),
    severity: "error",
  }];
}

function refusedCommands({ policy }: Settings, why: string): Problem[] {
  const rules: readonly Rule[] = [
    ...policy.layers.flatMap((layer) => layer.rules.filter((r) => r.effect === "allow")),
    ...policy.gates.flatMap((gate) => [...gate.before, ...gate.evidence]),
  ].filter((rule) => rule.tools.includes("shell"));
  const [first, ...others] = rules;
  if (first === undefined) return [];
  const more = others.length === 0 ? "" : `, as are ${others.length} more`;
  return [warning(
    "no-sandbox",
    `\`${first.text}\` is about commands${more}, and every command is refused on this machine`,
    first.at,
    { hint: why },
  )];
}

function cutInstructions({ policy, trusted, cwd }: Settings): Problem[] {
  if (!trusted) return [];
  const { root, instructions, model } = policy;
  return readInstructions(root, cwd, instructions, model.contextTokens).flatMap(({ path, leftOut }) =>
    leftOut === 0 ? [] : [{
      code: "instructions-cut",
      severity: "warning",
      message: `\`${escapeLine(path)}\` is too long: the model is not shown the last ${
        plural(leftOut, "byte")
      }`,
      hint:
        "32 KiB of one instruction file are read, and 128 KiB of all; keep what is needed for some tasks only in a skill",
    }]
  );
}

function refusedServers({ policy }: Settings, why: string): Problem[] {
  return policy.mcpServers.filter((s) => s.reach.kind === "command" && s.tools.length > 0).map((server) =>
    warning(
      "no-sandbox",
      `the server \`${server.name}\` is a program, and none is started on this machine`,
      server.at,
      { hint: why },
    )
  );
}

function warning(code: string, message: string, at: Position, more: { readonly hint: string }): Problem {
  return { code, severity: "warning", message, at, ...more };
}
