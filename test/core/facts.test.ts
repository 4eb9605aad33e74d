import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { showSubject, type Subject } from "../../src/core/facts.ts";
import { commandSubject, hostSubject, pathSubject } from "../support/calls.ts";

test("showSubject() names the command, the file where it leads, the host; a call as a whole has no name", () => {
  const nowhere: Subject = {
    kind: "path",
    tool: "read_file",
    path: { written: "./a", absolute: "/ws/a", inWorkspace: true },
    operand: false,
  };
  const link = pathSubject("read_file", "/ws/a", { resolved: "/ws/b" });
  const subjects: readonly Subject[] = [
    { kind: "call" },
    commandSubject("ls -l"),
    link,
    nowhere,
    hostSubject("example.com"),
    commandSubject("git merge x", { level: "guessed", mayRun: "split" }),
  ];
  assertEquals(subjects.map(showSubject), [
    undefined,
    "ls -l",
    "/ws/b",
    "./a",
    "example.com",
    "`split` may run its words `git merge x`",
  ]);
});
