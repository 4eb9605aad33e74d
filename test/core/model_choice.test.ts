// Which model answers.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import {
  choiceNames,
  chooseModel,
  modelInForce,
  sameReach,
  skillModel,
} from "../../src/core/model_choice.ts";
import type { ModelSettings } from "../../src/core/policy.ts";

const prices = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const cheap = { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 };
const settings: ModelSettings = {
  provider: "anthropic",
  name: "big-1",
  apiKey: { env: "KEY" },
  headers: {},
  request: {},
  maxOutputTokens: 100,
  contextTokens: 1000,
  timeoutMs: 1,
  idleTimeoutMs: 1,
  retries: 0,
  prices,
  choices: { fast: { name: "small-1", prices: cheap, contextTokens: 500 }, odd: { name: "odd-1" } },
};
const of = (model: ModelSettings | undefined) =>
  model && [model.name, model.contextTokens, model.prices?.input];

describe("chooseModel()", () => {
  const fast = chooseModel(settings, "fast");
  const rows = [
    { name: "a choice", model: fast, is: ["small-1", 500, 1] },
    {
      name: "a choice that gives only a name has no prices",
      model: chooseModel(settings, "odd"),
      is: ["odd-1", 1000, undefined],
    },
    { name: "default", model: chooseModel(settings, "default"), is: ["big-1", 1000, 3] },
    {
      name: "the policy's own model by its name",
      model: chooseModel(settings, "big-1"),
      is: ["big-1", 1000, 3],
    },
    {
      name: "default after another choice",
      model: fast && chooseModel(fast, "default"),
      is: ["big-1", 1000, 3],
    },
    {
      name: "a choice after another one",
      model: fast && chooseModel(fast, "odd"),
      is: ["odd-1", 1000, undefined],
    },
    { name: "the id of a choice is no name", model: chooseModel(settings, "small-1"), is: undefined },
    { name: "a name that every object has", model: chooseModel(settings, "constructor"), is: undefined },
    {
      name: "a policy without choices",
      model: chooseModel({ ...settings, choices: {} }, "fast"),
      is: undefined,
    },
  ];
  for (const { name, model, is } of rows) test(name, () => assertEquals(of(model), is));
});

test("choiceNames() begins with default", () => {
  assertEquals(choiceNames(settings), ["default", "fast", "odd"]);
});

describe("skillModel()", () => {
  const rows = [
    { declared: undefined, is: {} },
    { declared: "inherit", is: {} },
    { declared: "fast", is: { name: "fast" } },
    { declared: "opus", is: { unknown: true } },
  ] as const;
  for (const { declared, is } of rows) {
    test(`of ${declared}`, () => assertEquals(skillModel(settings, declared), is));
  }
});

describe("modelInForce()", () => {
  const asks = (model: string, forced = false) => ({ model, forced });
  const rows = [
    { name: "nobody asks", active: [{ forced: false }], is: "big-1" },
    { name: "the newest that asks", active: [asks("odd"), asks("fast"), { forced: false }], is: "small-1" },
    { name: "not one that is forced", active: [asks("odd"), asks("fast", true)], is: "odd-1" },
    { name: "a choice that is gone", active: [asks("gone")], is: "big-1" },
  ];
  for (const { name, active, is } of rows) {
    test(name, () => assertEquals(modelInForce(settings, active).name, is));
  }
});

describe("sameReach()", () => {
  const rows = [
    { name: "another choice", b: chooseModel(settings, "fast"), same: true },
    { name: "other prices", b: { ...settings, prices: cheap }, same: true },
    { name: "another address", b: { ...settings, baseUrl: "https://elsewhere.example" }, same: false },
    { name: "another key", b: { ...settings, apiKey: { env: "OTHER" } }, same: false },
  ];
  for (const { name, b, same } of rows) {
    test(name, () => assertEquals(b !== undefined && sameReach(settings, b), same));
  }
});
