// Every command that prints, with control sequences in whatever others wrote: none comes out raw.
import { test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { join } from "node:path";
import { eventsOf, withMachine } from "../support/machine.ts";

const evil = "x\u001b[2J\u001b]0;t\u0007\u009b31m\u202eend\u200b\u2028\r\b";
const raw = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;

const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u206f]/;

test("no command prints a control sequence of others raw", async () => {
  await withMachine(async (m) => {
    const quoted = JSON.stringify(evil);
    const skill = `---\nname: evil\ndescription: ${quoted}\nversion: ${quoted}\n---\nBody ${evil}\n`;
    m.write("config/writ/skills/evil/SKILL.md", skill);
    m.write("config/writ/skills/evil/notes\u001b[2J.txt", "notes");
    m.write("config/writ/skills/bad\u001b[31m/SKILL.md", `---\nname: ${quoted}\n---\n`);
    m.write("repo/name\u001b[2J\u202e.txt", `needle ${evil}\n`);
    m.write("repo/src/a.txt", `one ${evil}\ntwo\n`);
    const calls = [
      { read_file: { path: "name\u001b[2J\u202e.txt" } },
      { list_files: {} },
      { search_text: { pattern: "needle" } },
      { git_diff: {} },
      { shell: { command: `echo ${evil}` } },
      { shell: { command: "cat src/a.txt; false" } },
      { write_file: { path: `${evil}.txt`, content: evil } },
      { [`tool${evil}`]: { [evil]: evil } },
      { load_skill: { name: evil } },
      { load_skill: { name: "evil", arguments: evil } },
    ];
    const replies = JSON.stringify([
      ...calls.map((call) => ({ text: `I call ${evil}`, call })),
      { text: `It said ${evil}` },
    ]);
    m.write("replies.yaml", replies);
    const text = (name: string) =>
      `version: 1
name: ${JSON.stringify(`${name}${evil}`)}
model: {provider: script, script: replies.yaml}
sandbox: {mode: "off"}
skills: {triggers: {evil: {patterns: [trigger]}}}
permissions:
  default: {read: allow, write: deny, execute: ask}
  deny: [{id: "no-tmp", tool: write_file, reason: ${quoted}}]
  allow: ["shell(cat *)"]
`;
    const policy = m.write("policy.yaml", text("one"));
    const other = m.write("other.yaml", text("two").replace("execute: ask", "execute: deny"));
    const broken = m.write(
      "broken.yaml",
      `version: 1\n${quoted}: 1\nname: [${quoted}]\nlimits: {iterations: ${quoted}}\n`,
    );
    const folder = join(m.top, "config/writ/skills");
    const run = await m.writ(["run", "--policy", policy, `trigger ${evil}`]);
    const id = m.ids()[0] ?? "";
    assert(eventsOf(m.events(), "tool.completed").length === calls.length, run.stderr);
    const on = ["--policy", policy];
    const commands: readonly (readonly string[])[] = [
      ["run", ...on, "--json", evil],
      ["run", ...on, `/skill ${evil}`],
      ["run", ...on, "--skill", evil, "go"],
      ["run", ...on, "--model", evil, "go"],
      ["run", "--policy", broken, "go"],
      ["run", "--policy", evil, "go"],
      ["run", "--resume", evil, ...on, "go"],
      ["skill", "list", ...on],
      ["skill", "list", ...on, "--json"],
      ["skill", "show", "evil", ...on],
      ["skill", "show", evil, ...on],
      ["skill", "find", "end", ...on],
      ["skill", "find", evil, ...on],
      ["skill", "trigger", `trigger ${evil}`, ...on],
      ["skill", "lint", folder],
      ["skill", "lint", folder, "--json"],
      ["skill", "lint", evil],
      ["policy", "check", policy],
      ["policy", "check", broken],
      ["policy", "show", ...on],
      ["policy", "show", ...on, "--origin"],
      ["policy", "show", ...on, "--json"],
      ["policy", "lint", policy],
      ["policy", "diff", policy, other],
      ["policy", "diff", policy, other, "--json"],
      ["explain", ...on, "--message", `trigger ${evil}`],
      ["explain", ...on, "shell", JSON.stringify({ command: `echo ${evil}` })],
      ["explain", ...on, `tool${evil}`, "{}"],
      ["session", "list"],
      ["session", "list", "--json"],
      ["session", "show", id],
      ["session", "show", id, "--events"],
      ["session", "show", evil],
      ["session", "export", id],
      ["session", "verify", id],
      ["session", "verify", evil],
      ["help", evil],
      [evil],
      ["run", `--${evil}`],
    ];
    const printed = [{ args: ["run"] as readonly string[], ended: run }];
    for (const args of commands) printed.push({ args, ended: await m.writ(args) });
    const wrong = printed.flatMap(({ args, ended }) =>
      [ended.stdout, ended.stderr].flatMap((said) => {
        // The answer for a script keeps what has no width: whole scripts are written with it.
        const at = (args.length === 1 && args[0] === "run" ? steering : raw).exec(said)?.index;
        return at === undefined
          ? []
          : [`${JSON.stringify(args)}: ${JSON.stringify(said.slice(Math.max(0, at - 60), at + 40))}`];
      })
    );
    assertEquals(wrong, []);
    // What others wrote is shown, as what it is.
    const shown = printed.filter(({ ended }) =>
      /\\x1b\[2J|\\u001b\[2J/.test(ended.stdout + ended.stderr)
    ).length;
    assert(shown >= 20, `shown by ${shown} of ${printed.length}`);
  });
});
