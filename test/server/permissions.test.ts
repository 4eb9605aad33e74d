import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Caller, NewTurn, PermissionView, SessionHost } from "../../src/server/host.ts";
import { canonicalJson } from "../../src/core/text.ts";
import { calls, says as reply } from "../support/skill_session.ts";
import {
  all,
  codeOf,
  ended,
  got,
  type HostSite,
  makeHostSite,
  newSession,
  policyText,
  reaches,
  turnOf,
} from "./site.ts";

let site: HostSite;
beforeEach(() => site = makeHostSite());
afterEach(() => site.close());

const write = (n: number) => calls("write_file", { path: `f${n}.txt`, content: "x\n" });
const writes = [write(1), write(2), reply("done"), reply("again")];
const yes = { decision: "allow", scope: "once" } as const;
const no = { decision: "deny", scope: "once" } as const;

async function asked(host: SessionHost, wanted: Partial<NewTurn> = {}) {
  const id = await newSession(host);
  const { id: turn } = got(await host.submitTurn(all, id, turnOf("a", wanted))).value;
  await reaches(host, id, turn, "waiting_permission");
  return { id, turn, permission: await pending(host, id) };
}

async function pending(host: SessionHost, session: string, not?: string): Promise<PermissionView> {
  for (;;) {
    const { items } = got(await host.listPermissions(all, { limit: 10, status: "pending", session }));
    const found = items.find((p) => p.id !== not);
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe("a question", () => {
  test("is shown with all that it is about, and is answered once for all", async () => {
    const host = await site.open(writes);
    const { id, turn, permission } = await asked(host);
    const input = { path: "f1.txt", content: "x\n" };
    const { requestedAt: _, expiresAt: _e, causes, preview, rule, ...rest } = permission;
    assertEquals(rest, {
      id: permission.id,
      session: id,
      turn,
      status: "pending",
      call: permission.call,
      tool: "write_file",
      input,
      inputSha256: createHash("sha256").update(canonicalJson(input)).digest("hex"),
      risk: "write",
      sourcedBy: [],
      maxScope: "session",
      onTimeout: "deny",
    });
    assertEquals([causes.map((c) => c.by), typeof preview, typeof rule], [["default"], "string", "string"]);
    assertEquals(got(await host.getSession(all, id)).status, "waiting_permission");

    const answers = await Promise.all([
      host.answerPermission({ ...all, name: "one" }, id, permission.id, yes),
      host.answerPermission({ ...all, name: "two" }, id, permission.id, no),
    ]);
    assertEquals(answers.map(codeOf), ["ok", "permission-resolved"]);
    const won = got(answers[0]!).value;
    assertEquals([won.status, won.decision, won.resolvedBy], ["resolved", "allow", "one"]);
    const lost = answers[1]!;
    assertEquals(lost.ok ? {} : lost.refusal.members, {
      decision: "allow",
      resolvedBy: "one",
      seq: won.seq!,
    });
    assertEquals(got(await host.answerPermission(all, id, permission.id, yes)).value, won);
    const resolved = site.events(id).find((e) => e.type === "permission.resolved");
    assertEquals(resolved?.seq, won.seq);

    const next = await pending(host, id, permission.id);
    got(await host.answerPermission(all, id, next.id, { ...no, reason: "not that one" }));
    const end = await ended(host, id, turn);
    assertEquals([end.status, end.denied.map((d) => d.tool)], ["completed", ["write_file"]]);
    const { workspace } = got(await host.getSession(all, id));
    assertEquals(["f1.txt", "f2.txt"].map((f) => existsSync(join(workspace, f))), [true, false]);
  });

  test("answered for the session is not asked again", async () => {
    const same = calls("write_file", { path: "f1.txt", content: "x\n" });
    const host = await site.open([same, same, reply("done")]);
    const { id, turn, permission } = await asked(host);
    got(await host.answerPermission(all, id, permission.id, { ...yes, scope: "session" }));
    assertEquals((await ended(host, id, turn)).denied, []);
    assertEquals(
      site.events(id).flatMap((e) => e.type === "permission.resolved" ? [e.data.answer?.by] : []),
      ["user", "grant"],
    );
    assertEquals(got(await host.listPermissions(all, { limit: 10 })).items.length, 1);
  });

  test("that a rule wants asked every time cannot be answered for the session", async () => {
    site.put("policy.yaml", policyText("", `ask: [{tool: write_file, always: true}]`));
    const host = await site.open(writes);
    const { id, permission } = await asked(host);
    assertEquals(permission.maxScope, "once");
    const answered = await host.answerPermission(all, id, permission.id, { ...yes, scope: "session" });
    assertEquals(codeOf(answered), "policy-forbids");
    assertEquals(codeOf(await host.answerPermission(all, id, permission.id, yes)), "ok");
  });

  test("is only answered for the input that was seen", async () => {
    const host = await site.open(writes);
    const { id, permission } = await asked(host);
    assertEquals(
      codeOf(await host.answerPermission(all, id, permission.id, { ...yes, ifInputSha256: "0".repeat(64) })),
      "precondition-failed",
    );
    const answered = await host.answerPermission(all, id, permission.id, {
      ...yes,
      ifInputSha256: permission.inputSha256,
    });
    assertEquals(codeOf(answered), "ok");
  });

  test("that nobody answers is denied when its time is over, and cannot be answered then", async () => {
    site.put(
      "policy.yaml",
      policyText("", `ask_timeout: 1s`),
    );
    const host = await site.open([write(1), reply("done")]);
    const { id, turn, permission } = await asked(host);
    const end = await ended(host, id, turn);
    assertEquals([end.status, end.denied.map((d) => d.unanswered)], ["completed", [true]]);
    assertEquals(codeOf(await host.answerPermission(all, id, permission.id, yes)), "permission-expired");
    assertEquals(got(await host.getPermission(all, id, permission.id)).status, "expired");
  });

  test("of a turn that was cancelled is closed", async () => {
    const host = await site.open(writes);
    const { id, turn, permission } = await asked(host);
    await host.cancelTurn(all, id, turn, {});
    assertEquals((await ended(host, id, turn)).status, "cancelled");
    assertEquals(codeOf(await host.answerPermission(all, id, permission.id, yes)), "permission-expired");
    assertEquals(got(await host.listPermissions(all, { limit: 9, status: "pending" })).items, []);
  });

  for (
    const [onAsk, status, stopReason] of [["deny", "completed", "final"], [
      "fail",
      "failed",
      "denied",
    ]] as const
  ) {
    test(`in a turn with \`${onAsk}\` is denied at once: the turn is ${status}`, async () => {
      const host = await site.open(writes);
      const id = await newSession(host);
      const { id: turn } = got(await host.submitTurn(all, id, turnOf("a", { onAsk }))).value;
      const end = await ended(host, id, turn);
      assertEquals([end.status, end.stopReason, end.denied[0]?.unanswered], [status, stopReason, true]);
    });
  }

  test("is for those who may answer, of sessions that they may see", async () => {
    const host = await site.open(writes);
    const { id, permission } = await asked(host);
    const runner: Caller = { ...all, roles: ["read", "run"] };
    const other: Caller = { ...all, name: "other", sessions: "own" };
    assertEquals(
      [
        codeOf(await host.answerPermission(runner, id, permission.id, yes)),
        codeOf(await host.listPermissions(runner, { limit: 1 })),
        codeOf(await host.answerPermission(other, id, permission.id, yes)),
        codeOf(await host.answerPermission(all, id, "p_1", yes)),
      ],
      ["forbidden", "forbidden", "session-not-found", "permission-not-found"],
    );
    assertEquals(got(await host.listPermissions(other, { limit: 9 })).items, []);
  });
});

test("a question that a fork asks is answered at the session that it belongs to", async () => {
  const skill =
    `---\nname: side\ndescription: Works aside\ncontext: fork\nallowed-tools: write_file\n---\nWrite it.\n`;
  site.put("home/.config/writ/skills/side/SKILL.md", skill);
  const host = await site.open([write(1), reply("written"), reply("done")]);
  const id = await newSession(host);
  const { id: turn } = got(
    await host.submitTurn(all, id, turnOf("go", { skill: { name: "side" } })),
  ).value;
  await reaches(host, id, turn, "waiting_permission");
  const permission = await pending(host, id);
  assertEquals([permission.session, permission.turn, permission.tool], [id, turn, "write_file"]);
  const answered = got(await host.answerPermission(all, id, permission.id, yes)).value;
  assertEquals([answered.status, answered.decision], ["resolved", "allow"]);
  const end = await ended(host, id, turn);
  assertEquals([end.status, end.denied], ["completed", []]);
  assertEquals(site.events(id).some((e) => e.type === "fork.completed"), true);
});
