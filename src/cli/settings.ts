// The policy in force for a command, with the question of trust asked at the terminal.
import { plural } from "../core/plural.ts";
import type { Loaded } from "../core/problem.ts";
import { escapeLine } from "../core/text.ts";
import type { TrustAnswer, WorkspaceContent } from "../load/trust.ts";
import { readSettings, type Settings } from "../session/settings.ts";
import type { Context, PolicyOptions } from "./command.ts";
import { Interrupted } from "./interrupt.ts";
import type { Output } from "./output.ts";
import type { Terminal } from "./terminal.ts";

/** Where somebody can be asked; `terminal` is called only when there is a question. */
export type Asking = { terminal(): Terminal; readonly signal: AbortSignal };

/** Notices go to stderr, save when they were said before (`silent`). Throws Interrupted when a question was broken off. */
export async function loadSettings(
  { host, output }: Context,
  options: PolicyOptions & { readonly model?: string | undefined },
  asking: Asking | undefined,
  how?: "silent",
): Promise<Loaded<Settings>> {
  const loaded = await readSettings(
    host,
    options,
    asking && ((root, content) => askTrust(asking, output, root, content)),
  );
  if (!loaded.ok || how === "silent") return loaded;
  for (const notice of loaded.value.notices) {
    output.note(output.paint.yellow(output.safe(`note: ${notice}`)));
  }
  return loaded;
}

// Only an answer is kept: Ctrl-C and the end of the input are none.
async function askTrust(
  asking: Asking,
  output: Output,
  root: string,
  content: WorkspaceContent,
): Promise<TrustAnswer> {
  output.note(output.safe(`the workspace ${root} brings:`));
  for (const item of content.items) {
    output.note(`  ${item.kind.padEnd(12)} ${escapeLine(item.path)} (${plural(item.files, "file")})`);
  }
  output.note("trust lets Writ read these; it is asked again when they change");
  const terminal = asking.terminal();
  await terminal.discardTyped();
  const typed = await terminal.ask("  trust them? [y/N] ", asking.signal).catch(() => undefined);
  if (typed === undefined) throw new Interrupted();
  const answer = typed.trim().toLowerCase();
  return answer === "y" || answer === "yes" ? "trusted" : "untrusted";
}
