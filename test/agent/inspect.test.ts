import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { type EffectOf, hostFacts, inspectCall, inspectOffline } from "../../src/agent/inspect.ts";
import type { Network, Place, Tool } from "../../src/agent/ports.ts";
import type { Effect } from "../../src/core/decision.ts";
import type { Mode } from "../../src/core/facts.ts";
import { fetchUrl } from "../../src/tools/fetch_url.ts";

const url = "https://a.test/x";
const public_ = { written: url, host: "a.test", private: false };
const private_ = { ...public_, private: true, leadsTo: "10.0.0.1" };

function place(
  answer: readonly string[] = ["10.0.0.1"],
): { readonly place: Place; readonly asked: string[] } {
  const asked: string[] = [];
  const network: Network = {
    addresses: async ({ host }) => {
      asked.push(host);
      return { ok: true, addresses: answer };
    },
  };
  return { place: { root: "/ws", home: "/home", protectedBy: () => undefined, network }, asked };
}

async function inspect(tool: Tool, at: Place, effectOf: EffectOf, mode: Mode = "interactive") {
  const signal = new AbortController().signal;
  return await inspectCall(tool, { url }, { place: at, mode, sourcedBy: ["skill:s"], signal, effectOf });
}

describe("inspectCall() looks a name up", () => {
  const cases: readonly (readonly [string, Mode, Effect, Effect, boolean])[] = [
    ["when the call is allowed", "interactive", "allow", "deny", true],
    ["when only a private address would be allowed", "interactive", "deny", "allow", true],
    ["when a person may be asked", "interactive", "ask", "deny", true],
    ["not when it is denied wherever the name leads", "interactive", "deny", "deny", false],
    ["not when nobody can be asked", "unattended", "ask", "ask", false],
    ["also unattended when it is allowed", "unattended", "ask", "allow", true],
  ];
  for (const [name, mode, ifPublic, ifPrivate, looked] of cases) {
    test(name, async () => {
      const { place: at, asked } = place();
      const effectOf: EffectOf = (facts) => {
        const [subject] = facts.subjects;
        return subject.kind === "host" && subject.host.private ? ifPrivate : ifPublic;
      };
      assertEquals(await inspect(fetchUrl, at, effectOf, mode), {
        ...hostFacts("fetch_url", looked ? private_ : public_, { mode, sourcedBy: ["skill:s"] }),
      });
      assertEquals(asked, looked ? ["a.test"] : []);
    });
  }

  test("and decides on what the call itself would be", async () => {
    const { place: at } = place(["8.8.8.8"]);
    const heard: unknown[] = [];
    await inspect(fetchUrl, at, (facts) => {
      heard.push(facts);
      return "allow";
    });
    assertEquals(heard, [hostFacts("fetch_url", public_, { mode: "interactive", sourcedBy: ["skill:s"] })]);
  });
});

describe("a tool that fails while it looks", () => {
  const broken = (part: "inspect" | "lookUp"): Tool => ({
    name: "broken",
    description: "",
    inputSchema: { type: "object" },
    inspect: () => {
      if (part === "inspect") throw new Error("no eyes");
      return { risk: "read", subjects: [{ kind: "call" }] };
    },
    lookUp: async () => {
      if (part === "lookUp") throw new Error("no eyes");
    },
    run: async () => ({ ok: true, content: "" }),
  });
  const denied = {
    tool: "broken",
    args: { url },
    risk: "execute",
    subjects: [{ kind: "call" }],
    box: "default",
    sourcedBy: ["skill:s"],
    mode: "interactive",
    errors: [{ code: "inspect_failed", message: "broken could not be inspected: no eyes" }],
  } as const;

  for (const part of ["inspect", "lookUp"] as const) {
    test(`is denied, not a crash: ${part}`, async () => {
      assertEquals(await inspect(broken(part), place().place, () => "allow"), denied);
    });
  }

  test("is denied where nothing is looked up, too", () => {
    const site = { place: place().place, mode: "interactive", sourcedBy: ["skill:s"] } as const;
    assertEquals(inspectOffline(broken("inspect"), { url }, site), denied);
  });
});

test("inspectOffline() looks nothing up", () => {
  const { place: at, asked } = place();
  const site = { place: at, mode: "interactive", sourcedBy: [] } as const;
  assertEquals(inspectOffline(fetchUrl, { url }, site), hostFacts("fetch_url", public_, site));
  assertEquals(asked, []);
});
