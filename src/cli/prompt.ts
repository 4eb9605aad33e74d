// Where a run's prompt comes from: the arguments, `-`, or a pipe. A silent pipe never holds up a run that has a prompt.
import { Buffer } from "node:buffer";
import process from "node:process";
import { stdinKind } from "./host.ts";

/** More than this is not a prompt. */
const longest = 1024 * 1024;

export type Prompt =
  | { readonly ok: true; readonly text: string; readonly note?: string }
  | { readonly ok: false; readonly message: string };

/** `-` among the words stands for standard input; without words a pipe or file is the prompt. */
export async function readPrompt(words: readonly string[]): Promise<Prompt> {
  const kind = stdinKind();
  const wantsInput = words.includes("-");
  const text = words.filter((w) => w !== "-").join(" ").trim();
  if (!wantsInput && text !== "") {
    const unread = kind === "file"
      ? { note: "standard input is not read; add `-` to append it to the prompt" }
      : {};
    return { ok: true, text, ...unread };
  }
  if (!wantsInput && kind !== "pipe" && kind !== "file") {
    return { ok: false, message: "no prompt; expected words, `-`, or a text on standard input" };
  }
  const input = await readInput();
  if (input === undefined) {
    return { ok: false, message: `the text on standard input is longer than ${longest} bytes` };
  }
  const whole = [text, input.trim()].filter((t) => t !== "").join("\n\n");
  return whole === "" ? { ok: false, message: "the prompt is empty" } : { ok: true, text: whole };
}

async function readInput(): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > longest) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}
