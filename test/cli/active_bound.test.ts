// What a skill that is active bounds, from loading it to calls, in a session.
import { assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  calls,
  type Live,
  makeSite,
  openLive,
  says,
  type Site,
  skillText,
} from "../support/skill_session.ts";

const file = "home/.config/writ/skills/narrow/SKILL.md";
const base = 'version: 1\nmodel: {provider: script}\nsandbox: {mode: "off"}\npermissions: {default: allow}\n';
const load = calls("load_skill", { name: "narrow" });
const write = calls("write_file", { path: "OUT", content: "x" });
let site: Site;
let live: Live | undefined;
beforeEach(() => {
  site = makeSite(base);
});
afterEach(() => {
  live?.session.close();
  live = undefined;
  site.remove();
});

function declare(tools: string, trigger = ""): void {
  site.put(file, skillText("narrow", "Narrows.", `allowed_tools: ${tools}\n${trigger}`, "Body.\n"));
}

const written = () => existsSync(join(site.top, "ws/OUT"));

describe("an entry of allowed_tools that is all stars bounds like no list", () => {
  for (const tools of ['"*"', '["*"]', '"**"', '["**"]', '["***"]', '[read_file, "**"]']) {
    test(tools, async () => {
      declare(tools);
      live = await openLive(site, [load, write, says("a")]);
      await live.turn("go");
      assertEquals([live.of("tool.completed").map((t) => t.ok), written()], [[true, false], false]);
    });
  }
});
