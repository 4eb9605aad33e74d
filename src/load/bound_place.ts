// Where a skill says what it allows.
import { readHead } from "./file_head.ts";
import type { Position } from "../core/problem.ts";
import { placeIn } from "./text_place.ts";

/** Of `allowed_tools`, however it is spelled. */
export const boundKey = /^["']?allowed[-_ ]?tools/mi;
const longestHead = 64 * 1024;

/** The key in the file; the start of the file where there is none, or where it cannot be read. Never throws. */
export function boundPlace(file: string): Position {
  try {
    const head = readHead(file, longestHead, (text) => /^---[ \t]*$[^]*^---[ \t]*$/m.test(text));
    return placeIn(head, file, Math.max(0, head.search(boundKey)));
  } catch {
    return { file, line: 1, col: 1 };
  }
}
