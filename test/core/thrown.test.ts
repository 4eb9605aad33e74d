import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { codeOf, messageOf } from "../../src/core/thrown.ts";

const cases: readonly {
  readonly what: string;
  readonly thrown: unknown;
  readonly message: string;
  readonly code?: string;
}[] = [
  { what: "an Error", thrown: new Error("no"), message: "no" },
  {
    what: "an Error of the system",
    thrown: Object.assign(new Error("gone"), { code: "ENOENT" }),
    message: "gone",
    code: "ENOENT",
  },
  { what: "a code that is no text", thrown: Object.assign(new Error("odd"), { code: 7 }), message: "odd" },
  { what: "a string", thrown: "no", message: "no" },
  { what: "nothing", thrown: undefined, message: "undefined" },
  { what: "null", thrown: null, message: "null" },
];

describe("what was thrown", () => {
  for (const { what, thrown, message, code } of cases) {
    test(what, () => assertEquals([messageOf(thrown), codeOf(thrown)], [message, code]));
  }
});
