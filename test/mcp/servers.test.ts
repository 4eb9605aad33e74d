import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { describe, test } from "bun:test";
import process from "node:process";
import type { ToolOutcome } from "../../src/agent/ports.ts";
import { isRunning } from "../support/machine.ts";
import { type HttpServer, type Kind, startHttpServer } from "../support/mcp/http_server.ts";
import { seen } from "../support/mcp/real_server.ts";
import { call, lacksOf, oddServer, realServer, toolOf, type Wanted, withServers } from "./harness.ts";

async function withHttp(kind: Kind, use: (server: HttpServer) => Promise<void>): Promise<void> {
  const server = await startHttpServer(kind);
  try {
    await use(server);
  } finally {
    await server.close();
  }
}

const all = {
  echo: "read",
  add: "execute",
  parts: "read",
  fail: "write",
  refuse: "read",
  ask: "read",
} as const;

async function talk(wanted: Wanted): Promise<void> {
  await withServers([{ ...wanted, tools: all }], async (servers) => {
    assertEquals(lacksOf(servers), []);
    assertEquals(servers.tools.map((t) => [t.name, t.description, t.inspect({}, {} as never)]), [
      ["mcp.s.echo", "Say it again", { risk: "read", subjects: [{ kind: "call" }] }],
      ["mcp.s.add", "Add two numbers", { risk: "execute", subjects: [{ kind: "call" }] }],
      ["mcp.s.parts", "Every kind of content", { risk: "read", subjects: [{ kind: "call" }] }],
      ["mcp.s.fail", "Fails", { risk: "write", subjects: [{ kind: "call" }] }],
      ["mcp.s.refuse", "Is refused by the protocol", { risk: "read", subjects: [{ kind: "call" }] }],
      ["mcp.s.ask", "Asks the client for what it may", { risk: "read", subjects: [{ kind: "call" }] }],
    ]);
    assertEquals(toolOf(servers, "echo").inputSchema, {
      type: "object",
      properties: { text: { type: "string", description: "what to say" } },
      required: ["text"],
      additionalProperties: false,
    });
    assertEquals(await call(servers, "echo", { text: "grüße\n文" }), { ok: true, content: "grüße\n文" });
    assertEquals(await call(servers, "add", { a: 1, b: 2 }), {
      ok: true,
      content: '{"sum":3}',
      data: { sum: 3 },
    });
    assertEquals(await call(servers, "parts"), {
      ok: true,
      content: [
        "words",
        "[image image/png, 6 bytes, not shown]",
        "[audio audio/wav, 2 bytes, not shown]",
        "[resource page https://h/page]",
        "[resource file:///a.txt]",
        "of a file",
        "[resource file:///b x/y, 3 bytes, not shown]",
      ].join("\n"),
    });
    assertEquals(await call(servers, "fail"), { ok: false, code: "tool_error", content: "it went wrong" });
    const refused = await call(servers, "refuse");
    assertEquals([refused.ok, refused.code], [false, "server_error"]);
    assertStringIncludes(refused.content, "the server `s` refused the call: ");
    const many = await Promise.all([1, 2, 3, 4, 5].map((n) => call(servers, "echo", { text: `${n}` })));
    assertEquals(many.map((m) => m.content), ["1", "2", "3", "4", "5"]);
  });
}

describe("a real server", () => {
  test("over pipes", () => talk({ tools: {} }));
  test("over pipes, when it speaks only the newer way", () =>
    talk({ argv: [...realServer, "--modern"], tools: {} }));
  for (const kind of ["sessions", "json", "stateless", "modern"] as const) {
    test(`over HTTP, ${kind}`, () => withHttp(kind, ({ url }) => talk({ url, tools: {} })));
  }

  test("is refused samples, questions and roots, and a changed list of tools changes nothing", () =>
    withServers([{ tools: { ask: "read" } }], async (servers) => {
      assertEquals(await call(servers, "ask"), { ok: true, content: "refused refused refused" });
      assertEquals(await call(servers, "ask"), { ok: true, content: "refused refused refused" });
    }));

  test("sees the environment that it is given, and runs in the folder that it is given", () =>
    withServers([{ tools: { env: "read" }, env: { SERVER_TOKEN: "t" } }], async (servers) => {
      const [names, token, folder] = (await call(servers, "env")).content.split("\n");
      assertEquals(names?.split(" ").filter((n) => !/^(PWD|SHLVL|_|OLDPWD)$/.test(n)), [
        "CHILD_OF",
        "PATH",
        "SERVER_TOKEN",
      ]);
      assertEquals(token, "t");
      assertMatch(folder ?? "", /test\/support$/);
    }));

  test("that dies within a call fails it, and those after it, and says why", () =>
    withServers([{ tools: { exit: "execute", echo: "read" } }], async (servers) => {
      const content =
        "the server `s` cannot be reached: it ended with exit 3: the server had enough; its tools are out of use in this session";
      assertEquals(await call(servers, "exit"), { ok: false, code: "server_down", content, unknown: true });
      // This one was not sent any more.
      assertEquals(await call(servers, "echo", { text: "x" }), { ok: false, code: "server_down", content });
    }));

  test("is told when a call is cancelled", () =>
    withHttp(
      "sessions",
      ({ url }) =>
        withServers([{ url, tools: { wait: "read", echo: "read" } }], async (servers) => {
          const before = seen.cancelled;
          const stop = new AbortController();
          const waiting = call(servers, "wait", {}, stop.signal);
          await call(servers, "echo", { text: "x" });
          stop.abort();
          assertEquals(await waiting, {
            ok: false,
            code: "cancelled",
            content: "cancelled",
            unknown: true,
          });
          while (seen.cancelled === before) await new Promise((done) => setTimeout(done, 5));
          assertEquals(await call(servers, "echo", { text: "still there" }), {
            ok: true,
            content: "still there",
          });
        }),
    ));

  test("that takes longer than a call may fails it, and answers the next", () =>
    withServers([{ tools: { wait: "read", echo: "read" }, callMs: 300 }], async (servers) => {
      assertEquals(await call(servers, "wait"), {
        ok: false,
        code: "timeout",
        content: "no answer within 300 ms (`call_timeout`)",
        unknown: true,
      });
      assertEquals(await call(servers, "echo", { text: "x" }), { ok: true, content: "x" });
    }));
});

describe("over HTTP", () => {
  test("headers go with every request, and the session is ended", () =>
    withHttp("sessions", async (http) => {
      const headers = { Authorization: "Bearer t0ken", "X-Team": "a" };
      await withServers([{ url: http.url, headers, tools: { echo: "read" } }], async (servers) => {
        await call(servers, "echo", { text: "x" });
      });
      assert(http.requests.every((r) =>
        r.headers["authorization"] === "Bearer t0ken" && r.headers["x-team"] === "a"
      ));
      assertEquals(
        http.requests.map((r) =>
          r.method
        ),
        ["POST", "POST", "POST", "POST", "POST", "POST", "DELETE"],
      );
      assert(
        http.requests.slice(1).every((r) => r.headers["mcp-session-id"] !== undefined),
      );
    }));

  test("a session that is over fails the call", () =>
    withHttp(
      "sessions",
      (http) =>
        withServers([{ url: http.url, tools: { echo: "read" } }], async (servers) => {
          http.forget();
          assertEquals(await call(servers, "echo", { text: "x" }), {
            ok: false,
            code: "server_down",
            content:
              "the server `s` cannot be reached: HTTP status 404: the session is over, or the address is wrong",
            unknown: true,
          });
        }),
    ));

  test("a redirect to another place is not followed, and no header goes there", () =>
    withHttp("stateless", (other) =>
      withHttp("stateless", async (http) => {
        http.instead = (_, response) => {
          response.writeHead(307, { location: other.url }).end();
          return true;
        };
        await withServers(
          [{ url: http.url, headers: { X: "y" }, tools: { echo: "read" } }],
          async (servers) => {
            assertEquals(servers.tools, []);
            assertMatch(
              lacksOf(servers)[0]?.[1] ?? "",
              /^HTTP status 307: .*Redirect to http:.* not followed/,
            );
          },
        );
        assertEquals(other.requests, []);
      })));

  const answers: readonly (readonly [string, HttpServer["instead"], RegExp, string])[] = [
    [
      "a status that is an error",
      (_, response) => !!response.writeHead(500).end("broken"),
      /cannot be reached: HTTP status 500: .*broken/,
      "server_down",
    ],
    [
      "a status that says no",
      (_, response) => !!response.writeHead(403).end("not you"),
      /refused the call: HTTP status 403: .*not you/,
      "server_error",
    ],
    [
      "what is no message",
      (_, response) => !!response.writeHead(200, { "content-type": "application/json" }).end("{"),
      /cannot be reached/,
      "server_down",
    ],
    [
      "a page",
      (_, response) => !!response.writeHead(200, { "content-type": "text/html" }).end("<p>"),
      /cannot be reached: Unexpected content type: text\/html/,
      "server_down",
    ],
    ["a cut", (request) => !!request.socket.destroy(), /cannot be reached/, "server_down"],
    [
      "more than is taken",
      (_, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        for (let i = 0; i < 20; i++) response.write(" ".repeat(1024 * 1024));
        return !!response.end();
      },
      /cannot be reached: .*more than 16777216 bytes/,
      "server_down",
    ],
    ["nothing", () => true, /no answer within 1500 ms/, "timeout"],
    [
      "a stream that only keeps on",
      (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const timer = setInterval(() => response.write(": still here\n\n"), 20);
        response.on("close", () => clearInterval(timer));
        return true;
      },
      /no answer within 1500 ms/,
      "timeout",
    ],
  ];
  for (const [name, instead, content, code] of answers) {
    test(`${name} is a failed call, and the next one may do`, () =>
      withHttp(
        "stateless",
        (http) =>
          withServers(
            [{ url: http.url, tools: { echo: "read" }, callMs: 1500, startMs: 1400 }],
            async (servers) => {
              http.instead = instead;
              const failed = await call(servers, "echo", { text: "x" });
              const known = code === "server_error" ? undefined : true;
              assertEquals([failed.code, failed.unknown], [code, known], failed.content);
              assertMatch(failed.content, content);
              http.instead = undefined;
              assertEquals(await call(servers, "echo", { text: "y" }), { ok: true, content: "y" });
            },
          ),
      ));
  }

  test("nobody there", () =>
    withServers([{ url: "http://127.0.0.1:1/mcp", tools: { echo: "read" } }], async (servers) => {
      assertEquals([servers.tools, servers.lacks.length], [[], 1]);
    }));
});

describe("a server that does wrong at its start", () => {
  const rows: readonly (readonly [string, readonly [string, ...string[]], string, number?])[] = [
    ["is not there", ["no-such-server"], "no program `no-such-server`: it is on no folder of PATH"],
    ["ends at once", ["bash", "--norc", "-c", "echo no key >&2; exit 4"], "it ended with exit 4: no key"],
    ["says nothing", oddServer("silent"), "it was not ready after 1500 ms (`timeout`)", 1500],
    [
      "answers what was not asked",
      oddServer("wrong-ids"),
      "it was not ready after 1500 ms (`timeout`)",
      1500,
    ],
    ["does not read", ["sleep", "300"], "it was not ready after 300 ms (`timeout`)", 300],
    ["writes no messages", oddServer("nonsense"), "it writes what is no message, such as `hello`"],
    ["writes one line without end", oddServer("long-line"), "it writes a line of more than 8388608 bytes"],
    ["writes empty lines", ["yes", ""], "it writes what is no message, such as ``"],
    ["writes bytes that are no text", ["cat", "/dev/zero"], "it writes a line of more than 8388608 bytes"],
    ["has no list of tools", oddServer("no-list"), "its list of tools is no list"],
  ];
  for (const [name, argv, reason, startMs] of rows) {
    test(`${name}: its tools are absent, and it is gone`, () =>
      withServers(
        [{ argv, tools: { do: "read" }, ...(startMs === undefined ? {} : { startMs }) }],
        async (servers) => {
          assertEquals([servers.tools.length, lacksOf(servers)], [0, [["s", reason]]]);
        },
      ));
  }

  test("holds up no other server", () =>
    withServers([
      { name: "a", argv: ["sleep", "300"], tools: { do: "read" }, startMs: 300 },
      { tools: { echo: "read" } },
    ], async (servers) => {
      assertEquals(servers.tools.map((t) => t.name), ["mcp.s.echo"]);
      assertEquals(lacksOf(servers), [["a", "it was not ready after 300 ms (`timeout`)"]]);
      assertEquals(await call(servers, "echo", { text: "x" }), { ok: true, content: "x" });
    }));

  const tools:
    readonly (readonly [string, string, readonly string[], readonly (readonly [string, string])[]])[] = [
      ["greets first", "greets", ["mcp.s.do"], []],
      ["has odd tools beside those that are listed", "odd-neighbours", ["mcp.s.do"], []],
      ["has a tool twice", "twice", [], [["do", "the server has it more than once"]]],
      ["has a list without end", "endless", [], [[
        "do",
        `the server has no such tool; it has ${
          Array.from({ length: 50 }, (_, i) => `a${i}`).sort().slice(0, 20).map((n) => `\`${n}\``).join(", ")
        } and 30 more`,
      ]]],
    ];
  for (const [name, mode, names, lacks] of tools) {
    test(name, () =>
      withServers([{ argv: oddServer(mode), tools: { do: "read" } }], async (servers) => {
        assertEquals([servers.tools.map((t) => t.name), lacksOf(servers)], [names, lacks]);
      }));
  }

  test("without listed tools is not started", () =>
    withServers([{ argv: ["no-such-server"], tools: {} }], async (servers) => {
      assertEquals([servers.tools, servers.lacks], [[], []]);
    }));
});

describe("a server that does wrong in a call", () => {
  const down = (why: string) =>
    `the server \`s\` cannot be reached: ${why}; its tools are out of use in this session`;
  const rows: readonly (readonly [string, string, ToolOutcome])[] = [
    ["dies", "dies", {
      ok: false,
      code: "server_down",
      content: down("it ended with exit 9"),
      unknown: true,
    }],
    ["floods", "floods", {
      ok: false,
      code: "server_down",
      content: down("it does not stop writing"),
      unknown: true,
    }],
    ["answers what is no result", "no-result", {
      ok: false,
      code: "server_error",
      content: "the server `s` refused the call: its answer has a wrong shape",
      unknown: true,
    }],
    ["answers odd parts", "odd-parts", {
      ok: true,
      content: [
        "[a part that is not understood]",
        "[a part of type unknown, not shown]",
        "[a part of type unknown, not shown]",
        "[a part of type dance, not shown]",
      ].join("\n"),
    }],
    ["answers nothing", "empty", { ok: true, content: "[no output]", partial: true }],
    ["says nothing", "hangs", {
      ok: false,
      code: "timeout",
      content: "no answer within 1000 ms (`call_timeout`)",
      unknown: true,
    }],
  ];
  for (const [name, mode, expected] of rows) {
    test(
      name,
      () =>
        withServers([{
          argv: oddServer(mode),
          tools: { do: "read" },
          callMs: mode === "hangs" ? 1000 : 20_000,
        }], async (servers) => {
          const outcome = await call(servers, "do");
          assertEquals(
            { ...outcome, content: expected["content"] === "" ? "" : outcome.content },
            expected as never,
          );
        }),
    );
  }

  test("answers more than is kept: head and tail", () =>
    withServers([{ argv: oddServer("big"), tools: { do: "read" } }], async (servers) => {
      const { content, ...rest } = await call(servers, "do");
      assertEquals(rest, { ok: true, partial: true });
      assertMatch(content, /^headx+\n\[… \d+ characters cut …\]\nx+tail$/);
      assert(content.length < 10_100);
    }));
});

describe("the end", () => {
  test("a server that will not go is ended with what it started", async () => {
    let pids: readonly number[] = [];
    await withServers([{ argv: oddServer("stubborn"), tools: { do: "read" } }], async (servers) => {
      assertEquals(servers.tools.length, 1);
      pids = descendantsOf(process.pid);
      assert(pids.length >= 2);
    });
    assertEquals(pids.filter(isRunning), []);
  });
});

function descendantsOf(pid: number): readonly number[] {
  const { readdirSync, readFileSync } = process.getBuiltinModule("node:fs");
  const rows = readdirSync("/proc").filter((n) => /^\d+$/.test(n)).flatMap((n) => {
    try {
      const stat = readFileSync(`/proc/${n}/stat`, "latin1");
      return [{ pid: Number(n), parent: Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]) }];
    } catch {
      return [];
    }
  });
  const found = new Set<number>([pid]);
  for (let size = 0; size !== found.size;) {
    size = found.size;
    for (const row of rows) if (found.has(row.parent)) found.add(row.pid);
  }
  found.delete(pid);
  return [...found];
}
