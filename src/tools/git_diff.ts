// git_diff: what changed, as git tells it, without the files that rules keep from being read.
import type { Tool, ToolContext, ToolOutcome } from "../agent/ports.ts";
import type { Json } from "../core/message.ts";
import { isWithin } from "../core/path.ts";
import { plural } from "../core/plural.ts";
import { capText } from "../core/text.ts";
import { flagArg, textArg } from "./arguments.ts";
import { type Git, gitFailed, openGit } from "./git.ts";
import { inspectPath, judgedPath } from "./judged_path.ts";
import { done, failed, readRefused, showName, showPath } from "./tool_outcome.ts";

export const gitDiff: Tool = {
  name: "git_diff",
  description:
    "Unified diff of changes. Default: HEAD against the working tree, so staged and unstaged together.",
  inputSchema: {
    type: "object",
    properties: {
      ref: { type: "string", description: "commit, or range such as main...HEAD" },
      path: { type: "string", description: "only this file or folder" },
      staged: { type: "boolean", description: "against the index" },
    },
    additionalProperties: false,
  },
  inspect: (args, place) => inspectPath("git_diff", "read", args, textArg(args, "path") ?? place.root, place),
  async run(args, at) {
    const leads = judgedPath(args, textArg(args, "path") ?? at.root, at);
    if (!leads.ok) return leads;
    if (!at.mayRead(leads.path)) return readRefused(leads.path, at);
    if (!isWithin(leads.path, at.root)) {
      return failed(
        "outside",
        `\`${showPath(leads.path, at)}\` is outside of the workspace; git_diff compares only what is in it`,
      );
    }
    const opened = await openGit(at);
    if (!opened.ok) return opened;
    const { git, top } = opened;
    const sides = await sidesOf(textArg(args, "ref"), flagArg(args, "staged"), git);
    if (!sides.ok) return sides;
    return await diff(git, top, sides, leads.path, at);
  },
};

type Sides = {
  readonly ok: true;
  /** Options and commit ids; nothing that the model wrote. */
  readonly args: readonly string[];
  /** What is compared, for people. */
  readonly shown: string;
  readonly workingTree: boolean;
};
type Failed = ToolOutcome & { readonly ok: false };

// Only ids of commits reach git: a name could be an option, and `commit:file` would get around the rules on paths.
async function sidesOf(ref: string | undefined, staged: boolean, git: Git): Promise<Sides | Failed> {
  const cached = staged ? ["--cached"] : [];
  const right = staged ? "the index" : "the working tree";
  if (ref === undefined) {
    const head = await commitOf("HEAD", git);
    if (typeof head === "string") {
      return { ok: true, args: [...cached, head], shown: `HEAD and ${right}`, workingTree: !staged };
    }
    if (head.code !== "unknown_ref") return head;
    return {
      ok: true,
      args: ["--cached"],
      shown: "nothing (there is no commit yet) and the index",
      workingTree: true,
    };
  }
  const range = /^(.*?)(\.\.\.?)(.*)$/.exec(ref);
  if (range !== null && staged) {
    return failed("bad_ref", `\`${ref}\` is a range; \`staged\` compares one commit with the index`);
  }
  const names = range === null ? [ref] : [range[1] || "HEAD", range[3] || "HEAD"];
  const commits: string[] = [];
  for (const name of names) {
    const commit = await commitOf(name, git);
    if (typeof commit !== "string") return commit;
    commits.push(commit);
  }
  if (range === null) {
    return { ok: true, args: [...cached, ...commits], shown: `${ref} and ${right}`, workingTree: !staged };
  }
  return { ok: true, args: [commits.join(range[2])], shown: names.join(" and "), workingTree: false };
}

async function commitOf(name: string, git: Git): Promise<string | Failed> {
  if (name === "" || name.startsWith("-") || /[\s:\p{Cc}]/u.test(name)) {
    return failed(
      "bad_ref",
      `\`${showName(name)}\` is no commit: expected a name such as main, HEAD~1 or a commit id`,
    );
  }
  const found = await git(["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`]);
  const id = found.stdout.trim();
  if (found.exit === 0 && /^[0-9a-f]{40,64}$/.test(id)) return id;
  if (found.cancelled || found.timedOut || found.failure !== undefined) return gitFailed(found);
  return failed(
    "unknown_ref",
    `there is no commit \`${showName(name)}\` here: expected a branch, a tag or a commit id`,
  );
}

const plainDiff = [
  "--no-ext-diff",
  "--no-textconv",
  "--no-color",
  "--no-relative",
  "--submodule=short",
  "--ignore-submodules=dirty",
];
const mostFiles = 1000;

async function diff(
  git: Git,
  top: string,
  sides: Sides,
  path: string,
  at: ToolContext,
): Promise<ToolOutcome> {
  const within = path === at.root ? "." : `:(literal)${path.slice(at.root.replace(/\/$/, "").length + 1)}`;
  const listed = await git([
    "diff",
    ...plainDiff,
    "--numstat",
    "-z",
    "--no-renames",
    ...sides.args,
    "--",
    within,
  ]);
  if (listed.exit !== 0) return gitFailed(listed);
  const files = numstat(listed.stdout).map((f) => ({
    ...f,
    path: top === "/" ? `/${f.name}` : `${top}/${f.name}`,
  }));
  // Git cannot be asked for a name whose bytes were lost in reading it: such a change would be missing without a word.
  const unnamed = files.filter((f) => f.name.includes("\ufffd"));
  const readable = files.filter((f) => !unnamed.includes(f) && at.mayRead(f.path));
  const refused = files.filter((f) => !at.mayRead(f.path)).map((f) => showPath(f.path, at));
  const notes: string[] = [];
  if (unnamed.length > 0) {
    const names = some(unnamed.map((f) => showPath(f.path, at)));
    notes.push(`changed but not shown, since their names are not UTF-8: ${names}; rename them to see them`);
  }
  if (refused.length > 0) notes.push(`left out because rules refuse reading them: ${some(refused)}`);
  const untracked = sides.workingTree ? await untrackedFiles(git, within) : [];
  if (untracked.length > 0) notes.push(`untracked, so in no diff: ${some(untracked)}`);
  const data = { files: readable.length, leftOut: refused, untracked: untracked.length };
  const whole = unnamed.length === 0;
  if (readable.length === 0) return noDifference(sides, path, { notes, whole }, data, at);
  const counts = readable.map((f) => `${f.added}\t${f.removed}\t${showPath(f.path, at)}`);
  if (listed.cut || readable.length > mostFiles) {
    notes.unshift(
      `${
        plural(readable.length, "file")
      } differ between ${sides.shown}, too many for one diff: narrow the path`,
    );
    return done(`${counts.slice(0, 200).join("\n")}\n${brackets(notes)}`, { data, partial: true });
  }
  const specs = readable.map((f) => `:(top,literal)${f.name}`);
  const result = await git([
    "diff",
    ...plainDiff,
    "--src-prefix=a/",
    "--dst-prefix=b/",
    ...sides.args,
    "--",
    ...specs,
  ]);
  if (result.exit !== 0) return gitFailed(result);
  // The list may hold files of which only the times differ.
  if (result.stdout === "") return noDifference(sides, path, { notes, whole }, data, at);
  const { text, cut } = capText(result.stdout, at.shell.maxOutput);
  if (cut) {
    notes.unshift(
      `cut: narrow the path; lines added and removed in each file:\n${
        capText(counts.join("\n"), 8000).text
      }\n`,
    );
  }
  const partial = cut || result.cut || !whole;
  return done(text + (notes.length === 0 ? "" : `${text.endsWith("\n") ? "" : "\n"}${brackets(notes)}`), {
    data,
    ...(partial ? { partial } : {}),
  });
}

function noDifference(
  sides: Sides,
  path: string,
  { notes, whole }: { readonly notes: readonly string[]; readonly whole: boolean },
  data: Json,
  at: ToolContext,
): ToolOutcome {
  const where = path === at.root ? "" : ` in ${showPath(path, at)}`;
  const hint = "give a ref such as HEAD~1 or main...HEAD to look further back";
  const none = whole ? "no differences" : "no differences that can be shown";
  return done(brackets([`${none} between ${sides.shown}${where}; ${hint}`, ...notes]), {
    data,
    partial: true,
  });
}

function brackets(notes: readonly string[]): string {
  return notes.map((note) => `[${note}]`).join("\n");
}

function some(names: readonly string[]): string {
  return names.length <= 20
    ? names.join(", ")
    : `${names.slice(0, 20).join(", ")} and ${names.length - 20} more`;
}

// `added TAB removed TAB name NUL`; a binary file has dashes.
function numstat(text: string) {
  return text.split("\0").flatMap((row) => {
    const [added, removed, ...name] = row.split("\t");
    return added === undefined || removed === undefined || name.length === 0
      ? []
      : [{ added, removed, name: name.join("\t") }];
  });
}

async function untrackedFiles(git: Git, within: string): Promise<readonly string[]> {
  const found = await git([
    "ls-files",
    "--others",
    "--exclude-standard",
    "--directory",
    "--no-empty-directory",
    "-z",
    "--",
    within,
  ]);
  return found.exit === 0 ? found.stdout.split("\0").filter((name) => name !== "").map(showName) : [];
}
