// Which policy files the layers have, and reading one when it may be read: a regular file, within the cap, UTF-8, and of the machine layer only what root
// alone can write.
import { lstatSync, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { compareText } from "../core/collection.ts";
import type { Loaded, Problem } from "../core/problem.ts";
import { codeOf, messageOf } from "../core/thrown.ts";
import { readWhole } from "./file_head.ts";
import { isMissing, isOn, lstat, machineFolder, type Surroundings, userFolder } from "./locate.ts";
import { policyCap, type PolicyLayer } from "./policy_file.ts";

/** A file that is to be read: `named` ones were asked for by name, so that they must be there. */
export type PolicySource = { readonly layer: PolicyLayer; readonly path: string; readonly named: boolean };

export type PolicyBytes = {
  readonly layer: PolicyLayer;
  readonly path: string;
  readonly real: string;
  readonly bytes: Uint8Array;
  readonly text: string;
};

/**
 * Policy files of machine and user layer, in the order in which they are read. `--policy` files take the place of the user
 * layer, else the file of WRIT_POLICY does. Which of the others exist is seen when they are read.
 */
export function policySources(at: Surroundings, named: readonly string[]): Loaded<readonly PolicySource[]> {
  const problems: Problem[] = [];
  const sources: PolicySource[] = layerSources("machine", machineFolder(at), at, problems);
  const variable = at.env["WRIT_POLICY"];
  if (named.length === 0 && variable === "") {
    problems.push({
      code: "empty-variable",
      severity: "error",
      message: "the environment variable `WRIT_POLICY` is set but empty",
      hint: "unset it, or let it name a policy file",
    });
  }
  const instead = named.length > 0
    ? named
    : variable === undefined || variable === ""
    ? undefined
    : [variable];
  if (instead === undefined) sources.push(...layerSources("user", userFolder(at), at, problems));
  else for (const path of instead) sources.push({ layer: "user", path: resolve(at.cwd, path), named: true });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: sources, problems };
}

function layerSources(
  layer: PolicyLayer,
  folder: string,
  at: Surroundings,
  problems: Problem[],
): PolicySource[] {
  const more = join(folder, "policy.d");
  if (layer === "machine") {
    // Where others may write, they may also have removed a file.
    const fault = machineFault([folder, more].filter((path) => lstat(path) !== undefined), at);
    if (fault !== undefined) problems.push(fault);
  }
  let names: readonly string[] = [];
  try {
    names = readdirSync(more);
  } catch (error) {
    if (!isMissing(error)) problems.push(unreadable(more, error));
  }
  // A file that was meant to deny must not be passed over for its name.
  for (
    const path of [
      join(folder, "policy.yml"),
      ...names.filter((n) => n.endsWith(".yml")).map((n) => join(more, n)),
    ]
  ) {
    if (lstat(path) === undefined) continue;
    problems.push({
      code: "wrong-name",
      severity: "error",
      message: `\`${path}\` would not be read`,
      hint: "rename it to end in `.yaml`, or remove it",
    });
  }
  const files = names.filter((name) => name.endsWith(".yaml") && !name.startsWith(".")).sort(compareText);
  return [join(folder, "policy.yaml"), ...files.map((name) => join(more, name))].map((path) => ({
    layer,
    path,
    named: false,
  }));
}

/** The bytes of a policy file; undefined when it is not there and need not be. Nothing above the cap is read. */
export function readPolicyFile(source: PolicySource, at: Surroundings): Loaded<PolicyBytes | undefined> {
  const { layer, path } = source;
  const fail = (problem: Problem): Loaded<never> => ({ ok: false, problems: [problem] });
  try {
    const real = realpathSync(path);
    const fault = kindFault(path, statSync(real)) ??
      (layer === "machine" ? machineFault([path, real], at) : undefined);
    if (fault !== undefined) return fail(fault);
    const whole = readWhole(real, policyCap);
    if (!whole.ok) return fail(tooLarge(path, whole.size));
    const text = decode(whole.bytes);
    if (text !== undefined) {
      return { ok: true, value: { layer, path, real, bytes: whole.bytes, text }, problems: [] };
    }
    return fail({
      code: "not-utf8",
      severity: "error",
      message: "the policy file is not UTF-8 text",
      at: { file: path, line: 1, col: 1 },
      hint: "save it as UTF-8",
    });
  } catch (error) {
    if (!isMissing(error)) return fail(unreadable(path, error));
    const dangling = lstat(path) !== undefined;
    if (!source.named && !dangling) return { ok: true, value: undefined, problems: [] };
    return fail({
      code: "file-missing",
      severity: "error",
      message: dangling ? `the link \`${path}\` leads nowhere` : `there is no policy file \`${path}\``,
      hint: "check the path given by `--policy` or `WRIT_POLICY`; `writ help policy` shows a first policy",
    });
  }
}

function kindFault(path: string, stat: Stats): Problem | undefined {
  if (stat.isDirectory()) {
    return {
      code: "not-a-file",
      severity: "error",
      message: `\`${path}\` is a folder`,
      expected: "a policy file",
      hint: `name the file in it, such as \`${join(path, "policy.yaml")}\``,
    };
  }
  if (!stat.isFile()) {
    return {
      code: "not-a-file",
      severity: "error",
      message: `\`${path}\` is not a regular file`,
      expected: "a policy file",
    };
  }
  return undefined;
}

function tooLarge(path: string, bytes: number): Problem {
  return {
    code: "too-large",
    severity: "error",
    message: `the policy file has ${bytes} bytes`,
    at: { file: path, line: 1, col: 1 },
    expected: `at most ${policyCap}`,
  };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Why a machine file is not to be trusted: it, a folder above it, or what its links lead to belongs to or can be written by
 * somebody else than root. Access control lists are not looked at, nor anything on Windows.
 */
function machineFault(paths: readonly string[], at: Surroundings): Problem | undefined {
  if (isOn(at, "win32")) return undefined;
  const { uid, top } = at.machineOwner ?? { uid: 0, top: "/" };
  for (const path of paths) {
    for (let step = path;; step = dirname(step)) {
      const stat = lstatSync(step);
      // The mode of a link says nothing; who owns it and its folder can exchange it.
      const writable = !stat.isSymbolicLink() && (stat.mode & 0o022) !== 0;
      if (stat.uid !== uid || writable) {
        const owner = stat.uid !== uid
          ? `belongs to user ${stat.uid}`
          : `can be written by others (mode ${(stat.mode & 0o7777).toString(8)})`;
        return {
          code: "machine-file-writable",
          severity: "error",
          message: `\`${step}\` ${owner}, so the machine policy \`${path}\` is not the machine's alone`,
          expected: "an owner root and no write permission for group and others",
          hint: `chown root \`${step}\` and chmod go-w it`,
        };
      }
      if (step === top || step === dirname(step)) break;
    }
  }
  return undefined;
}

function unreadable(path: string, error: unknown): Problem {
  const code = codeOf(error) ?? messageOf(error);
  return {
    code: "unreadable",
    severity: "error",
    message: `\`${path}\` cannot be read (${code})`,
    hint: "a policy that cannot be read is not passed over; mend its permissions or remove it",
  };
}
