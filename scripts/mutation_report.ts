// What became of the mutants, for people: those that no test noticed, and a table by file.
import type { Mutant } from "./mutation_mutants.ts";

export type End = "killed" | "timeout" | "survived" | "not reached";
export type Placed = Mutant & { readonly file: string; readonly line: number; readonly before: string };
export type Result = { readonly mutant: Placed; readonly end: End };

/** Whether no test noticed it. A mutant that makes a test run for ever was noticed. */
export function lived({ end }: Result): boolean {
  return end === "survived" || end === "not reached";
}

/** One line: where, what kind, and what became what. */
export function showMutant({ mutant: m, end }: Result): string {
  // Only where the two differ, and a little around.
  let from = 0, to = 0;
  while (from < m.text.length && m.before[from] === m.text[from]) from++;
  while (to < m.text.length - from && m.before.at(-1 - to) === m.text.at(-1 - to)) to++;
  const short = (text: string) => {
    const part = text.slice(Math.max(0, from - 15), text.length - Math.max(0, to - 15)).replace(/\s+/g, " ");
    return part.length > 90 ? `${part.slice(0, 90)}…` : part;
  };
  const ended = end === "survived" ? "" : ` (${end})`;
  return `src/core/${m.file}.ts:${m.line} ${m.kind}${ended}: ${short(m.before)} → ${short(m.text)}`;
}

/** A Markdown table with a row for each file and one for all. */
export function tableOf(results: readonly Result[]): string {
  const files = [...new Set(results.map((r) => r.mutant.file))];
  const row = (name: string, mine: readonly Result[]) => {
    const count = (end: End) => mine.filter((r) => r.end === end).length;
    const score = (100 * mine.filter((r) => !lived(r)).length / mine.length).toFixed(1);
    const ends = [count("killed"), count("timeout"), count("survived"), count("not reached")];
    return `| ${[name, mine.length, ...ends, score].join(" | ")} |`;
  };
  return [
    "| File | Mutants | Killed | Timeout | Survived | Not reached | Score % |",
    "|---|--:|--:|--:|--:|--:|--:|",
    ...files.map((file) => row(`\`${file}.ts\``, results.filter((r) => r.mutant.file === file))),
    row("all", results),
  ].join("\n");
}
