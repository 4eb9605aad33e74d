// The body of a skill when it is wanted, and the files attached to it.
import { type Dirent, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, isAbsolute, join } from "node:path";
import { sha256 } from "../disk/sha256.ts";
import { isEmbedded } from "./assets.ts";
import { findCredentials } from "./credentials.ts";
import { readHead, readWhole } from "./file_head.ts";
import { bodyCap, defaultLimits, skippedFolders } from "./skill_dir.ts";
import { parseSkillFile } from "./skill_file.ts";
import { compareText } from "../core/collection.ts";
import { isBelow } from "../core/path.ts";
import { showPosition } from "../core/problem.ts";
import { narrowerTools, type Skill, type SkillBody, type SkillMeta } from "../core/skill.ts";
import { escapeLine } from "../core/text.ts";
import { codeOf, messageOf } from "../core/thrown.ts";

const attachedCap = 200;

export type BodyRead =
  | {
    readonly ok: true;
    readonly body: SkillBody;
    readonly meta: SkillMeta;
    /** What looks like a secret in it, one line each. */
    readonly credentials: readonly string[];
  }
  | {
    readonly ok: false;
    readonly code: "skill_unreadable" | "skill_changed" | "skill_too_large";
    readonly message: string;
    /** The size of one that is too large, and the most that is loaded. */
    readonly skipped?: { readonly bytes: number; readonly cap: number };
  };

/**
 * Reads a skill's file now. `meta` is what its front matter says at this moment, with a bound no wider than the one that
 * the catalog knows. `skill_unreadable`: the file cannot be read, so an earlier body may stand in; `skill_changed`: it is no longer
 * the skill that was asked for; `skill_too_large` names the size and the cap.
 */
export function readSkillBody(skill: Skill): BodyRead {
  try {
    const whole = readWhole(skill.file, bodyCap);
    if (!whole.ok) {
      return {
        ...refused(
          "skill_too_large",
          `\`${skill.file}\` has ${whole.size} bytes; at most ${bodyCap} are loaded`,
        ),
        skipped: { bytes: whole.size, cap: bodyCap },
      };
    }
    const text = new TextDecoder().decode(whole.bytes);
    const parsed = parseSkillFile(text, { file: skill.file, folderName: basename(skill.folder) });
    if (!parsed.ok) {
      return refused(
        "skill_changed",
        `\`${showPosition(parsed.at)}\` is no longer a skill: ${parsed.message}; ${parsed.hint}`,
      );
    }
    if (parsed.meta.name !== skill.name) {
      return refused(
        "skill_changed",
        `\`${skill.file}\` now holds the skill \`${escapeLine(parsed.meta.name)}\`, not \`${
          escapeLine(skill.name)
        }\``,
      );
    }
    const body = text.slice(parsed.bodyStart).replace(/\r\n?/g, "\n");
    const allowedTools = narrowerTools(skill.allowedTools, parsed.meta.allowedTools);
    const { allowedTools: _declared, ...meta } = parsed.meta;
    return {
      ok: true,
      meta: { ...meta, ...(allowedTools === undefined ? {} : { allowedTools }) },
      credentials: findCredentials(text).map(({ kind, line }) =>
        `line ${line} holds what looks like a ${kind}`
      ),
      body: {
        body,
        bytes: Buffer.byteLength(text.slice(parsed.bodyStart)),
        sha256: sha256(whole.bytes),
        files: attachedFiles(skill),
      },
    };
  } catch (error) {
    return refused("skill_unreadable", `\`${skill.file}\` cannot be read: ${reason(error)}`);
  }
}

function refused(
  code: Exclude<BodyRead, { ok: true }>["code"],
  message: string,
): Extract<BodyRead, { ok: false }> {
  return { ok: false, code, message };
}

/** Relative paths with `/`, sorted; links are listed when they lead to a file inside the folder. */
export function attachedFiles(skill: Pick<Skill, "folder" | "file">): readonly string[] {
  const files: string[] = [];
  const queue = [{ inner: "", depth: 0 }];
  for (let next = queue.shift(); next !== undefined && files.length < attachedCap; next = queue.shift()) {
    let entries: Dirent[];
    try {
      entries = readdirSync(join(skill.folder, next.inner), { withFileTypes: true });
    } catch {
      continue;
    }
    for (const entry of entries.sort((a, b) => compareText(a.name, b.name))) {
      const inner = next.inner === "" ? entry.name : `${next.inner}/${entry.name}`;
      if (entry.name.startsWith(".") || skippedFolders.has(entry.name)) continue;
      if (entry.isDirectory() && next.depth < defaultLimits.depth) {
        queue.push({ inner, depth: next.depth + 1 });
      } else if (join(skill.folder, inner) !== skill.file && isInside(skill.folder, inner, entry)) {
        files.push(inner);
      }
    }
  }
  return files.slice(0, attachedCap).sort();
}

function isInside(folder: string, inner: string, entry: Dirent): boolean {
  if (entry.isFile()) return true;
  if (!entry.isSymbolicLink()) return false;
  try {
    const real = realpathSync(join(folder, inner));
    return isBelow(real, folder) && statSync(real).isFile();
  } catch {
    return false;
  }
}

export type AttachedRead =
  | { readonly ok: true; readonly text: string; readonly bytes: number; readonly cut: boolean }
  | { readonly ok: false; readonly code: string; readonly message: string };

/**
 * A text file of the skill's folder: at most `maxBytes` of it, `bytes` is its true size. Codes: `bad_path`, `not_found`,
 * `outside_skill` (by its real path), `not_a_file`, `binary`, `unreadable`.
 */
export function readAttached(skill: Skill, path: string, maxBytes: number): AttachedRead {
  const shown = escapeLine(path);
  const fail = (code: string, message: string): AttachedRead => ({ ok: false, code, message });
  if (
    path === "" || path.includes("\0") || isAbsolute(path) || /^[A-Za-z]:|\\/.test(path) ||
    path.split("/").includes("..")
  ) {
    return fail(
      "bad_path",
      `\`${shown}\` is not a path inside the skill's folder; name it as listed, such as \`references/a.md\``,
    );
  }
  try {
    const written = join(skill.folder, path);
    const real = isEmbedded(written) ? written : realpathSync(written);
    if (!isBelow(real, skill.folder)) {
      return fail("outside_skill", `\`${shown}\` leads out of the skill's folder`);
    }
    const facts = statSync(real);
    if (!facts.isFile()) return fail("not_a_file", `\`${shown}\` is not a regular file`);
    const text = readHead(real, maxBytes, () => false);
    if (isBinary(text)) {
      return fail("binary", `\`${shown}\` is not a text file (${facts.size} bytes)`);
    }
    return { ok: true, text, bytes: facts.size, cut: facts.size > maxBytes };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return fail("not_found", `the skill has no file \`${shown}\``);
    return fail("unreadable", `\`${shown}\` cannot be read: ${reason(error)}`);
  }
}

// A stray byte of an older encoding does not make a text unreadable.
function isBinary(text: string): boolean {
  return text.includes("\0") || (text.match(/\uFFFD/g)?.length ?? 0) > text.length / 100;
}

function reason(error: unknown): string {
  return codeOf(error) ?? messageOf(error);
}
