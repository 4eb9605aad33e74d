import { assert, assertEquals } from "@std/assert";
import { afterEach, beforeEach, describe, test } from "bun:test";
import { mkdirSync, realpathSync } from "node:fs";
import type { Place } from "../../src/agent/ports.ts";
import { lookedAtOnce, pathFact, realFiles } from "../../src/tools/path_fact.ts";
import { describedFiles, type Description } from "./described_files.ts";
import { makeWorkspace, type Workspace } from "./workspace.ts";

const place: Place = {
  root: "/ws",
  home: "/home/u",
  protectedBy: (path) => path.startsWith("/ws/.writ") ? ".writ/**" : undefined,
};
const files = ["src/a.ts", "src/real/b.ts", ".env", "docs/x.md", "/etc/passwd"];

type Row = {
  readonly name: string;
  readonly written: string;
  readonly cwd?: string;
  readonly fs?: Omit<Description, "root">;
  readonly absolute: string;
  readonly resolved: string | undefined;
  readonly inside: boolean;
};

const rows: readonly Row[] = [
  { name: "relative", written: "src/a.ts", absolute: "/ws/src/a.ts", resolved: "/ws/src/a.ts", inside: true },
  { name: "the root", written: ".", absolute: "/ws", resolved: "/ws", inside: true },
  {
    name: "dots and slashes",
    written: ".//src/./real/..//a.ts",
    absolute: "/ws/src/a.ts",
    resolved: "/ws/src/a.ts",
    inside: true,
  },
  { name: "a trailing slash", written: "src/", absolute: "/ws/src", resolved: "/ws/src", inside: true },
  {
    name: "up and out",
    written: "../../etc/passwd",
    absolute: "/etc/passwd",
    resolved: "/etc/passwd",
    inside: false,
  },
  { name: "up past the top", written: "../../../../x", absolute: "/x", resolved: "/x", inside: false },
  {
    name: "same prefix",
    written: "/ws-evil/secret",
    absolute: "/ws-evil/secret",
    resolved: "/ws-evil/secret",
    inside: false,
  },
  {
    name: "a current folder",
    written: "../a.ts",
    cwd: "/ws/src/real",
    absolute: "/ws/src/a.ts",
    resolved: "/ws/src/a.ts",
    inside: true,
  },
  { name: "home", written: "~", absolute: "/home/u", resolved: "/home/u", inside: false },
  {
    name: "below home",
    written: "~/.ssh/id",
    absolute: "/home/u/.ssh/id",
    resolved: "/home/u/.ssh/id",
    inside: false,
  },
  {
    name: "~user is a plain name",
    written: "~root/x",
    absolute: "/ws/~root/x",
    resolved: "/ws/~root/x",
    inside: true,
  },
  { name: "a ~ further on", written: "a/~/x", absolute: "/ws/a/~/x", resolved: "/ws/a/~/x", inside: true },
  {
    name: "a tail that is not there",
    written: "new/deep/x",
    absolute: "/ws/new/deep/x",
    resolved: "/ws/new/deep/x",
    inside: true,
  },
  { name: "below a file", written: ".env/x", absolute: "/ws/.env/x", resolved: "/ws/.env/x", inside: true },
  { name: "empty", written: "", absolute: "/ws", resolved: undefined, inside: false },
  { name: "NUL", written: "a\0b", absolute: "/ws/a\0b", resolved: undefined, inside: false },
  {
    name: "half a surrogate pair",
    written: "a\ud800",
    absolute: "/ws/a\ufffd",
    resolved: undefined,
    inside: false,
  },
  {
    name: "too long",
    written: "x/".repeat(3000),
    absolute: `/ws${"/x".repeat(3000)}`,
    resolved: undefined,
    inside: false,
  },
  {
    name: "blanks and Chinese",
    written: "文档/a b\n.md",
    absolute: "/ws/文档/a b\n.md",
    resolved: "/ws/文档/a b\n.md",
    inside: true,
  },
  {
    name: "a link that stays inside",
    written: "src/l/b.ts",
    fs: { symlinks: { "src/l": "real" } },
    absolute: "/ws/src/l/b.ts",
    resolved: "/ws/src/real/b.ts",
    inside: true,
  },
  {
    name: "a link that leads out",
    written: "src/link/passwd",
    fs: { symlinks: { "src/link": "/etc" } },
    absolute: "/ws/src/link/passwd",
    resolved: "/etc/passwd",
    inside: false,
  },
  {
    name: "links are followed before ..",
    written: "src/link/../a.ts",
    fs: { symlinks: { "src/link": "/etc" } },
    absolute: "/ws/src/a.ts",
    resolved: "/a.ts",
    inside: false,
  },
  {
    name: "a dangling link leads to its target",
    written: "dang",
    fs: { symlinks: { dang: "../out/new" } },
    absolute: "/ws/dang",
    resolved: "/out/new",
    inside: false,
  },
  {
    name: "links of links",
    written: "a/x",
    fs: { symlinks: { a: "b", b: "c/", c: "/home/u" } },
    absolute: "/ws/a/x",
    resolved: "/home/u/x",
    inside: false,
  },
  {
    name: "a link loop",
    written: "src/x/y",
    fs: { symlinks: { "src/x": "y", "src/y": "x" } },
    absolute: "/ws/src/x/y",
    resolved: undefined,
    inside: false,
  },
  {
    name: "a link to itself by its folder",
    written: "s/s/s/s/.env",
    fs: { symlinks: { s: "." } },
    absolute: "/ws/s/s/s/s/.env",
    resolved: "/ws/.env",
    inside: true,
  },
  {
    name: "/proc/self/cwd",
    written: "/proc/self/cwd/.env",
    absolute: "/proc/self/cwd/.env",
    resolved: "/ws/.env",
    inside: true,
  },
  {
    name: "/proc/self/cwd in a folder",
    written: "/proc/self/cwd/b.ts",
    cwd: "/ws/src/real",
    absolute: "/proc/self/cwd/b.ts",
    resolved: "/ws/src/real/b.ts",
    inside: true,
  },
  {
    name: "/proc/self/root",
    written: "/proc/self/root/ws/.env",
    absolute: "/proc/self/root/ws/.env",
    resolved: "/ws/.env",
    inside: true,
  },
  {
    name: "/proc/thread-self",
    written: "/proc/thread-self/root/etc/passwd",
    absolute: "/proc/thread-self/root/etc/passwd",
    resolved: "/etc/passwd",
    inside: false,
  },
  {
    name: "/proc/self/task",
    written: "/proc/self/task/7/cwd/.env",
    absolute: "/proc/self/task/7/cwd/.env",
    resolved: "/ws/.env",
    inside: true,
  },
  {
    name: "/proc of another process",
    written: "/proc/4711/root/ws/.env",
    absolute: "/proc/4711/root/ws/.env",
    resolved: "/ws/.env",
    inside: true,
  },
  {
    name: "/proc twice",
    written: "/proc/self/root/proc/self/cwd/.env",
    absolute: "/proc/self/root/proc/self/cwd/.env",
    resolved: "/ws/.env",
    inside: true,
  },
  {
    name: "an open file is its own name",
    written: "/proc/self/fd/0",
    absolute: "/proc/self/fd/0",
    resolved: "/proc/self/fd/0",
    inside: false,
  },
  {
    name: "below an open file",
    written: "/proc/self/fd/3/../x",
    absolute: "/proc/self/fd/x",
    resolved: undefined,
    inside: false,
  },
  {
    name: "the stored spelling where case does not count",
    written: "SRC/A.TS",
    fs: { caseInsensitive: true },
    absolute: "/ws/src/a.ts",
    resolved: "/ws/src/a.ts",
    inside: true,
  },
  {
    name: ".ENV is .env where case does not count",
    written: ".ENV",
    fs: { caseInsensitive: true },
    absolute: "/ws/.env",
    resolved: "/ws/.env",
    inside: true,
  },
  {
    name: "a name that is not there is folded",
    written: "New/README",
    fs: { caseInsensitive: true },
    absolute: "/ws/new/readme",
    resolved: "/ws/new/readme",
    inside: true,
  },
  {
    name: "the root in another case",
    written: "/WS/docs/X.md",
    fs: { caseInsensitive: true },
    absolute: "/ws/docs/x.md",
    resolved: "/ws/docs/x.md",
    inside: true,
  },
  {
    name: "case counts elsewhere",
    written: ".ENV",
    absolute: "/ws/.ENV",
    resolved: "/ws/.ENV",
    inside: true,
  },
  {
    name: "composed and decomposed letters",
    written: "cafe\u0301.txt",
    fs: { unicodeNormalizing: true },
    absolute: "/ws/caf\u00e9.txt",
    resolved: "/ws/caf\u00e9.txt",
    inside: true,
  },
  {
    name: "a stored decomposed name",
    written: "caf\u00e9.txt",
    fs: { unicodeNormalizing: true, files: ["cafe\u0301.txt"] },
    absolute: "/ws/cafe\u0301.txt",
    resolved: "/ws/cafe\u0301.txt",
    inside: true,
  },
];

describe("pathFact() on a described file system", () => {
  for (const row of rows) {
    test(row.name, () => {
      const fs = describedFiles({ root: "/ws", files, ...row.fs });
      assertEquals(pathFact(row.written, place, row.cwd, fs), {
        written: row.written,
        absolute: row.absolute,
        ...(row.resolved === undefined ? {} : { resolved: row.resolved }),
        inWorkspace: row.inside,
      });
    });
  }

  test("names the protect entry of where a link leads", () => {
    const fs = describedFiles({ root: "/ws", symlinks: { x: ".writ" } });
    assertEquals(pathFact("x/policy.yaml", place, undefined, fs).protectedBy, ".writ/**");
  });

  test("names the protect entry of an unresolvable path as written", () => {
    const fs = describedFiles({ root: "/ws", symlinks: { ".writ/x": "x" } });
    assertEquals(pathFact(".writ/x", place, undefined, fs), {
      written: ".writ/x",
      absolute: "/ws/.writ/x",
      inWorkspace: false,
      protectedBy: ".writ/**",
    });
  });

  test("does not throw when the file system does, and resolves nothing", () => {
    const fs = {
      lstat: () => {
        throw new Error("EACCES");
      },
      readlink: () => "",
    };
    assertEquals(pathFact("a", place, undefined, fs), {
      written: "a",
      absolute: "/ws/a",
      inWorkspace: false,
    });
  });

  test("looks at each path once, where that is asked for", () => {
    const seen: string[] = [];
    const fs = describedFiles({ root: "/ws", symlinks: { x: ".writ" } });
    const files = lookedAtOnce({
      ...fs,
      lstat: (path) => {
        seen.push(path);
        return fs.lstat(path);
      },
    });
    const facts = ["x/a", "x/b", "x/a"].map((written) => pathFact(written, place, undefined, files).resolved);
    assertEquals(facts, ["/ws/.writ/a", "/ws/.writ/b", "/ws/.writ/a"]);
    assertEquals(seen, [...new Set(seen)]);
  });

  test("everything is inside of a root that is the top", () => {
    const top = { ...place, root: "/" };
    assertEquals(pathFact("/etc/passwd", top, undefined, describedFiles({ root: "/" })).inWorkspace, true);
  });
});

describe("pathFact() on this machine", () => {
  let ws: Workspace;
  beforeEach(() => ws = makeWorkspace());
  afterEach(() => ws.remove());
  const resolved = (written: string) => pathFact(written, ws.at).resolved;

  test("follows links inside and out, dangling ones too", () => {
    ws.write("真/ein b.txt", "x");
    ws.link("in", "真");
    ws.link("out", ws.outside);
    ws.link("dang", `${ws.outside}/none`);
    assertEquals(["in/ein b.txt", "out/new", "dang", "in/../x"].map(resolved), [
      `${ws.root}/真/ein b.txt`,
      `${ws.outside}/new`,
      `${ws.outside}/none`,
      `${ws.root}/x`,
    ]);
  });

  test("a loop, and a file where a folder should be", () => {
    ws.link("l", "l");
    ws.write("file", "");
    assertEquals([resolved("l"), resolved("file/x")], [undefined, `${ws.root}/file/x`]);
  });

  test("agrees with the system about a deep chain of links and ..", () => {
    mkdirSync(`${ws.root}/a/b/c`, { recursive: true });
    ws.link("j", "a/b/c");
    ws.link("a/k", "../j/..");
    ws.write("a/b/f", "x");
    assertEquals(resolved("a/k/f"), `${ws.root}/a/b/f`);
  });

  test("agrees with realpath wherever that has an answer", () => {
    const names = ["a", "b", "l1", "l2", "l3", "l4", "f", "..", "."];
    for (const folder of ["a/b", "b/a", "a/a"]) ws.write(`${folder}/f`, "x");
    for (
      const [at, to] of [["l1", "a/b"], ["a/l2", "../b"], ["b/l3", "l3"], ["a/b/l4", "../../l1"], [
        "b/a/l1",
        "f",
      ]]
    ) {
      ws.link(at ?? "", to ?? "");
    }
    const seen = { equal: 0, none: 0 };
    for (let seed = 1, n = 0; n < 3000; n++) {
      const parts: string[] = [];
      for (let k = 0; k <= n % 6; k++) {
        parts.push(names[(seed = seed * 48271 % 2147483647) % names.length] ?? "");
      }
      const real = realPathOr(`${ws.root}/${parts.join("/")}`);
      if (real === undefined) {
        seen.none++;
        continue;
      }
      seen.equal++;
      assertEquals([parts, resolved(parts.join("/"))], [parts, real]);
    }
    assert(seen.equal > 300 && seen.none > 300, JSON.stringify(seen));
  });

  test("tells files, folders, links and nothing apart", () => {
    ws.write("d/f", "");
    ws.link("l", "d");
    const kinds = ["d", "d/f", "l", "none", "d/f/below"].map((p) => realFiles.lstat(`${ws.root}/${p}`));
    assertEquals(kinds, ["dir", "file", "link", undefined, undefined]);
  });
});

function realPathOr(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}
