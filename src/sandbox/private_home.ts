// The home that commands have: one folder per workspace, kept between sessions, and git settings that only say who commits.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type PrivateHome = {
  /** Writable for commands. */
  readonly folder: string;
  /** Readable for them, beside the home and not in it. */
  readonly gitConfig: string;
};

/** Makes both where they are missing. `settings`: the user's own git settings, the first that says something counts. */
export function privateHome(
  state: string,
  root: string,
  settings: readonly string[],
): PrivateHome {
  const name = createHash("sha256").update(root).digest("hex").slice(0, 16);
  const folder = join(state, "homes", name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const gitConfig = join(state, "homes", `${name}.gitconfig`);
  const text = gitSettings(identityOf(settings));
  if (textOf(gitConfig) !== text) writeFileSync(gitConfig, text, { mode: 0o600 });
  return { folder, gitConfig };
}

type Identity = { readonly name?: string; readonly email?: string };

function gitSettings({ name, email }: Identity): string {
  const quoted = (value: string) => `"${value.replace(/["\\]/g, "\\$&")}"`;
  return [
    "[user]",
    ...(name === undefined ? [] : [`\tname = ${quoted(name)}`]),
    ...(email === undefined ? [] : [`\temail = ${quoted(email)}`]),
    // What goes on in the background would be ended with the command.
    "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false",
    // Whose checkout it is does not matter where nothing can be had by its settings.
    "[safe]\n\tdirectory = *",
    "[init]\n\tdefaultBranch = main",
    "[advice]\n\tdetachedHead = false",
    "",
  ].join("\n");
}

// Only plain settings: what is included by a condition is not followed.
function identityOf(files: readonly string[]): Identity {
  const found: { name?: string; email?: string } = {};
  for (const file of files) {
    let inUser = false;
    for (const line of (textOf(file) ?? "").split(/\r?\n/)) {
      const section = /^\s*\[\s*([^\]]*?)\s*\]\s*(.*)$/.exec(line);
      if (section !== null) inUser = section[1]?.toLowerCase() === "user";
      if (!inUser) continue;
      const [, key, value] = /^\s*(name|email)\s*=\s*(.*)$/i.exec(section?.[2] ?? line) ?? [];
      const which = key?.toLowerCase() === "name" ? "name" : key === undefined ? undefined : "email";
      if (which !== undefined && value !== undefined) found[which] ??= plainValue(value);
    }
  }
  return found;
}

function plainValue(text: string): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(text.trim())?.[1];
  const plain = quoted === undefined ? text.replace(/\s[#;].*$/, "") : quoted.replace(/\\(["\\])/g, "$1");
  return plain.replace(/[\0-\x1f]/g, "").trim();
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
