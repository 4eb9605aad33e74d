// A unified diff for the person who is asked: complete where it can be, and never without saying what is missing.
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import { plural } from "../core/plural.ts";
import { capText } from "../core/text.ts";
import { lineCount } from "./file_text.ts";

const maxChars = 20_000;
/** Changed lines beyond which a minimal diff costs more than it is worth. */
const maxChanges = 1000;

/** `before` undefined: the file is new. At most about 20,000 characters; head and tail are kept. */
export function diffPreview(name: string, before: string | undefined, after: string): string {
  return capText(before === undefined ? newFile(name, after) : changes(name, before, after), maxChars).text;
}

function newFile(name: string, text: string): string {
  if (text === "") return `--- /dev/null\n+++ b/${name}\n`;
  const lines = text.replace(/\n$/, "").split("\n").map((line) => `+${line}\n`).join("");
  const end = text.endsWith("\n") ? "" : "\\ No newline at end of file\n";
  return `--- /dev/null\n+++ b/${name}\n@@ -0,0 +1,${lineCount(text)} @@\n${lines}${end}`;
}

function changes(name: string, before: string, after: string): string {
  const patch = createTwoFilesPatch(`a/${name}`, `b/${name}`, before, after, undefined, undefined, {
    context: 3,
    maxEditLength: maxChanges,
    headerOptions: FILE_HEADERS_ONLY,
  });
  if (patch !== undefined) return patch;
  const counts = `${plural(lineCount(before), "line")} replaced by ${plural(lineCount(after), "line")}`;
  return `--- a/${name}\n+++ b/${name}\n[too many changes for a diff: ${counts}; the new text:]\n${after}`;
}
