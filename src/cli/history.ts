// What was typed at the prompt of chats before, for the arrow keys: a JSON string a line.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const most = 500;

/** The newest last; empty where there is none, or none that can be read. */
export function readHistory(file: string): readonly string[] {
  try {
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").flatMap(historyLine).slice(-most) : [];
  } catch {
    return [];
  }
}

// One line that was damaged must not cost the others.
function historyLine(line: string): readonly string[] {
  try {
    const text: unknown = JSON.parse(line);
    return typeof text === "string" ? [text] : [];
  } catch {
    return [];
  }
}

export function writeHistory(file: string, history: readonly string[]): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, history.slice(-most).map((t) => `${JSON.stringify(t)}\n`).join(""), { mode: 0o600 });
  } catch {
    // History is a convenience: a chat that ended well does not fail for it.
  }
}
