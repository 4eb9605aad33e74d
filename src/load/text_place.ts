// Lines and columns of a text.
import type { Position } from "../core/problem.ts";

/** The place of the character at this offset, however lines end. */
export function placeIn(text: string, file: string, offset: number): Position {
  const before = text.slice(0, offset).split(/\r\n|\n|\r/);
  return { file, line: before.length, col: (before.at(-1) ?? "").length + 1 };
}
