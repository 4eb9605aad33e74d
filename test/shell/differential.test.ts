import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { parseShell } from "../../src/shell/parse.ts";
import { couldRun, generator, hasBash, isTame, mutate, runInBash, seeds } from "./differential.ts";

/** Commands that bash ran although no part of the parsed text is that command. */
function hiddenCommands(sources: readonly string[]): { readonly hidden: string[]; readonly ran: number } {
  const hidden: string[] = [];
  let ran = 0;
  for (const source of sources) {
    const text = parseShell(source);
    if (text.errors.length > 0 || !isTame(source)) continue;
    for (const argv of runInBash(source)) {
      ran++;
      // A word with a line break tears the log of commands that run side by side.
      if (argv.some((word) => word.includes("\n")) || argv[0] === "COPROC") continue;
      if (!text.parts.some((part) => couldRun(part, argv))) {
        hidden.push(`${JSON.stringify(source)} ran ${JSON.stringify(argv)}`);
      }
    }
  }
  return { hidden, ran };
}

test.skipIf(!hasBash)("no command that bash runs is missing from the parts of the seeds", () => {
  const { hidden, ran } = hiddenCommands(seeds);
  assertEquals(hidden, []);
  assert(ran > 100, `bash ran only ${ran} commands`);
}, 30_000);

test.skipIf(!hasBash)("no command that bash runs is missing from the parts of mutated seeds", () => {
  const random = generator(20_261_130);
  const pick = () => seeds[Math.floor(random() * seeds.length)] ?? "";
  const { hidden, ran } = hiddenCommands(Array.from({ length: 400 }, () => mutate(pick(), pick(), random)));
  assertEquals(hidden, []);
  assert(ran > 100, `bash ran only ${ran} commands`);
}, 30_000);

test("couldRun() tells a command that no part covers", () => {
  const [part] = parseShell("aa b$X c").parts;
  assert(part !== undefined);
  assertEquals(
    [["aa", "b1", "c"], ["aa", "x", "c"], ["aa"], ["bb", "b1", "c"]].map((argv) => couldRun(part, argv)),
    [
      true,
      true,
      false,
      false,
    ],
  );
});
