import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { checkChain } from "../../src/store/chain.ts";
import { calls, says as reply } from "../support/skill_session.ts";
import { root } from "../support/runtimes.ts";
import {
  all,
  codeOf,
  ended,
  got,
  type HostSite,
  makeHostSite,
  newSession,
  reaches,
  running,
  says,
  turnOf,
} from "./site.ts";

let site: HostSite;
beforeEach(() => site = makeHostSite());
afterEach(() => site.close());

type Crashed = { readonly id: string; readonly turn: string; readonly queued: string };

/** Runs a host in a process of its own, and ends that at once when it has come to its middle. */
async function crash(kind: "tool" | "question" | "anywhere", afterMs = 0): Promise<Crashed> {
  const script = join(root, "test/server/crashing_host.ts");
  const args = [JSON.stringify(site.context.host), join(site.top, "policy.yaml"), kind];
  const deno = process.versions["deno"] !== undefined;
  const before = deno
    ? [
      "run",
      "-A",
      "--no-check",
      "--quiet",
      "--config",
      join(root, "deno.json"),
      "--import-map",
      join(root, "test/support/import_map.json"),
    ]
    : [];
  const child = spawn(process.execPath, [...before, script, ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, errors] = ["", ""];
  child.stderr.on("data", (data) => errors += data);
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (data) => {
      out += data;
      if (out.includes("\n")) resolve(out);
    });
    child.once("exit", () => reject(new Error(`it ended by itself: ${errors}`)));
  });
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  const gone = new Promise((resolve) => child.on("close", resolve));
  child.kill("SIGKILL");
  await gone;
  return JSON.parse(line) as Crashed;
}

const replies = [reply("on"), reply("more")];

describe("a host that was ended in the middle", () => {
  test("of a tool records that, closes the turn, and drops what waited; nothing is run again", async () => {
    const { id, turn, queued } = await crash("tool");
    const host = await site.open(replies);
    const before = site.events(id);
    const end = got(await host.getTurn(all, id, turn));
    assertEquals([end.status, end.stopReason], ["interrupted", "interrupted"]);
    assertEquals(got(await host.getTurn(all, id, queued)).status, "interrupted");
    assertEquals(
      before.flatMap((e) =>
        e.type === "tool.interrupted"
          ? [`${e.data.started}`]
          : e.type === "turn.dropped"
          ? [e.data.reason]
          : []
      ),
      ["true", "restart"],
    );
    assertEquals(got(await host.getSession(all, id)).status, "idle");
    const key = { key: "key-0001", bodyHash: "h", scope: "app /turns" };
    const again = got(await host.submitTurn(all, id, turnOf("a"), key));
    assertEquals([again.replayed, again.value.id], [true, turn]);
    assertEquals((await says(host, id, "more")).status, "completed");
    const { damage, events } = checkChain(Buffer.from(site.log(id)));
    assertEquals([damage, events.length], [undefined, site.events(id).length]);
  });

  test("of a question has it denied: it cannot be answered any more", async () => {
    const { id, turn } = await crash("question");
    const host = await site.open(replies);
    assertEquals(got(await host.getTurn(all, id, turn)).status, "interrupted");
    const [question] = got(await host.listPermissions(all, { limit: 10 })).items;
    assert(question !== undefined);
    assertEquals([question.status, question.decision, question.resolvedBy], ["expired", "deny", "restart"]);
    const answer = { decision: "allow", scope: "once" } as const;
    assertEquals(codeOf(await host.answerPermission(all, id, question.id, answer)), "permission-expired");
    assertEquals((await says(host, id, "more")).status, "completed");
  });
});

describe("a host that was ended at any moment", () => {
  for (const afterMs of [0, 15, 40, 70, 110, 160, 250]) {
    test(`${afterMs} ms after it was asked: nothing is stuck, and the request is carried out once`, async () => {
      const { id } = await crash("anywhere", afterMs);
      const host = await site.open(replies);
      const key = { key: "key-0001", bodyHash: "h", scope: "app /turns" };
      const again = got(await host.submitTurn(all, id, turnOf("a"), key));
      await ended(host, id, again.value.id);
      assertEquals(got(await host.submitTurn(all, id, turnOf("a"), key)).replayed, true);
      assertEquals((await says(host, id, "more")).status, "completed");
      const events = site.events(id);
      assertEquals(
        events.filter((e) => e.type === "user.message" && e.data.content === "a").length <= 1,
        true,
      );
      assertEquals(
        events.filter((e) => e.type === "turn.submitted" && e.data.request !== undefined).length,
        1,
      );
      const { damage, events: sound } = checkChain(Buffer.from(site.log(id)));
      assertEquals([damage, sound.length], [undefined, events.length]);
      const of = (type: string) => events.filter((e) => e.type === type).length;
      assertEquals(of("turn.submitted"), of("user.message") + of("turn.dropped"));
      assertEquals(of("user.message"), of("turn.completed"));
    });
  }
});

describe("going down", () => {
  test("ends sixteen turns and all that they started, and leaves every log closed", async () => {
    const seconds = `4${process.pid}`;
    const host = await site.open([calls("shell", { command: `sleep ${seconds}` }), reply("never")]);
    const turns = await Promise.all(Array.from({ length: 16 }, async () => {
      const id = await newSession(host);
      return { id, turn: got(await host.submitTurn(all, id, turnOf("a"))).value.id };
    }));
    while (turns.some(({ id }) => !site.events(id).some((e) => e.type === "tool.started"))) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const waits = got(await host.submitTurn(all, turns[0]!.id, turnOf("b", { onBusy: "queue" }))).value;
    assertEquals(host.runningTurns(), 16);
    assertEquals(codeOf(await host.submitTurn(all, await newSession(host), turnOf("a"))), "too-many-turns");
    await Promise.all([host.drain({ graceMs: 100 }), host.drain({ graceMs: 50 })]);
    assertEquals([host.runningTurns(), running(seconds)], [0, 0]);
    for (const { id, turn } of turns) {
      assertEquals((await ended(host, id, turn)).status, "interrupted");
      const folder = join(site.top, "home/.local/state/writ/sessions", id);
      assertEquals(readdirSync(folder).filter((n) => n.startsWith("lock")), []);
    }
    assertEquals((await ended(host, turns[0]!.id, waits.id)).status, "interrupted");
    assertEquals(codeOf(await host.submitTurn(all, turns[0]!.id, turnOf("c"))), "draining");
  });

  test("gives what runs its time, and does not wait for who is asked", async () => {
    const host = await site.open((n) =>
      n === 0
        ? [calls("shell", { command: "sleep 0.3" }), reply("done")]
        : [calls("write_file", { path: "f.txt", content: "x\n" }), reply("never")]
    );
    const [a, b] = [await newSession(host), await newSession(host)];
    const works = got(await host.submitTurn(all, a, turnOf("a"))).value;
    const asks = got(await host.submitTurn(all, b, turnOf("b"))).value;
    await reaches(host, b, asks.id, "waiting_permission");
    await host.drain({ graceMs: 60_000 });
    assertEquals(
      [(await ended(host, a, works.id)).status, (await ended(host, b, asks.id)).status],
      ["completed", "interrupted"],
    );
  });
});
