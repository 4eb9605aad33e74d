// What looks like a credential in a skill's files. Skills are shared and shown to models: they carry no secrets.
import { type Dirent, readdirSync } from "node:fs";
import { join } from "node:path";
import { readStart } from "./file_head.ts";
import { makeRedactor } from "./redactor.ts";
import { compareText } from "../core/collection.ts";

/** `kind` as the redaction names it; `line` from 1. What was found is not repeated. */
export type Credential = { readonly kind: string; readonly line: number };
export type FileCredential = Credential & {
  /** From the skill's folder, with `/`. */
  readonly path: string;
};

const most = 20;
const mostFiles = 1000;
const mostBytes = 1024 * 1024;
const deepest = 8;

const { shapes } = makeRedactor({ redact: { builtin: true, env: [], patterns: [] }, env: {}, secrets: [] });

/** In the order of the text, at most twenty, one a line and kind. */
export function findCredentials(text: string): readonly Credential[] {
  const found: Credential[] = [];
  for (const { kind, marks, pattern } of shapes) {
    if (!marks.some((mark) => text.includes(mark))) continue;
    for (let from = 0; found.length < most;) {
      const span = pattern.find(text.slice(from));
      if (span === undefined || span[1] === span[0]) break;
      const line = text.slice(0, from + span[0]).split("\n").length;
      if (!found.some((f) => f.kind === kind && f.line === line)) found.push({ kind, line });
      from += span[1];
    }
  }
  return found.sort((a, b) => a.line - b.line || compareText(a.kind, b.kind)).slice(0, most);
}

/** In every file of a skill's folder, hidden ones too; links are not followed, and of a large file only its beginning is read. */
export function findSkillCredentials(folder: string): readonly FileCredential[] {
  const found: FileCredential[] = [];
  for (const path of filesOf(folder, "", 0).slice(0, mostFiles)) {
    try {
      const text = new TextDecoder().decode(readStart(join(folder, path), mostBytes).bytes);
      found.push(...findCredentials(text).map((f) => ({ path, ...f })));
    } catch {
      // What cannot be read shows nothing.
    }
  }
  return found;
}

function filesOf(folder: string, inner: string, depth: number): readonly string[] {
  if (depth > deepest) return [];
  let entries: Dirent[];
  try {
    entries = readdirSync(join(folder, inner), { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.sort((a, b) => compareText(a.name, b.name)).flatMap((entry) => {
    const path = inner === "" ? entry.name : `${inner}/${entry.name}`;
    if (entry.isFile()) return [path];
    return entry.isDirectory() && entry.name !== ".git" && entry.name !== "node_modules"
      ? filesOf(folder, path, depth + 1)
      : [];
  });
}
