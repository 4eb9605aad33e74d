import { describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import colors from "picocolors";
import type { Approval } from "../../src/agent/ports.ts";
import { describeApproval } from "../../src/cli/approver.ts";
import type { Context } from "../../src/cli/command.ts";
import { toJsonLine } from "../../src/cli/json_line.ts";
import { liveView } from "../../src/cli/live_view.ts";
import { renderEvent } from "../../src/cli/render.ts";
import type { Event } from "../../src/core/event.ts";
import { escapeTerminal } from "../../src/core/text.ts";

const golden = fileURLToPath(new URL("../golden", import.meta.url));
const logged: readonly Event[] = readdirSync(golden).flatMap((name) =>
  readFileSync(`${golden}/${name}/events.jsonl`, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line))
);

const c0 = Array.from({ length: 32 }, (_, i) => i).filter((i) => i !== 9 && i !== 10);
const c1 = Array.from({ length: 33 }, (_, i) => 0x7f + i);
const sequences: { readonly [name: string]: string } = {
  "every C0": String.fromCharCode(...c0),
  "DEL and every C1": String.fromCharCode(...c1),
  "CSI": "\u001b[2J\u001b[1;1H\u009b31m",
  "OSC": "\u001b]52;c;cm0=\u0007\u001b]8;;http://x\u001b\\link\u009d0;title\u009c",
  "DCS, PM, APC, SOS": "\u001bP+q\u001b\\\u001b^x\u001b\\\u001b_x\u001b\\\u001bXx\u001b\\",
  "a return that writes over": "allowed\rdenied \b\b\b",
  "bidi": "\u202aa\u202bb\u202cc\u202dd\u202ee\u2066f\u2067g\u2068h\u2069\u061c\u200e\u200f",
  "zero width and separators": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u2028g\u2029h\u00adi",
  "tags": "\u{e0041}\u{e007f}\u{e0001}",
};
const raw =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u;
const paint = colors.createColors(false);

/** The same value with a text in the place of, or behind, every text of it; `keep` names members that say what a value is. */
function filled<T>(value: T, text: string, keep: readonly string[], key = ""): T {
  if (typeof value === "string") return (keep.includes(key) ? value : `${value}${text}`) as T;
  if (Array.isArray(value)) return value.map((item) => filled(item, text, keep, key)) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, filled(v, text, keep, k)])) as T;
}

const kinds = ["type", "kind", "by", "effect", "decision", "code"];
const approval: Approval = {
  call: { id: "c", tool: "write_file", args: { path: "a", content: "b" } },
  facts: {
    tool: "write_file",
    args: { path: "a" },
    risk: "write",
    box: "here",
    sourcedBy: ["skill:one"],
    subjects: [
      { kind: "call", tool: "write_file" },
      { kind: "part", tool: "shell", part: { text: "ls", notUnderstood: "why" } },
      { kind: "path", tool: "write_file", path: { written: "a", resolved: "/a" } },
      { kind: "host", tool: "fetch_url", host: { host: "h" } },
    ],
  },
  verdict: { effect: "ask", causes: [{ by: "rule", effect: "ask", rule: "r", text: "t" }] },
  preview: "+ new\n- old\n",
  grant: "write_file(a)",
  always: "write_file(b)",
  notAlways: "because",
} as unknown as Approval;

describe("nothing that steers a terminal is printed raw", () => {
  for (const [name, text] of Object.entries(sequences)) {
    test(`${name}: of any event, while it runs`, () => {
      const printed: string[] = [];
      const show = liveView({
        host: { stdoutIsTerminal: true },
        output: {
          result: (said: string) => printed.push(said),
          note: (said: string) => printed.push(said),
          safe: escapeTerminal,
          paint,
          paintResult: paint,
        },
      } as unknown as Context);
      let shown = 0;
      for (const event of logged) {
        const evil = filled(event, text, kinds);
        const lines = renderEvent(evil, paint);
        shown += lines.length;
        assertEquals(lines.filter((line) => raw.test(line) || line.includes("\n")), [], event.type);
        show(evil);
      }
      // Deltas one character at a time, so that no sequence is whole in one of them.
      const delta = logged.find((e) => e.type === "model.delta");
      assert(delta !== undefined);
      for (const c of text) show({ ...delta, data: { text: c } });
      assertEquals(printed.filter((said) => raw.test(said)), []);
      assert(shown > 20 && printed.length > shown);
    });

    test(`${name}: of a question`, () => {
      const lines = describeApproval(filled(approval, text, [...kinds, "risk"]), paint);
      assert(lines.length > 10);
      assertEquals(lines.filter((line) => raw.test(line)), []);
    });

    test(`${name}: as JSON`, () => {
      const line = toJsonLine(logged.slice(0, 50).map((e) => filled(e, text, [])));
      assertEquals([raw.test(line.slice(0, -1)), line.slice(0, -1).includes("\n")], [false, false]);
      assertEquals(
        JSON.parse(line)[0].data.version,
        `${(logged[0] as { data: { version?: string } }).data.version}${text}`,
      );
    });
  }
});

test("what a gate waits for is said once for each refusal", () => {
  const lines = logged.flatMap((event) => renderEvent(event, paint));
  const waited = logged.flatMap((e) => e.type === "gate.blocked" ? e.data.missing : []);
  const counts = (texts: readonly string[], text: string) => texts.filter((t) => t.includes(text)).length;
  const different = [...new Set(waited)];
  assertEquals(
    different.map((text) => [text, counts(lines, text)]),
    different.map((text) => [text, counts(waited, text)]),
  );
  assert(different.length > 2, JSON.stringify(different));
});
