// The way from the machine's files to the policy in force: machine and user layer, the workspace, whether it is trusted, the
// project layer, and all of them as one. The composition root calls this and nothing beside it.
import { existsSync } from "node:fs";
import { isWithin } from "../core/path.ts";
import type { Policy, SkillSource } from "../core/policy.ts";
import { isError, type Loaded, type Problem } from "../core/problem.ts";
import type { Rule } from "../core/rule.ts";
import { messageOf } from "../core/thrown.ts";
import {
  checkRoot,
  findRoot,
  gitFoldersOf,
  machineFolder,
  projectPolicy,
  realOr,
  resolvePath,
  skillFolders,
  stateFolder,
  type Surroundings,
  userFolder,
} from "./locate.ts";
import { type LoadedFile, loadPolicyFile, type PolicyFile } from "./policy_file.ts";
import { type NamedPath, namedPaths } from "./policy_paths.ts";
import { inOrder, type Merged, mergePolicy, policyRevision, trustSetting } from "./policy_merge.ts";
import { checkExamples, type RuleExample } from "./policy_rules.ts";
import { firstOf, type Origin, perLayer, type Settings } from "./policy_settings.ts";
import { type PolicyBytes, policySources, readPolicyFile } from "./policy_sources.ts";
import { withoutConsequences } from "./sound_part.ts";
import {
  decideTrust,
  readTrust,
  storedTrust,
  storeTrust,
  type TrustAnswer,
  type TrustSetting,
  type WorkspaceContent,
  workspaceContent,
} from "./trust.ts";

export type LoadInput = {
  readonly at: Surroundings;
  /** Of this binary. */
  readonly version: string;
  /** The files of `--policy`, as given. */
  readonly policies: readonly string[];
  /** `--trust` or `--untrusted`. */
  readonly trustFlag?: TrustAnswer;
  /** Asks whoever sits at the terminal; absent: nobody does. The answer is kept for exactly this content. */
  readonly askTrust?: (root: string, content: WorkspaceContent) => Promise<TrustAnswer>;
  /** Decides the examples of rules against the merged policy; absent: they are not decided. */
  readonly matchesExample?: (policy: Policy) => (rule: Rule, example: string) => boolean;
  /** Problems that show only beside the skills; called when there are others, so that all are said at once. */
  readonly further?: (policy: Policy, trust: TrustAnswer) => readonly Problem[];
};
export type LoadedPolicy = {
  readonly policy: Policy;
  readonly origin: readonly Origin[];
  readonly examples: readonly RuleExample[];
  /** Sentences for the start of a run: what was left out, and why. */
  readonly notices: readonly string[];
  /** What was decided, for `policy` as it is: an untrusted workspace gives no sources, instructions or rules. */
  readonly trust: TrustAnswer;
  readonly content: WorkspaceContent;
};

/**
 * Reads everything again on every call, so that a turn can start with what is there now. All Problems of machine and user
 * layer come at once, then those of the workspace; nothing of the workspace is interpreted before it is trusted.
 */
export async function loadPolicy(input: LoadInput): Promise<Loaded<LoadedPolicy>> {
  const outer = loadOuter(input);
  if (!outer.ok) return outer;
  const { root, files, inside } = outer.value;
  const project = readPolicyFile({ layer: "project", path: projectPolicy(root), named: false }, input.at);
  // What cannot be read may hold denies; whether that matters is known once trust is decided.
  const brought = project.ok ? project.value : undefined;
  let settled = await settleTrust(input, outer.value, brought, []);
  const problems: Problem[] = [...outer.problems];
  const read = [...outer.value.read];
  let all: readonly PolicyFile[] = files;
  if (settled.trust === "trusted") {
    if (!project.ok) problems.push(...project.problems);
    const within = [...inside, ...(brought === undefined ? [] : [brought])];
    const loaded = within.map((bytes) => loadInside(bytes, input.version));
    if (loaded.some((l) => !l.ok)) {
      return allFaults(input, { root, files, loads: loaded, problems, trust: "trusted" });
    }
    problems.push(...loaded.flatMap((l) => l.problems));
    const parsed = loaded.flatMap((l) => (l.ok ? [l.value] : []));
    all = [...files, ...parsed];
    read.push(...within);
    settled = await settleNamed(input, outer.value, brought, parsed, settled);
  }
  const { trust, content } = settled;
  const notices = [...settled.notices];
  problems.push(...settled.problems);
  if (trust === "untrusted") {
    problems.push(...untrustedProblems(outer.value, settled, !project.ok || brought !== undefined));
    if (content.items.length > 0) notices.push(leftOut(content));
  }
  if (problems.some(isError)) {
    const decided = settled.unanswered ? {} : { trust };
    return allFaults(input, { root, files: all, loads: [], problems, ...decided });
  }
  return finish(input, { root, files: all, read, trust, content, notices, problems });
}

// A trusted policy of the workspace may name more of the workspace: that is content of its own, and asked about as such.
async function settleNamed(
  input: LoadInput,
  outer: Outer,
  project: PolicyBytes | undefined,
  parsed: readonly PolicyFile[],
  before: Settled,
): Promise<Settled> {
  if (contentOf(input, outer, project, parsed).hash === before.content.hash) return before;
  return await settleTrust(input, outer, project, parsed);
}

type Outer = {
  readonly root: string;
  readonly files: readonly PolicyFile[];
  readonly read: readonly PolicyBytes[];
  /** Files of the user layer that lie in the workspace: not yet interpreted. */
  readonly inside: readonly PolicyBytes[];
  readonly settings: Settings;
  readonly setting: TrustSetting;
  readonly home: string;
};

function loadOuter(input: LoadInput): Loaded<Outer> {
  const home = realOr(input.at.home);
  const sources = policySources(input.at, input.policies);
  if (!sources.ok) return sources;
  const reads = sources.value.map((source) => readPolicyFile(source, input.at));
  const problems: Problem[] = reads.flatMap((r) => r.problems);
  const all = reads.flatMap((r) => r.ok && r.value !== undefined ? [r.value] : []);
  // A file that lies in what is the workspace whatever its own words are must wait for trust.
  const near = findRoot(input.at.cwd, home);
  const waits = (b: PolicyBytes, root: string | undefined) =>
    b.layer === "user" && root !== undefined && isWithin(b.real, root);
  const nearRoot = near.ok ? near.value : undefined;
  const parse = (bytes: PolicyBytes) => ({ bytes, file: loadOne(bytes, input.version) });
  const first = all.filter((b) => !waits(b, nearRoot)).map(parse);
  const settled = rootOf(first.flatMap(({ file }) => soundFile(file)), near, home);
  problems.push(...settled.problems);
  const root = settled.ok ? settled.value : nearRoot;
  // The workspace may turn out to be elsewhere: then nothing speaks against the files that had to wait.
  const late = all.filter((b) => waits(b, nearRoot) && !waits(b, root)).map(parse);
  const parsed = [...first, ...late];
  const inside = all.filter((b) => waits(b, root));
  if (root === undefined || problems.some(isError) || parsed.some((p) => !p.file.ok)) {
    return outerFaults(input, { root, inside, loads: parsed.map((p) => p.file), problems });
  }
  problems.push(...parsed.flatMap((p) => p.file.problems));
  const outside = parsed.filter((p) => !waits(p.bytes, root));
  const files = outside.flatMap((p) => soundFile(p.file));
  const settings: Settings = { files, problems: [], origin: [] };
  return {
    ok: true,
    problems,
    value: {
      root,
      files,
      read: outside.map((p) => p.bytes),
      inside,
      settings,
      setting: trustSetting(settings),
      home,
    },
  };
}

function soundFile(load: LoadedFile): readonly PolicyFile[] {
  return load.ok ? [load.value] : load.rest === undefined ? [] : [load.rest.file];
}

function rootOf(files: readonly PolicyFile[], near: Loaded<string>, home: string): Loaded<string> {
  const settings: Settings = { files, problems: [], origin: [] };
  const written = firstOf(settings, "workspace.root");
  const at = perLayer(settings, "workspace.root")[0]?.at;
  if (written === undefined || written === "auto" || at === undefined) return near;
  const root = checkRoot(resolvePath(written, { file: at.file, home }), home);
  return root.ok ? root : { ok: false, problems: root.problems.map((p) => ({ ...p, at })) };
}

type Faulty = {
  readonly root: string;
  /** Files that are sound. */
  readonly files: readonly PolicyFile[];
  readonly loads: readonly LoadedFile[];
  readonly problems: readonly Problem[];
  /** Absent: not decided. */
  readonly trust?: TrustAnswer;
};

// Goes on with what is sound, to say everything that is wrong at once; nothing comes of it but problems.
function allFaults(input: LoadInput, faulty: Faulty): Loaded<never> {
  const { root, loads } = faulty;
  const problems = [...faulty.problems, ...loads.flatMap((l) => l.problems)];
  const lost = faulty.problems.some(isError) || loads.some((l) => !l.ok && l.rest === undefined);
  // What a file says that nobody could read may be anything.
  const taken = [...(lost ? [[]] : []), ...loads.flatMap((l) => l.ok ? [] : l.rest?.taken ?? [])];
  const files = [...faulty.files, ...loads.flatMap(soundFile)];
  const trust = faulty.trust ?? input.trustFlag;
  // Where the workspace is, and which skills it brings, decides which of them seem to be missing.
  const mayBring = skillFolders("project", input.at, root).some((folder) => existsSync(folder));
  const unsure = lost || taken.some((path) => path[0] === "workspace") || trust === undefined && mayBring;
  const { problems: found } = judge(input, {
    root,
    files,
    read: [],
    trust: trust ?? "untrusted",
    beside: unsure ? "never" : "always",
  });
  return { ok: false, problems: inOrder([...problems, ...withoutConsequences(found, taken, files)], files) };
}

type OuterFaults = Pick<Faulty, "loads" | "problems"> & {
  readonly root: string | undefined;
  readonly inside: readonly PolicyBytes[];
};

// With a workspace that was declared trusted what is wrong with its files is said as well.
function outerFaults(input: LoadInput, { root, inside, loads, problems }: OuterFaults): Loaded<never> {
  if (root === undefined) {
    return { ok: false, problems: [...problems, ...loads.flatMap((l) => l.problems)] };
  }
  const settings: Settings = { files: loads.flatMap(soundFile), problems: [], origin: [] };
  const trusted = input.trustFlag === "trusted" && trustSetting(settings) !== "untrusted";
  const project = readPolicyFile({ layer: "project", path: projectPolicy(root), named: false }, input.at);
  const brought = project.ok && project.value !== undefined ? [project.value] : [];
  const within = trusted ? [...inside, ...brought].map((bytes) => loadInside(bytes, input.version)) : [];
  return allFaults(input, {
    root,
    files: [],
    loads: [...loads, ...within],
    problems: [...problems, ...(trusted ? project.problems : [])],
  });
}

function loadOne(bytes: PolicyBytes, version: string): LoadedFile {
  return loadPolicyFile(bytes.text, bytes.path, bytes.layer, version);
}

// A file of the workspace decides neither where the workspace is nor whether it is trusted.
function loadInside(bytes: PolicyBytes, version: string): LoadedFile {
  const loaded = loadOne(bytes, version);
  if (!loaded.ok) return loaded;
  const { workspace } = loaded.value.data;
  const keys = (["root", "trust"] as const).filter((key) => workspace?.[key] !== undefined);
  if (keys.length === 0) return loaded;
  return {
    ok: false,
    problems: keys.map((key) => ({
      code: "not-allowed-in-workspace",
      severity: "error",
      message: `\`workspace.${key}\` may not be set by a policy file that lies in the workspace`,
      at: loaded.value.keyAt(["workspace", key]),
      hint: "move the file out of the workspace, or remove the key",
    })),
  };
}

type Settled = {
  readonly trust: TrustAnswer;
  readonly unanswered: boolean;
  readonly content: WorkspaceContent;
  readonly problems: readonly Problem[];
  readonly notices: readonly string[];
};

async function settleTrust(
  input: LoadInput,
  outer: Outer,
  project: PolicyBytes | undefined,
  parsed: readonly PolicyFile[],
): Promise<Settled> {
  const content = contentOf(input, outer, project, parsed);
  const state = stateFolder(input.at);
  // A workspace must not bring the answers about itself.
  const ownState = isWithin(realOr(state), outer.root);
  const mayStore = content.complete && !ownState;
  const store = mayStore && outer.setting === "ask" ? readTrust(state) : { answers: [], problems: [] };
  const stored = storedTrust(store, outer.root, content.hash);
  const decided = decideTrust({
    setting: outer.setting,
    ...(input.trustFlag === undefined ? {} : { flag: input.trustFlag }),
    ...(stored === undefined ? {} : { stored }),
    interactive: input.askTrust === undefined ? "no" : "yes",
  });
  const problems = [...store.problems];
  const notices: string[] = [];
  if (input.trustFlag === "trusted" && outer.setting === "untrusted") {
    notices.push("--trust has no effect: the policy says that no workspace is trusted");
  }
  if (ownState && outer.setting === "ask") {
    notices.push(`the state folder ${state} lies in the workspace, so answers about trust are not kept`);
  }
  // Nothing is there to trust: what appears later in the session is not trusted either.
  if (decided === "ask" && content.items.length > 0 && input.askTrust !== undefined) {
    const trust = await input.askTrust(outer.root, content);
    if (mayStore) problems.push(...keepAnswer(state, outer.root, content.hash, trust));
    return { trust, unanswered: false, content, problems, notices };
  }
  const trust = decided === "trusted" ? "trusted" : "untrusted";
  return { trust, unanswered: decided === "unanswered" || decided === "ask", content, problems, notices };
}

function keepAnswer(state: string, root: string, hash: string, answer: TrustAnswer): readonly Problem[] {
  try {
    storeTrust(state, { root, hash, answer });
    return [];
  } catch (error) {
    const why = messageOf(error);
    return [{
      code: "trust-store",
      severity: "warning",
      message: `the answer could not be kept: ${why}`,
      hint: "you are asked again",
    }];
  }
}

function contentOf(
  input: LoadInput,
  outer: Outer,
  project: PolicyBytes | undefined,
  parsed: readonly PolicyFile[],
): WorkspaceContent {
  const { root, home } = outer;
  const settings: Settings = { files: [...outer.files, ...parsed], problems: [], origin: [] };
  const instructions = perLayer(settings, "workspace.instructions").flatMap((p) => p.value);
  const named = readPaths(settings, home).filter((p) => isWithin(realOr(p.path), root));
  return workspaceContent({
    root,
    cwd: realOr(input.at.cwd),
    policies: [...outer.inside, ...(project === undefined ? [] : [project])],
    skillFolders: [
      ...skillFolders("project", input.at, root),
      ...named.filter((p) => p.role === "skills").map((p) => p.path),
    ],
    instructions: instructions.length === 0 ? ["AGENTS.md"] : [...new Set(instructions)],
    files: named.filter((p) => p.role !== "skills").map((p) => p.path),
  });
}

// Paths in settings that count only when they lie outside of the workspace or it is trusted; what Writ writes it does not read.
function readPaths(settings: Settings, home: string): readonly NamedPath[] {
  return settings.files.flatMap((file) => namedPaths(file, home)).filter((p) => p.role !== "log");
}

function untrustedProblems(outer: Outer, settled: Settled, hasProject: boolean): readonly Problem[] {
  const hint = settled.unanswered
    ? "answer at a terminal, or pass `--trust` or `--untrusted`"
    : "move it out of the workspace, or trust the workspace";
  const problems: Problem[] = outer.inside.map((b) => ({
    code: "in-untrusted-workspace",
    severity: "error",
    message: `the policy \`${b.path}\` lies in the workspace \`${outer.root}\`, which is not trusted`,
    hint,
  }));
  for (const { path, role, at } of readPaths(outer.settings, outer.home)) {
    // Skills are left out; without the others there is no session as it was meant.
    if (role === "skills" || !isWithin(realOr(path), outer.root)) continue;
    problems.push({
      code: "in-untrusted-workspace",
      severity: "error",
      message: `the ${role} file \`${path}\` lies in the workspace, which is not trusted`,
      at,
      hint,
    });
  }
  if (settled.unanswered && hasProject) {
    problems.push({
      code: "trust-needed",
      severity: "error",
      message: `the workspace \`${outer.root}\` brings a policy, \`${
        projectPolicy(outer.root)
      }\`, and nobody has said whether it is trusted`,
      hint: "pass `--trust` to apply it or `--untrusted` to leave it out, or set `workspace.trust`",
    });
  }
  return problems;
}

function leftOut(content: WorkspaceContent): string {
  const names = content.items.map((item) => item.path);
  const shown = names.length > 5 ? [...names.slice(0, 5), `${names.length - 5} more`] : names;
  return `the workspace is not trusted; left out: ${shown.join(", ")}`;
}

type Parts = Pick<LoadedPolicy, "trust" | "content" | "notices"> & {
  readonly root: string;
  readonly files: readonly PolicyFile[];
  readonly read: readonly PolicyBytes[];
  readonly problems: readonly Problem[];
};

function finish(input: LoadInput, parts: Parts): Loaded<LoadedPolicy> {
  const { trust, content, notices, files } = parts;
  const { policy, merged, problems: found } = judge(input, { ...parts, beside: "if-faulty" });
  const problems = [...parts.problems, ...withoutConsequences(found, [], files)];
  if (problems.some(isError)) return { ok: false, problems };
  const { origin, examples } = merged;
  return { ok: true, value: { policy, origin, examples, notices, trust, content }, problems };
}

type Judged = Pick<Parts, "root" | "files" | "read" | "trust"> & {
  /** Whether what shows only beside the skills is looked for. */
  readonly beside: "always" | "if-faulty" | "never";
};

function judge(
  input: LoadInput,
  { root, files, read, trust, beside }: Judged,
): { readonly policy: Policy; readonly merged: Merged; readonly problems: readonly Problem[] } {
  const { at } = input;
  const result = mergePolicy({
    files,
    revision: policyRevision(read),
    root,
    home: realOr(at.home),
    protect: {
      skillFolders: (["machine", "user", "project"] as const).flatMap((tier) => skillFolders(tier, at, root)),
      gitFolders: gitFoldersOf(root),
      own: [
        machineFolder(at),
        userFolder(at),
        stateFolder(at),
        ...read.flatMap((b) => [b.path, b.real]),
      ],
    },
  });
  const merged = result.ok ? result.value : result.rest;
  const policy = trust === "trusted" ? merged.policy : withoutWorkspace(merged);
  const matches = input.matchesExample?.(policy);
  const problems = [
    ...result.problems,
    ...(matches === undefined ? [] : checkExamples(merged.examples, matches)),
  ];
  const looked = beside === "always" || (beside === "if-faulty" && problems.some(isError));
  const further = looked ? input.further?.(policy, trust) ?? [] : [];
  return {
    policy,
    merged,
    problems: further.length === 0 ? problems : inOrder([...problems, ...further], files),
  };
}

function withoutWorkspace(merged: Merged): Policy {
  const { policy } = merged;
  const inWorkspace = (source: SkillSource) =>
    source.kind === "tier"
      ? source.tier === "project"
      : source.tier === "project" || isWithin(realOr(source.path), policy.root);
  return {
    ...policy,
    instructions: [],
    skills: { ...policy.skills, sources: policy.skills.sources.filter((s) => !inWorkspace(s)) },
  };
}
