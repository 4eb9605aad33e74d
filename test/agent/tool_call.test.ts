// How often a call is looked at on its way to a decision.
import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import type { Agent } from "../../src/agent/agent.ts";
import { repeatWatch, runCalls } from "../../src/agent/calls.ts";
import { type Inspection, LogFailure, type Tool } from "../../src/agent/ports.ts";
import { stopFor } from "../../src/agent/stop.ts";
import type { Risk } from "../../src/core/decision.ts";
import { emptyGateState } from "../../src/core/gate_state.ts";
import { layerOf } from "../support/rules.ts";

function toolOf(name: string, risk: Risk, said: string[], more: Partial<Tool> = {}): Tool {
  return {
    name,
    description: "",
    inputSchema: { type: "object" },
    inspect(args): Inspection {
      said.push(`inspect ${name} ${args["n"]}`);
      return { risk, subjects: [{ kind: "call" }] };
    },
    async run(args) {
      await Promise.resolve();
      said.push(`run ${name} ${args["n"]}`);
      return { ok: true, content: "" };
    },
    ...more,
  };
}

async function steps(
  make: (said: string[]) => readonly Tool[],
  names: readonly string[],
  fault: unknown = new Error("no fork here"),
) {
  const said: string[] = [];
  const offered = make(said);
  const agent = {
    policy: {
      root: "/ws",
      layers: [layerOf("user", { allow: offered.map((t) => t.name) })],
      gates: [],
      limits: { toolCalls: 100, sameCall: 100 },
      skills: { forced: [], undeclaredTools: "read_only", combineBounds: "intersection" },
    },
    recorder: {
      state: {
        active: [],
        gates: emptyGateState,
        transcript: [],
        turn: { toolCalls: names.length, changedAt: 0 },
      },
      emit: () => {},
      sync: async () => {},
    },
    catalog: { get: (name: string) => ({ name, mode: "fork", modelInvocable: true }), items: [] },
    checkArguments: () => [],
    clock: { elapsed: () => 0 },
    place: { root: "/ws" },
    mode: "interactive",
    grants: [],
  } as unknown as Agent;
  const turn = {
    signal: new AbortController().signal,
    offered,
    waiting: <T>(work: () => Promise<T>) => work(),
    fork: () => Promise.reject(fault),
  };
  const calls = names.map((name, i) => ({ type: "call" as const, id: `c${i}`, name, input: { n: i } }));
  await runCalls(agent, turn, calls as never, repeatWatch());
  return said;
}

describe("runCalls() looks at a call", () => {
  test("once", async () => {
    assertEquals(await steps((said) => [toolOf("shell", "execute", said)], ["shell", "shell"]), [
      "inspect shell 0",
      "run shell 0",
      "inspect shell 1",
      "run shell 1",
    ]);
  });

  test("once where it is only a read, beside others", async () => {
    const said = await steps((said) => [toolOf("read_file", "read", said)], ["read_file", "read_file"]);
    assertEquals(said.filter((s) => s.startsWith("inspect")), ["inspect read_file 0", "inspect read_file 1"]);
  });

  test("once more after what ran before it has ended", async () => {
    const make = (said: string[]) => [toolOf("read_file", "read", said), toolOf("shell", "execute", said)];
    assertEquals(await steps(make, ["read_file", "shell"]), [
      "inspect read_file 0",
      "inspect shell 1",
      "run read_file 0",
      "inspect shell 1",
      "run shell 1",
    ]);
  });

  test("once more when it has to look things up", async () => {
    const make = (said: string[]) => [
      toolOf("fetch_url", "network", said, {
        async lookUp(args) {
          said.push(`look up ${args["n"]}`);
        },
      }),
    ];
    assertEquals(await steps(make, ["fetch_url"]), [
      "inspect fetch_url 0",
      "look up 0",
      "inspect fetch_url 0",
      "run fetch_url 0",
    ]);
  });
});

describe("a call that throws", () => {
  const loads = (said: string[]) => [
    toolOf("load_skill", "read", said, { run: (_, at) => at.skills.load("review", "") }),
  ];
  const thrown = async (fault: unknown) => {
    try {
      await steps(loads, ["load_skill"], fault);
    } catch (error) {
      return error;
    }
  };
  const { signal } = new AbortController();
  const turn = { user: signal, deadline: signal, policy: { limits: {} } } as never;

  test("ends the turn as an internal error when a fork that it asked for was at fault", async () => {
    const fault = new TypeError("x is undefined");
    assertEquals(stopFor(await thrown(fault), turn), {
      stop: "internal_error",
      message: "x is undefined",
      error: fault,
    });
  });

  test("ends the turn for the log when that could not be written in a fork", async () => {
    const fault = new LogFailure("log_unwritable", "disk full");
    assertEquals(stopFor(await thrown(fault), turn), { stop: "audit_error", message: "disk full" });
  });

  test("has a result like any other when its tool was at fault", async () => {
    const broken = (said: string[]) => [
      toolOf("read_file", "read", said, { run: () => Promise.reject(new Error("no eyes")) }),
    ];
    assertEquals(await steps(broken, ["read_file"]), ["inspect read_file 0"]);
  });
});
