// What a message says about skills, before it becomes a turn: load these, answer about them, or a slip.
import type { Requested } from "../agent/triggers.ts";
import { availableNames, noSuchSkill, parseSkillMessage, userNames } from "../core/trigger.ts";
import { findSkills, listSkills, type SkillView } from "./skill_list.ts";

export type Asked =
  | { readonly kind: "turn"; readonly message: string; readonly skills: readonly Requested[] }
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "clear"; readonly name?: string }
  | { readonly kind: "reload" }
  | { readonly kind: "fault"; readonly message: string };

/** `options` are names given beside the message (`--skill`), loaded first. */
export function askSkills(view: SkillView, message: string, options: readonly string[]): Asked {
  const names = userNames(view.catalog);
  const unknown = options.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    return { kind: "fault", message: noSuchSkill(unknown, view.catalog, "user") };
  }
  const beside = options.map((name) => ({ name, arguments: "" }));
  const parsed = parseSkillMessage(message, names);
  switch (parsed.kind) {
    case "none":
      return {
        kind: "turn",
        message: message === "" ? `/skill ${options.join(" ")}` : message,
        skills: beside,
      };
    case "load":
      return {
        kind: "turn",
        message,
        skills: [...beside, { name: parsed.name, arguments: parsed.arguments }],
      };
    case "list":
      return { kind: "answer", text: listSkills(view) };
    case "find":
      return { kind: "answer", text: findSkills(view.catalog, parsed.query) };
    case "clear":
      return parsed;
    case "reload":
      return parsed;
    case "unknown":
      return {
        kind: "fault",
        message: parsed.word === ""
          ? `\`/skill\` needs a name; ${availableNames(names)}`
          : noSuchSkill(parsed.word, view.catalog, "user"),
      };
  }
}
