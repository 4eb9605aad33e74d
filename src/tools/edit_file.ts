// edit_file: one exact piece of a file is replaced by another; everything around it keeps its bytes.
import type { Tool, ToolContext, ToolOutcome } from "../agent/ports.ts";
import type { Args } from "../core/message.ts";
import { plural } from "../core/plural.ts";
import { flagArg, textArg } from "./arguments.ts";
import { diffPreview } from "./diff_preview.ts";
import { fileText, lineAt } from "./file_text.ts";
import { judgedPath } from "./judged_path.ts";
import { type KnownFile, knownFile, redactionError } from "./known_file.ts";
import { inspectWrite, putFile } from "./put_file.ts";
import { changed } from "./replace_file.ts";
import { replaceText } from "./replace_text.ts";
import { done, failed, showPath } from "./tool_outcome.ts";

export const editFile: Tool = {
  name: "edit_file",
  description:
    "Replace `old` by `new` in a file. `old` must be exact, blanks included, and occur once, unless `all` is set. Line ends are kept.",
  inputSchema: {
    type: "object",
    properties: {
      path: { type: "string" },
      old: { type: "string", minLength: 1 },
      new: { type: "string" },
      all: { type: "boolean" },
    },
    required: ["path", "old", "new"],
    additionalProperties: false,
  },
  inspect: (args, place) => inspectWrite("edit_file", args, place, "new"),
  preview(args, at) {
    const leads = judgedPath(args, textArg(args, "path") ?? "", at);
    const edit = leads.ok ? editOf(leads.path, args, at) : undefined;
    return edit?.ok ? diffPreview(showPath(edit.path, at), edit.before, edit.after) : undefined;
  },
  async run(args, at) {
    const leads = judgedPath(args, textArg(args, "path") ?? "", at);
    if (!leads.ok) return leads;
    const edit = editOf(leads.path, args, at);
    return edit.ok ? await apply(edit, at) : edit;
  },
};

type Edit = {
  readonly ok: true;
  readonly path: string;
  readonly known: KnownFile;
  readonly before: string;
  readonly after: string;
  readonly bytes: Uint8Array;
  readonly places: readonly number[];
};

function editOf(path: string, args: Args, at: ToolContext): Edit | (ToolOutcome & { readonly ok: false }) {
  const shown = showPath(path, at);
  const wanted = {
    old: textArg(args, "old") ?? "",
    new: textArg(args, "new") ?? "",
    all: flagArg(args, "all"),
  };
  const error = redactionError(wanted.new);
  if (error !== undefined) return failed(error.code, error.message);
  const known = knownFile(path, at);
  if (!known.ok) return known;
  const seen = at.seen.get(path);
  if (seen !== undefined && seen !== known.hash) return changed(shown);
  const file = fileText(known.bytes);
  if (file.kind === "binary") {
    return failed("binary", `\`${shown}\` is no text: ${file.what}; expected a text file`);
  }
  if (!file.exact) {
    return failed(
      "not_utf8",
      `\`${shown}\` holds bytes that are not UTF-8; writing it back would damage them`,
    );
  }
  const replaced = replaceText(file.text, wanted);
  if (!replaced.ok) return failed(replaced.code, `\`${shown}\`: ${replaced.message}`);
  const bytes = new TextEncoder().encode((file.mark ? "\ufeff" : "") + replaced.text);
  return { ok: true, path, known, before: file.text, after: replaced.text, bytes, places: replaced.places };
}

async function apply(edit: Edit, at: ToolContext): Promise<ToolOutcome> {
  const shown = showPath(edit.path, at);
  const fault = await putFile(edit.path, edit.bytes, edit.known, at);
  if (fault !== undefined) return fault;
  const lines = edit.places.slice(0, 20).map((place) => lineAt(edit.before, place)).join(", ");
  return done(`edited \`${shown}\`: ${plural(edit.places.length, "place")}, line ${lines}`, {
    data: { path: shown, places: edit.places.length },
  });
}
