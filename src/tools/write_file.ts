// write_file: a file gets exactly this content, in one step.
import { plural } from "../core/plural.ts";
import type { Tool, ToolContext, ToolOutcome } from "../agent/ports.ts";
import { textArg } from "./arguments.ts";
import { diffPreview } from "./diff_preview.ts";
import { fileText, lineCount } from "./file_text.ts";
import { judgedPath } from "./judged_path.ts";
import { isFree, knownFile, redactionError } from "./known_file.ts";
import { inspectWrite, putFile } from "./put_file.ts";
import { changed } from "./replace_file.ts";
import { done, failed, showPath } from "./tool_outcome.ts";

export const writeFile: Tool = {
  name: "write_file",
  description:
    "Create a file, or replace all of its text. Read an existing file first; prefer edit_file for changes.",
  inputSchema: {
    type: "object",
    properties: { path: { type: "string" }, content: { type: "string" } },
    required: ["path", "content"],
    additionalProperties: false,
  },
  inspect: (args, place) => inspectWrite("write_file", args, place, "content"),
  preview(args, at) {
    const leads = judgedPath(args, textArg(args, "path") ?? "", at);
    if (!leads.ok) return undefined;
    const content = textArg(args, "content") ?? "";
    const name = showPath(leads.path, at);
    if (isFree(leads.path)) return diffPreview(name, undefined, content);
    const known = knownFile(leads.path, at);
    if (!known.ok) return undefined;
    const before = fileText(known.bytes);
    return before.kind === "text"
      ? diffPreview(name, before.text, content)
      : `[${name}: ${before.what}, ${plural(known.bytes.length, "byte")}, is replaced by:]\n${
        diffPreview(name, undefined, content)
      }`;
  },
  async run(args, at) {
    const leads = judgedPath(args, textArg(args, "path") ?? "", at);
    return leads.ok ? await write(leads.path, textArg(args, "content") ?? "", at) : leads;
  },
};

async function write(path: string, content: string, at: ToolContext): Promise<ToolOutcome> {
  const error = redactionError(content);
  if (error !== undefined) return failed(error.code, error.message);
  const shown = showPath(path, at);
  const bytes = new TextEncoder().encode(content);
  const known = isFree(path) ? undefined : knownFile(path, at);
  if (known !== undefined) {
    if (!known.ok) return known;
    const seen = at.seen.get(path);
    if (seen === undefined) {
      return failed(
        "not_read",
        `\`${shown}\` exists and was not read in this session; nothing was written: read it first`,
      );
    }
    if (seen !== known.hash) return changed(shown);
  }
  const fault = await putFile(path, bytes, known, at);
  if (fault !== undefined) return fault;
  const what = known === undefined ? "created" : "replaced";
  return done(
    `${what} \`${shown}\`: ${plural(lineCount(content), "line")}, ${plural(bytes.length, "byte")}`,
    {
      data: { path: shown, bytes: bytes.length, created: known === undefined },
    },
  );
}
