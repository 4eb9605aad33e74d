// What tools that run programs do about boxes: whether there is the one that a call names, the way in, and what is said after.
import type { Entered, Place, ShellSettings, ToolContext, ToolOutcome } from "../agent/ports.ts";
import { defaultBox, unknownBox } from "../core/box.ts";
import { streamHint } from "../sandbox/bash.ts";
import type { RunResult } from "../sandbox/subprocess.ts";

/** Why nothing can run in the box of that name. */
export function boxFault(
  name: string | undefined,
  place: Pick<Place, "boxes" | "shellRefused">,
): { readonly code: string; readonly message: string } | undefined {
  const { boxes = [], shellRefused } = place;
  const unknown = unknownBox(boxes, name ?? defaultBox);
  if (unknown !== undefined) return unknown;
  if (shellRefused === undefined || boxes.some((b) => b.name === name && b.off === true)) return undefined;
  return { code: "sandbox_unavailable", message: shellRefused };
}

/** `more`: paths that this one program may read beside what its box holds. */
export function enterBox(shell: ShellSettings, box: string, more?: readonly string[]): Entered {
  return shell.boxes?.enter(box, more) ?? { ok: true, env: shell.env };
}

/** The result with what the box did to it: files that were taken away again, and what a failed command may have lacked. */
export function withBoxNotes(
  outcome: ToolOutcome,
  result: RunResult,
  box: string,
  at: Pick<ToolContext, "shell">,
): ToolOutcome {
  const removed = result.removed.length === 0
    ? []
    : [`protected, so removed or set right after the command: ${result.removed.join(", ")}`];
  const lack = outcome.ok || result.failure !== undefined || result.cancelled
    ? undefined
    : at.shell.boxes?.lack(box, `${result.stdout}\n${result.stderr}`);
  const stream = streamHint(result.stderr);
  const notes = [...removed, ...[stream, lack].flatMap((note) => note === undefined ? [] : [note])];
  return notes.length === 0 ? outcome : {
    ...outcome,
    content: `${outcome.content.replace(/\n$/, "")}\n${notes.map((note) => `[${note}]`).join("\n")}`,
  };
}
