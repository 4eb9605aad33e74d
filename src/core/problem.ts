// A fault in something that the operator wrote. Problems are collected and reported all at once, never thrown.

/** A place in a file; line and col count from 1. */
export type Position = { readonly file: string; readonly line: number; readonly col: number };

export type Problem = {
  readonly code: string;
  readonly severity: "error" | "warning";
  /** Starts lower case, names the thing in backticks, says what was found. */
  readonly message: string;
  readonly at?: Position;
  /** What would have been right. */
  readonly expected?: string;
  /** What to do about it. */
  readonly hint?: string;
};

/** A value, or every reason why there is none; warnings may accompany a value. */
export type Loaded<T> =
  | { readonly ok: true; readonly value: T; readonly problems: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export function isError(problem: Problem): boolean {
  return problem.severity === "error";
}

export function showPosition(at: Position): string {
  return `${at.file}:${at.line}:${at.col}`;
}

/** One line per problem: `file:line:col: error: message (expected …); hint`. */
export function showProblem(problem: Problem): string {
  const place = problem.at === undefined ? "" : `${showPosition(problem.at)}: `;
  const expected = problem.expected === undefined ? "" : `; expected ${problem.expected}`;
  const hint = problem.hint === undefined ? "" : `; ${problem.hint}`;
  return `${place}${problem.severity}: ${problem.message}${expected}${hint} [${problem.code}]`;
}

const mostShown = 100;

/** A line each, in their order; of more than a hundred the first hundred, errors before warnings, and how many are left. */
export function showProblems(problems: readonly Problem[]): readonly string[] {
  if (problems.length <= mostShown) return problems.map(showProblem);
  const first = [...problems.filter(isError), ...problems.filter((p) => !isError(p))].slice(0, mostShown);
  return [...first.map(showProblem), `… and ${problems.length - mostShown} more`];
}

/** The known key that was probably meant, within two edits or a shared prefix of four; undefined when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.min(3, Math.floor(word.length / 3))) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance && distance < word.length) [best, bestDistance] = [candidate, distance];
  }
  return best ?? known.find((k) => word.length >= 4 && (k.startsWith(word) || word.startsWith(k)));
}

// Two letters that changed places are one edit: that is how most slips look.
function editDistance(a: string, b: string): number {
  let before: readonly number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const transposition = swapped ? (before[j - 2] ?? 0) + 1 : Infinity;
      row.push(Math.min(substitution, transposition, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    [before, previous] = [previous, row];
  }
  return previous[b.length] ?? 0;
}
