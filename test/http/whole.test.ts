// The face over the host that there is, with a script in the place of a model: every operation once, each answer by the document.
import { afterEach, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { operations } from "../../src/http/operations.ts";
import type { SessionHost } from "../../src/server/host.ts";
import { type HostSite, makeHostSite, policyText } from "../server/site.ts";
import { faultOf, type Node } from "./document.ts";
import { type Face, faceOver, type Sent } from "./face.ts";

let site: HostSite;
let face: Face<SessionHost>;
const done = new Set<string>();

afterEach(async () => {
  face.close();
  await site.close();
});

/** Carries an operation out and gives what came back; what the document does not say of it fails. */
async function call(id: string, status: number, path: string, sent: Sent = {}): Promise<Node> {
  const operation = operations.find((o) => o.id === id);
  if (operation === undefined) throw new Error(`no operation \`${id}\``);
  done.add(id);
  const response = await face.send(operation.method, path, sent);
  const text = await response.clone().text();
  assertEquals(
    [id, response.status, await faultOf(face.document, operation, response)],
    [id, status, []],
    text,
  );
  return /json$/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) as Node : { text };
}

test("every operation answers as the document says", async () => {
  site = makeHostSite(policyText("", "ask_timeout: 1m"));
  face = faceOver(
    await site.open([
      { text: "", stop: "tool_use", calls: [{ tool: "write_file", args: { path: "a.txt", content: "x" } }] },
      { text: "done", stop: "end", calls: [] },
      // What is said to the turn may come behind its last request, and makes another one then.
      { text: "done", stop: "end", calls: [] },
    ]),
  );
  await call("health", 200, "/healthz");
  await call("ready", 200, "/readyz?policy&store");
  await call("version", 200, "/v1/version");
  await call("openapi", 200, "/v1/openapi.json");
  const made = await call("createSession", 201, "/v1/sessions", {
    body: { title: "t", labels: { team: "a" }, metadata: { n: [1] } },
  });
  const session = `/v1/sessions/${made["id"]}`;
  await call("listSessions", 200, "/v1/sessions?label=team%3Da&status=idle");
  await call("getSession", 200, session);
  await call("updateSession", 200, session, {
    body: { title: "u" },
    headers: { "if-match": `"${made["lastSeq"]}"` },
  });
  const taken =
    (await call("submitTurn", 202, `${session}/turns`, { body: { input: "write" } }))["turn"] as Node;
  const turn = `${session}/turns/${taken["id"]}`;
  const pending = await waitFor(() => call("listPermissions", 200, "/v1/permissions"));
  const permission = `${session}/permissions/${pending["id"]}`;
  await call("getSession", 200, session);
  await call("getPermission", 200, permission);
  await call("answerPermission", 200, permission, {
    body: { decision: "allow", ifInputSha256: pending["inputSha256"], reason: "fine" },
  });
  await call("steerTurn", 202, `${turn}/input`, { body: { content: "hurry" } });
  let view: Node = { status: "running" };
  while (["running", "waiting_permission"].includes(String(view["status"]))) {
    view = await call("getTurn", 200, `${turn}?wait=20`);
  }
  assertEquals([view["status"], view["output"]], ["completed", { text: "done" }]);
  await call("cancelTurn", 200, `${turn}/cancel`, { body: {} });
  await call("listMessages", 200, `${session}/messages`);
  await call("readEvents", 200, `${session}/events?after=0`);
  await call("readFeed", 200, "/v1/events");
  await call("exportSession", 200, `${session}/export`);
  await call("forkSession", 201, `${session}/fork`, { body: {} });
  const { items } = await call("listSkills", 200, "/v1/skills");
  const skill = (items as readonly Node[])[0]?.["name"];
  await call("getSkill", 200, `/v1/skills/${skill}?body=1`);
  await call("loadSkill", 200, `${session}/skills/${skill}`, { body: {} });
  await call("getSession", 200, session);
  await call("unloadSkill", 204, `${session}/skills/${skill}`);
  await call("getPolicy", 200, "/v1/policy");
  await call("getPolicyStatus", 200, "/v1/policy/status");
  await call("reloadPolicy", 200, "/v1/policy/reload", { body: {} });
  await call("explain", 200, "/v1/explain", {
    body: { tool: { name: "shell", input: { command: "git push" } } },
  });
  await call("explain", 200, "/v1/explain", { body: { message: "review this PR" } });
  await call("metrics", 200, "/metrics");
  await call("getDrain", 200, "/v1/drain");
  await call("removeSession", 204, `${session}?purge=1`);
  await call("drain", 202, "/v1/drain", { body: { graceSeconds: 0 } });
  assertEquals(operations.map((o) => o.id).filter((id) => !done.has(id)), []);
});

async function waitFor(list: () => Promise<Node>): Promise<Node> {
  for (;;) {
    const [first] = (await list())["items"] as readonly Node[];
    if (first !== undefined) return first;
    // Nothing here waits for the outside: without this no turn would go on.
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
