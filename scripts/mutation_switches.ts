// A source with all of its mutants in it, so that one bundle serves for every one of them.
import type { Mutant } from "./mutation_mutants.ts";

/**
 * The source with every mutant in it, asleep: number `first + i` is awake where `__mutant` is that number. What it does
 * while all are asleep is what it did before.
 */
export function withSwitches(source: string, mutants: readonly Mutant[], first: number): string {
  let next = 0;
  const emit = (start: number, end: number): string => {
    let text = "", at = start;
    for (let m = mutants[next]; m !== undefined && m.start < end; m = mutants[next]) {
      const here: string[] = [];
      for (; isSame(mutants[next], m); next++) {
        here.push(`__mutant === ${first + next} ? (${mutants[next]?.text}) : `);
      }
      const asleep = `__mutant !== ${first + next - 1}`;
      const inner = emit(m.start, m.end);
      text += source.slice(at, m.start) +
        (m.form === "statements" ? `{ if (${asleep}) {${inner}} }` : `(${here.join("")}(${inner}))`);
      at = m.end;
    }
    return text + source.slice(at, end);
  };
  return emit(0, source.length);
}

function isSame(a: Mutant | undefined, b: Mutant): boolean {
  return a !== undefined && a.start === b.start && a.end === b.end && a.form === b.form;
}
