// The argument that stands for a call where there is room for one text: in rule examples and in `writ explain`.

const names: { readonly [tool: string]: string } = {
  read_file: "path",
  list_files: "path",
  search_text: "path",
  git_diff: "path",
  write_file: "path",
  edit_file: "path",
  shell: "command",
  fetch_url: "url",
  load_skill: "name",
  read_skill_file: "skill",
  complete_skill: "name",
};

export function mainArgument(tool: string): string | undefined {
  return names[tool];
}
