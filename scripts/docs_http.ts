// Rows of the tables about the HTTP API, from the table of operations and that of problems.
import { operations } from "../src/http/operations.ts";
import { problems } from "../src/http/problem.ts";

/** Method and path, role, meaning. */
export function operationRows(): readonly (readonly string[])[] {
  return operations.map(({ method, path, role, summary }) => [
    `\`${method} ${path.replace(/:(\w+)/g, "{$1}")}\``,
    role === undefined ? "–" : `\`${role}\``,
    summary,
  ]);
}

/** Status, code, meaning. */
export function problemRows(): readonly (readonly string[])[] {
  return Object.entries(problems).map(([code, { status, title }]) => [String(status), `\`${code}\``, title]);
}
