import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { parseCommandPattern } from "../../src/core/command.ts";
import { commandMiss } from "../../src/core/command_miss.ts";
import type { Part } from "../../src/core/facts.ts";
import type { Miss } from "../../src/core/near_miss.ts";
import { commandSubject } from "../support/calls.ts";

type Row = readonly [pattern: string, text: string, miss: Miss | undefined, more?: Partial<Part>];

function missOf([pattern, text, , more]: Row, reach: "allow" | "restrict"): Miss | undefined {
  const parsed = parseCommandPattern(pattern);
  assert(!("error" in parsed), pattern);
  const { part } = commandSubject(text, more);
  const miss = commandMiss(parsed, part, reach);
  return miss === undefined ? undefined : { ...miss, progress: Math.round(miss.progress * 1000) / 1000 };
}

const unknown = (at: number) => ({ blurs: [{ at, pieces: ["", ""], many: true }] });

describe("commandMiss() of a rule that allows", () => {
  const rows: readonly Row[] = [
    ["git push *", "git push x", undefined],
    ["git push *", "ls", { missed: "word", why: "word 1 is `git`, the call has `ls`", progress: 0 }],
    ["git push *", "git pull", {
      missed: "word",
      why: "word 2 is `push`, the call has `pull`",
      progress: 0.333,
    }],
    ["git push *", "git", {
      missed: "word",
      why: "word 2 is `push`, the call ends before it",
      progress: 0.333,
    }],
    ["git push", "git push x", {
      missed: "word",
      why: "the rule ends after word 2, the call goes on with `x`",
      progress: 0.9,
    }],
    ["git push *", "/bin/git push", {
      missed: "word",
      why: "word 1 is `git`, the call runs `/bin/git`: an allow rule names a program as it is written",
      progress: 0.5,
    }],
    ["echo git *", "echo /bin/git", {
      missed: "word",
      why: "word 2 is `git`, the call has `/bin/git`",
      progress: 0.333,
    }],
    ["git push *", "git $X", {
      missed: "unknown",
      why: "word 2 is `push`; what `$X` becomes is only known when it runs",
      progress: 0.333,
    }, { blurs: [...unknown(1).blurs, ...unknown(2).blurs] }],
    ["git push *", "git pull $X", {
      missed: "word",
      why: "word 2 is `push`, the call has `pull`",
      progress: 0.333,
    }, unknown(2)],
    ["git push *", "git push", {
      missed: "inside",
      why: "it runs inside another command; an allow rule covers only what the text itself names",
      progress: 0.92,
    }, { level: "inner" }],
    ["find *", "find . -exec ls -delete", {
      missed: "option",
      why:
        "`*` does not cover the option `-exec` (`-exec`), since with it the program runs another one; a rule must name it",
      progress: 0.98,
    }],
    ["find . -exec *", "find . -exec ls -delete", {
      missed: "option",
      why:
        "`*` does not cover the option `-delete` (`-delete`), since with it the program writes; a rule must name it",
      progress: 0.98,
    }],
    ["sort -o x *", "sort -o x", {
      missed: "assignment",
      why: "the call sets `A=1`, which the rule does not name",
      progress: 0.97,
    }, {
      assignments: ["A=1", "B=1"],
    }],
    ["A=1 B=1 date", "date", {
      missed: "assignment",
      why: "the rule names `A=1`, which the call does not set",
      progress: 0.97,
    }],
    ["A=1 B=1 date", "date", {
      missed: "assignment",
      why: "the rule names `B=1`, which the call does not set",
      progress: 0.97,
    }, {
      assignments: ["A=1"],
    }],
    ["time *", "time ls", {
      missed: "unknown",
      why: "runs a function; no allow rule covers that",
      progress: 0.95,
    }, {
      notUnderstood: "runs a function",
    }],
    ["git log *", "git log $X", {
      missed: "unknown",
      why: "a word of it is only known when it runs",
      progress: 0.95,
    }, unknown(2)],
  ];
  for (const row of rows) {
    test(`${row[0]} and ${row[1]} ${JSON.stringify(row[3] ?? {})}`, () =>
      assertEquals(missOf(row, "allow"), row[2]));
  }
});

describe("commandMiss() of a rule that restricts", () => {
  const rows: readonly Row[] = [
    ["ls *", "git -C x pull", { missed: "word", why: "word 1 is `ls`, the call has `git`", progress: 0 }],
    ["kubectl get a", "kubectl -n x get $Xb", {
      missed: "unknown",
      why: "word 3 is `a`; what `$Xb` becomes is only known when it runs",
      progress: 0.5,
    }, { blurs: [{ at: 4, pieces: ["", "b"], many: false }] }],
    ["git push *", "/bin/git -C x push", undefined],
    ["git push *", "ls", { missed: "word", why: "word 1 is `git`, the call has `ls`", progress: 0 }],
    ["git push *", "git -C x pull", {
      missed: "word",
      why: "word 2 is `push`, the call has `pull`",
      progress: 0.333,
    }],
    ["git push *", "git pull", {
      missed: "word",
      why: "word 2 is `push`, the call has `pull`",
      progress: 0.333,
    }],
    ["git push origin *", "git push other", {
      missed: "word",
      why: "word 3 is `origin`, the call has `other`",
      progress: 0.5,
    }],
    ["git push", "git push x", {
      missed: "word",
      why: "the rule ends after word 2, the call goes on with `x`",
      progress: 0.9,
    }],
    ["git push", "git -C x push y", {
      missed: "word",
      why: "the rule ends after word 2, the call goes on with `y`",
      progress: 0.9,
    }],
    ["A=1 B=1 ls", "ls x", {
      missed: "word",
      why: "the rule ends after word 1, the call goes on with `x`",
      progress: 0.9,
    }],
    ["A=1 B=1 C=1 ls *", "ls x", {
      missed: "assignment",
      why: "the rule names `B=1`, which the call does not set",
      progress: 0.97,
    }, {
      assignments: ["A=1"],
    }],
    ["A=1 ls", "ls", {
      missed: "assignment",
      why: "the rule names `A=1`, which the call does not set",
      progress: 0.97,
    }],
    ["git push", "$X", {
      missed: "unknown",
      why: "word 1 is `git`; what `$X` becomes is only known when it runs",
      progress: 0,
    }, unknown(0)],
  ];
  for (const row of rows) {
    test(`${row[0]} and ${row[1]}`, () => assertEquals(missOf(row, "restrict"), row[2]));
  }
});
