import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { broadness } from "../../src/core/broad.ts";
import type { RuleEntry } from "../../src/load/policy_schema.ts";
import { ruleOf } from "../support/rules.ts";

const base = { root: "/home/u/ws", home: "/home/u" };

describe("broadness()", () => {
  const rows: readonly (readonly [entry: RuleEntry, faults: readonly string[]])[] = [
    ["shell", ["it covers every command"]],
    ["write_file", ["it covers every file of the workspace that `write_file` can reach"]],
    [{ tool: ["edit_file", "write_file"] }, [
      "it covers every file of the workspace that `edit_file` and `write_file` can reach",
    ]],
    ["fetch_url", ["it covers every host"]],
    ["read_file", []],
    [{ tool: "shell", risk: "read" }, []],
    [{ tool: "shell", risk: ["read", "write"] }, ["it covers every command"]],
    [{ tool: "mcp.x", arg: { a: "1" } }, []],
    [{ tool: ["shell", "mcp.x"], arg: { a: "1" } }, []],
    [{ tool: ["fetch_url"], arg: { a: "1" } }, []],
    ["load_skill(a)", []],
    ["fetch_url(a.b)", []],
    ["fetch_url(*)", ["`*` covers every host"]],
    [{ tool: "fetch_url", host: ["a.b", "*"] }, ["`*` covers every host"]],
    ["fetch_url(*.a.b)", []],
    ["shell(*)", ["`*` covers every command"]],
    ["shell(git *)", []],
    ["shell(python *)", ["`python *` lets `python` run any program text or file"]],
    ["shell(python3.12 *)", ["`python3.12 *` lets `python3.12` run any program text or file"]],
    ["shell(/usr/bin/node --import y *)", []],
    ["shell(/usr/bin/node --import *)", [
      "`/usr/bin/node --import *` lets `node` run any program text or file",
    ]],
    ["shell(deno run *)", ["`deno run *` lets `deno` run any program text or file"]],
    ["shell(bun test *)", []],
    ["shell(python)", []],
    ["shell(a2ps *)", []],
    ["shell(3sh *)", []],
    ["shell(m4 *)", ["`m4 *` lets `m4` run any program text or file"]],
    ["shell(sh2x *)", []],
    ["shell(pypy3 *)", ["`pypy3 *` lets `pypy3` run any program text or file"]],
    ["shell(sudo *)", ["`sudo *` lets `sudo` run any other command"]],
    ["shell(sudo ls)", []],
    [{ tool: "shell", command: ["ls *", "sh *"] }, ["`sh *` lets `sh` run any program text or file"]],
    ["edit_file(**)", ["`**` covers every file of the workspace"]],
    ["edit_file(**/*)", ["`**/*` covers every file of the workspace"]],
    ["edit_file(~/**)", ["`~/**` covers every file of your home"]],
    ["edit_file(/**)", ["`/**` covers every file of `/`"]],
    ["edit_file(/home/**)", ["`/home/**` covers every file of `/home`"]],
    ["edit_file(/home/u2/**)", []],
    ["edit_file(/ws/**)", []],
    ["edit_file(src/**)", []],
    ["edit_file(**/*.ts)", []],
    ["edit_file(**/*/x)", []],
    ["read_file(**)", []],
    [{ tool: "edit_file", path: ["a", "**"] }, ["`**` covers every file of the workspace"]],
  ];
  for (const [entry, faults] of rows) {
    test(JSON.stringify(entry), () => {
      assertEquals(broadness(ruleOf(entry, "allow"), base, (words) => words[0] === "sudo"), faults);
    });
  }
});
