// `bun:test` under Deno: the few names that the test files import, on node:test, which Deno runs natively.
import { after, afterEach, before, beforeEach, describe, it } from "node:test";

export { afterEach, beforeEach, describe };
export const beforeAll = before;
export const afterAll = after;

/** Same shape as bun:test's `test`; the third argument is a time limit in milliseconds. */
export function test(name: string, fn: () => void | Promise<void>, timeout?: number): void {
  it(name, timeout === undefined ? {} : { timeout }, fn);
}
test.skipIf = (skip: boolean) => (name: string, fn: () => void | Promise<void>, timeout?: number): void => {
  it(name, timeout === undefined ? { skip } : { skip, timeout }, fn);
};
