// The part of @std/assert that the tests use, over node:assert. It stands in where JSR cannot be reached:
// Bun finds it through tsconfig `paths`, Deno through test/support/import_map.json.
import nodeAssert from "node:assert/strict";

export function assert(value: unknown, message?: string): asserts value {
  nodeAssert.ok(value, message ?? "assertion failed");
}

export function assertEquals<T>(actual: T, expected: T, message?: string): void {
  if (message === undefined) nodeAssert.deepStrictEqual(actual, expected);
  else nodeAssert.deepStrictEqual(actual, expected, message);
}

export function assertNotEquals<T>(actual: T, expected: T, message?: string): void {
  if (message === undefined) nodeAssert.notDeepStrictEqual(actual, expected);
  else nodeAssert.notDeepStrictEqual(actual, expected, message);
}

export function assertStringIncludes(actual: string, expected: string, message?: string): void {
  if (!actual.includes(expected)) {
    nodeAssert.fail(message ?? `expected text to include ${JSON.stringify(expected)}, got:\n${actual}`);
  }
}

export function assertMatch(actual: string, expected: RegExp, message?: string): void {
  if (!expected.test(actual)) nodeAssert.fail(message ?? `expected ${expected} to match:\n${actual}`);
}

export function assertThrows(
  fn: () => unknown,
  errorClass?: new (...args: never[]) => Error,
  includes?: string,
): Error {
  try {
    fn();
  } catch (error) {
    return checkError(error, errorClass, includes);
  }
  return nodeAssert.fail("expected a throw");
}

export async function assertRejects(
  fn: () => Promise<unknown>,
  errorClass?: new (...args: never[]) => Error,
  includes?: string,
): Promise<Error> {
  try {
    await fn();
  } catch (error) {
    return checkError(error, errorClass, includes);
  }
  return nodeAssert.fail("expected a rejection");
}

function checkError(error: unknown, errorClass?: new (...args: never[]) => Error, includes?: string): Error {
  nodeAssert.ok(error instanceof (errorClass ?? Error), `unexpected error: ${error}`);
  if (includes !== undefined) assertStringIncludes((error as Error).message, includes);
  return error as Error;
}
