// The built-in tools. A new one is a file of its own and one line here.
import type { Tool } from "../agent/ports.ts";
import { completeSkill } from "./complete_skill.ts";
import { editFile } from "./edit_file.ts";
import { fetchUrl } from "./fetch_url.ts";
import { findSkill } from "./find_skill.ts";
import { gitDiff } from "./git_diff.ts";
import { listFiles } from "./list_files.ts";
import { loadSkill } from "./load_skill.ts";
import { readFile } from "./read_file.ts";
import { readSkillFile } from "./read_skill_file.ts";
import { searchText } from "./search_text.ts";
import { shell } from "./shell.ts";
import { writeFile } from "./write_file.ts";

/** In the order in which a model is offered them; the order is part of what providers cache. */
export const builtinTools: readonly Tool[] = [
  readFile,
  listFiles,
  searchText,
  gitDiff,
  writeFile,
  editFile,
  shell,
  fetchUrl,
  loadSkill,
  readSkillFile,
  completeSkill,
  findSkill,
];

export const toolNames: readonly string[] = builtinTools.map((tool) => tool.name);
