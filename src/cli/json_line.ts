// The one way in which JSON leaves a command.
import { escapeJson } from "../core/text.ts";

/** One line of JSON with its line end, safe to print: what a terminal would act on, or not show, is written as an escape. */
export function toJsonLine(value: unknown): string {
  return `${escapeJson(JSON.stringify(value))}\n`;
}
