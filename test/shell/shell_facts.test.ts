import { describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import type { PathFact } from "../../src/core/facts.ts";
import { shellFacts, type ShellPlace } from "../../src/shell/shell_facts.ts";

const files: Readonly<Record<string, readonly string[]>> = {
  "/ws": ["a.ts", ".env", "sub", "-o"],
  "/ws/sub": ["b.ts", "c.md"],
};

function place(cwd?: string): ShellPlace {
  return {
    root: "/ws",
    home: "/home/u",
    ...(cwd === undefined ? {} : { cwd }),
    pathFact: (written, from): PathFact => {
      const absolute = written.startsWith("/")
        ? written
        : written.replace(/^~/, "/home/u").replace(/^(?!\/)/, `${from}/`);
      return { written, absolute, resolved: absolute, inWorkspace: absolute.startsWith("/ws/") };
    },
    list: (folder) => {
      const names = files[folder];
      if (names === undefined) throw new Error(`no folder ${folder}`);
      return names;
    },
    exists: (path) =>
      Object.entries(files).some(([folder, names]) => names.some((name) => `${folder}/${name}` === path)),
  };
}

// Parts as their words, paths as tool, place and whether they are operands.
function shown(command: string, cwd?: string): string[] {
  return shellFacts(command, place(cwd)).subjects.map((s) =>
    s.kind === "part"
      ? `${s.part.level} ${s.part.argv.join(" ")}${
        s.part.notUnderstood === undefined ? "" : ` (${s.part.notUnderstood})`
      }`
      : s.kind === "path"
      ? `${s.tool} ${s.path.absolute}${s.operand ? " operand" : ""}`
      : s.kind
  );
}

describe("shellFacts() gives subjects in the order parts, redirections, operands", () => {
  const rows: [command: string, ...subjects: string[]][] = [
    ["git status", "top git status"],
    ["echo x > o", "top echo x", "write_file /ws/o"],
    ["cat < .env", "top cat", "read_file /ws/.env operand"],
    [
      "echo $(ls > o)",
      "top echo $(ls > o) (`$(ls > o)` is the output of a command)",
      "inner ls",
      "write_file /ws/o",
    ],
    ["echo x > $F", "top echo x", "top  (where `> $F` leads is only known when it runs)"],
    [
      "cd sub; echo x > o",
      "top cd sub",
      "top echo x",
      "top  (where `> o` leads is not known after a cd)",
      "write_file /ws/o operand",
      "read_file /ws/sub operand",
    ],
    ["cd sub; echo x > /o", "top cd sub", "top echo x", "write_file /o", "read_file /ws/sub operand"],
    [
      "cat a.ts missing",
      "top cat a.ts missing",
      "read_file /ws/a.ts operand",
      "read_file /ws/missing operand",
    ],
    ["make a.ts missing", "top make a.ts missing", "read_file /ws/a.ts operand"],
    ["make sub/missing", "top make sub/missing", "read_file /ws/sub/missing operand"],
    ["cp a.ts a.ts", "top cp a.ts a.ts", "read_file /ws/a.ts operand", "write_file /ws/a.ts operand"],
    ["make sub/*.ts", "top make sub/*.ts", "read_file /ws/sub/b.ts operand"],
    ["make /ws/s*/[bc].ts", "top make /ws/s*/[bc].ts", "read_file /ws/sub/b.ts operand"],
    ["make .e*", "top make .e*", "read_file /ws/.env operand"],
    ["make nothing*", "top make nothing*"],
    ["[[ -f a.ts ]]", "call"],
  ];
  for (const [command, ...subjects] of rows) test(command, () => assertEquals(shown(command), subjects));

  test("relative to the folder of the call", () => {
    assertEquals(shown("cat b.ts > o", "/ws/sub"), [
      "top cat b.ts",
      "write_file /ws/sub/o",
      "read_file /ws/sub/b.ts operand",
    ]);
  });

  test("a wildcard that may become an option of the program is not understood", () => {
    assertEquals(shown("sort *")[0], "top sort * (`*` would take the file `-o` for an option)");
    assertEquals(shown("sort sub/*")[0], "top sort sub/*");
    assertEquals(shown("ls *")[0], "top ls *");
  });
});

describe("shellFacts() gives the highest risk", () => {
  const rows: [command: string, risk: string][] = [
    ["ls; cat a.ts", "read"],
    ["ls > /dev/null", "read"],
    ["ls > o", "write"],
    ["ls; make", "execute"],
    ["make; git fetch", "network"],
    ["ls $(rm -rf x)", "destructive"],
    ["bash -c 'git push -f'", "destructive"],
  ];
  for (const [command, risk] of rows) {
    test(command, () => assertEquals(shellFacts(command, place()).risk, risk));
  }
});

test("shellFacts() gives nothing but the fault of a text that must not run", () => {
  assertEquals(shellFacts("", place()), {
    subjects: [{ kind: "call" }],
    risk: "execute",
    errors: [{ code: "empty_command", message: "the command is empty" }],
  });
});

describe("shellFacts() counts what it looks at", () => {
  const many = Array.from({ length: 900 }, (_, i) => `f${i}`);

  test("a folder is listed once for all wildcards over it", () => {
    const listed: string[] = [];
    const list = (folder: string) => {
      listed.push(folder);
      return many;
    };
    const { errors } = shellFacts(`cat ${"* ".repeat(500)}; cat f1*`, { ...place(), list });
    assertEquals([errors, listed], [[], ["/ws"]]);
  });

  for (const [count, last, codes] of [[3900, "/ws/f3899", []], [4100, undefined, ["too_complex"]]] as const) {
    test(`${count} files that one wildcard stands for`, () => {
      const list = () => Array.from({ length: count }, (_, i) => `f${i}`);
      const { subjects, errors } = shellFacts("cat *", { ...place(), list });
      const end = subjects.at(-1);
      assertEquals([end?.kind === "path" ? end.path.absolute : undefined, errors.map((e) => e.code)], [
        last,
        codes,
      ]);
    });
  }

  const rows: [name: string, command: string][] = [
    [
      "more paths than are looked at",
      Array.from({ length: 5 }, (_, i) => `cat ${"d".repeat(i + 1)}/*`).join("; "),
    ],
    ["more names than are looked at", `cat ${Array.from({ length: 300 }, (_, i) => `*${i}x`).join(" ")} *`],
  ];
  for (const [name, command] of rows) {
    test(name, () => {
      const facts = shellFacts(command, { ...place(), list: () => many });
      assertEquals([facts.subjects, facts.risk, facts.errors.map((e) => e.code)], [
        [{ kind: "call" }],
        "execute",
        ["too_complex"],
      ]);
    });
  }
});

describe("shellFacts() looks into what a group reads", () => {
  const rows: [command: string, inner: boolean][] = [
    ["{ sh; } <<E\nrm x\nE", true],
    ["{ . /dev/stdin; } <<E\nrm x\nE", true],
    ["{ cat; } <<E\nrm x\nE", false],
  ];
  for (const [command, inner] of rows) {
    test(command, () => assertEquals(shown(command).some((s) => s.startsWith("inner rm x")), inner));
  }
});
