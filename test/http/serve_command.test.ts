// `writ serve` as a process of its own, in the runtime that the tests run in: a session from the first request to the end.
import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { type ChildProcess, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { runtimes, runWith } from "../support/runtimes.ts";

const runtime = process.versions["bun"] === undefined ? "deno" : "bun";
const command = runtimes.find((r) => r.name === runtime)?.command ?? [];

let top = "";
const children: ChildProcess[] = [];
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), "writ-serve-")));
  mkdirSync(join(top, "ws", ".git"), { recursive: true });
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(top, { recursive: true, force: true });
});

function environment(): { readonly [name: string]: string } {
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: join(top, "home"),
    XDG_CONFIG_HOME: join(top, "config"),
    XDG_STATE_HOME: join(top, "state"),
    WRIT_POLICY: policyFile(),
  };
}

function policyFile(): string {
  return join(top, "p.yaml");
}

function writePolicy(more = ""): void {
  writeFileSync(
    policyFile(),
    `version: 1\nmodel: {provider: script, script: s.yaml}\nsandbox: {mode: "off"}\n${more}`,
  );
}

function writeReplies(yaml: string): void {
  writeFileSync(join(top, "s.yaml"), yaml);
}

type Served = {
  readonly child: ChildProcess;
  readonly listening: string;
  readonly token: string;
  readonly code: Promise<number | null>;
  notes(): string;
};

async function serve(...args: readonly string[]): Promise<Served> {
  const [program = "", ...first] = command;
  const child = spawn(program, [...first, "serve", "--json", ...args], {
    cwd: join(top, "ws"),
    env: environment(),
    stdio: ["pipe", "pipe", "pipe"],
  });
  children.push(child);
  let notes = "";
  child.stderr.on("data", (part) => notes += String(part));
  const code = new Promise<number | null>((resolve) => child.on("exit", (c) => resolve(c)));
  const line = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (part) => {
      text += String(part);
      if (text.includes("\n")) resolve(text);
    });
    code.then((c) => reject(new Error(`ended with ${c}: ${text}${notes}`)));
  });
  const { listening, tokenFile } = JSON.parse(line) as { listening: string; tokenFile: string };
  return { child, listening, token: readFileSync(tokenFile, "utf8").trim(), code, notes: () => notes };
}

type Answered = { readonly status: number; readonly body: Record<string, unknown>; readonly text: string };

function ask(
  { listening, token }: Served,
  method: string,
  path: string,
  body?: unknown,
  headers: { [name: string]: string } = {},
): Promise<Answered> {
  const where = listening.startsWith("unix:")
    ? { socketPath: listening.slice(5), headers: { host: "localhost" } }
    : {
      host: new URL(listening).hostname,
      port: new URL(listening).port,
      headers: { host: new URL(listening).host },
    };
  return new Promise((resolve, reject) => {
    const sent = request({
      ...where,
      agent: false,
      method,
      path,
      headers: {
        ...where.headers,
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
    }, (reply) => {
      let text = "";
      reply.on("data", (part) => text += String(part));
      reply.on("end", () => {
        const isJson = /json$/.test(reply.headers["content-type"] ?? "");
        resolve({ status: reply.statusCode ?? 0, text, body: isJson ? JSON.parse(text) : {} });
      });
    });
    sent.on("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function newSession(served: Served): Promise<string> {
  const { status, body } = await ask(served, "POST", "/v1/sessions", {});
  assertEquals([status, body["detail"]], [201, undefined]);
  return String(body["id"]);
}

// Deno says of a child that was sent a signal by `kill()` of its own that the signal has ended it.
function terminate({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(pid, "SIGTERM");
}

describe("writ serve", () => {
  test("takes a session from its first turn through an approval to its log", async () => {
    writePolicy();
    writeReplies('- call: {write_file: {path: a.txt, content: "x"}}\n- {text: written}\n- {text: again}\n');
    const served = await serve();
    assertEquals(served.listening, `unix:${join(top, "state", "writ", "writ.sock")}`);
    assertEquals(statSync(join(top, "state", "writ", "token")).mode & 0o777, 0o600);
    const id = await newSession(served);
    const submitted = await ask(served, "POST", `/v1/sessions/${id}/turns`, { input: "write" });
    assertEquals(submitted.status, 202);
    const turn = (submitted.body["turn"] as { id: string }).id;
    let pending: { id: string; tool: string; status: string }[] = [];
    while (pending.length === 0) {
      pending = (await ask(served, "GET", "/v1/permissions")).body["items"] as typeof pending;
    }
    const [permission] = pending;
    assertEquals([permission?.tool, permission?.status], ["write_file", "pending"]);
    const path = `/v1/sessions/${id}/permissions/${permission?.id}`;
    assertEquals((await ask(served, "POST", path, { decision: "allow" })).status, 200);
    let view: Answered["body"] = {};
    while (!["completed", "failed"].includes(String(view["status"]))) {
      view = (await ask(served, "GET", `/v1/sessions/${id}/turns/${turn}?wait=30`)).body;
    }
    assertEquals([view["status"], view["stopReason"], view["output"]], ["completed", "final", {
      text: "written",
    }]);
    const second = await ask(served, "POST", `/v1/sessions/${id}/turns`, { input: "more" }, {
      prefer: "wait=30",
    });
    assertEquals([second.status, second.body["output"]], [200, { text: "again" }]);
    const exported = await ask(served, "GET", `/v1/sessions/${id}/export`);
    const log = join(top, "state", "writ", "sessions", id, "log.jsonl");
    assertEquals(exported.text, readFileSync(log, "utf8"));
    const types = exported.text.trim().split("\n").map((line) => JSON.parse(line).type);
    assertEquals(types.filter((t) => t === "turn.completed").length, 2);
    terminate(served.child);
    assertEquals(await served.code, 0);
    assertEquals(existsSync(join(top, "state", "writ", "writ.sock")), false);
  });

  test("goes down on SIGTERM with what its turns have started", async () => {
    writePolicy("permissions: {allow: [shell]}\nserver: {drain_grace: 1s}\n");
    writeReplies('- call: {shell: {command: "sleep 987654"}}\n');
    const served = await serve("--listen", "127.0.0.1:0");
    const id = await newSession(served);
    await ask(served, "POST", `/v1/sessions/${id}/turns`, { input: "sleep" });
    while (!running("987654")) await new Promise((resolve) => setTimeout(resolve, 20));
    terminate(served.child);
    assertEquals([await served.code, running("987654")], [0, false]);
    const log = readFileSync(join(top, "state", "writ", "sessions", id, "log.jsonl"), "utf8");
    const [call, end] = log.trim().split("\n").slice(-2).map((line) => JSON.parse(line));
    assertEquals([call.type, call.data.ok], ["tool.completed", false]);
    assertEquals([end.type, end.data.stopReason], ["turn.completed", "interrupted"]);
  });

  test("goes down when standard input is closed, and when its parent has ended", async () => {
    writePolicy();
    writeReplies("[]");
    const stdin = await serve("--until-stdin-closes");
    stdin.child.stdin?.end();
    assertEquals(await stdin.code, 0);
    const parent = spawn("sleep", ["1000"]);
    const child = await serve("--parent-pid", String(parent.pid));
    parent.kill("SIGKILL");
    assertEquals(await child.code, 0);
  });

  const refused: readonly {
    readonly name: string;
    readonly policy?: string;
    readonly args: readonly string[];
    readonly says: string;
  }[] = [
    {
      name: "an address that others reach",
      args: ["--listen", "0.0.0.0:0"],
      says: "can be reached from other machines",
    },
    { name: "an address that is none", args: ["--listen", "here"], says: "cannot listen at `here`" },
    {
      name: "a token file that is not there",
      policy: "server: {token_file: nowhere}",
      args: [],
      says: "nowhere` cannot be read (ENOENT)",
    },
    { name: "a parent that is none", args: ["--parent-pid", "x"], says: "`--parent-pid x` names no process" },
    { name: "a policy with a fault", policy: "serve: {}", args: [], says: "serve" },
  ];
  for (const { name, policy, args, says } of refused) {
    test(`refuses ${name} before anything is opened`, () => {
      writePolicy(policy);
      writeReplies("[]");
      const ran = runWith(command, ["serve", ...args], { cwd: join(top, "ws"), env: environment() });
      assertEquals([ran.code, ran.stdout], [2, ""]);
      assertStringIncludes(ran.stderr, says);
      assertEquals(existsSync(join(top, "state", "writ", "writ.sock")), false);
    });
  }

  test("with a token file listens where others reach it, once that is allowed", async () => {
    writePolicy("server: {token_file: tokens, allow_remote: true}");
    writeReplies("[]");
    writeFileSync(join(top, "tokens"), `ci read sha256:${"0".repeat(64)}\n`, { mode: 0o600 });
    const ran = runWith(command, ["serve", "--listen", "203.0.113.7:0"], {
      cwd: join(top, "ws"),
      env: environment(),
    });
    // The address is nobody's here: it is tried, and the system says no.
    assertEquals(ran.code, 2);
    assertStringIncludes(ran.stderr, "cannot listen at `http://203.0.113.7:0`");
  });
});

/** Whether a program runs that was started with this word. */
function running(word: string): boolean {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(word);
    } catch {
      return false;
    }
  });
}
