import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { parseShell } from "../../src/shell/parse.ts";
import { couldRun, generator, hasBash, isTame, mutate, runInBash, seeds } from "./differential.ts";

type Report = { readonly hidden: readonly string[]; readonly texts: number; readonly commands: number };

// So many at once: most of the time goes into waiting for processes to start.
const lanes = 4;

/** Commands that bash ran although no part of the parsed text is that command; of `most` texts that bash was given. */
async function compare(sources: Iterator<string>, most: number): Promise<Report> {
  const hidden: string[] = [];
  let texts = 0;
  let commands = 0;
  const lane = async () => {
    while (texts < most) {
      const { value: source, done } = sources.next();
      if (done === true) return;
      const text = parseShell(source);
      if (text.errors.length > 0 || !isTame(source)) continue;
      texts++;
      for (const argv of await runInBash(source)) {
        commands++;
        if (argv[0] === "COPROC" || text.parts.some((part) => couldRun(part, argv))) continue;
        hidden.push(`${JSON.stringify(source)} ran ${JSON.stringify(argv)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return { hidden, texts, commands };
}

function* mutants(seed: number): Generator<string> {
  const random = generator(seed);
  const pick = () => seeds[Math.floor(random() * seeds.length)] ?? "";
  for (;;) yield mutate(pick(), pick(), random);
}

test.skipIf(!hasBash)("no command that bash runs is missing from the parts of the seeds", async () => {
  const { hidden, commands } = await compare(seeds.values(), seeds.length);
  assertEquals(hidden, []);
  assert(commands > 100, `bash ran only ${commands} commands`);
}, 60_000);

test.skipIf(!hasBash)(
  "no command that bash runs is missing from the parts of 3,000 mutated seeds",
  async () => {
    const { hidden, texts, commands } = await compare(mutants(20_261_130), 3000);
    assertEquals({ hidden, texts }, { hidden: [], texts: 3000 });
    assert(commands > 6000, `bash ran only ${commands} commands`);
  },
  120_000,
);

test.skipIf(!hasBash)("what runs in the background is logged and gone before the folder is", async () => {
  const late = "for ((i = 0; i < 5000; i++)); do :; done";
  assertEquals(await runInBash(`{ ${late}; aa >o; bb 'c\nd'; } &`), [["aa"], ["bb", "c\nd"]]);
  const endless = await runInBash("{ while :; do x=1 >o; done; } & { aa; read x <&9; } & bb");
  assertEquals([...endless].map((argv) => argv.join(" ")).sort(), ["aa", "bb"]);
}, 60_000);

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
