// A host in a process of its own, which is ended in the middle of what it does: says where it is and goes on.
import process from "node:process";
import { calls, says } from "../support/skill_session.ts";
import { openHost } from "../../src/server/open_host.ts";
import { all, got, turnOf } from "./site.ts";

const [machine = "", policy = "", kind = ""] = process.argv.slice(2);
const replies = kind === "question"
  ? [calls("write_file", { path: "f.txt", content: "x\n" }), says("never")]
  : kind === "tool"
  ? [calls("shell", { command: "sleep 4" }), says("never")]
  : [
    ...Array.from({ length: 4 }, () => calls("shell", { command: "sleep 0.02" })),
    says("done"),
    says("again"),
  ];
const opened = await openHost({
  machine: JSON.parse(machine),
  choice: { policy: [policy] },
  model: () => ({ replies }),
  note: () => {},
});
if (!opened.ok) throw new Error("the policy does not load");
const host = opened.value;
const key = { key: "key-0001", bodyHash: "h", scope: "app /turns" };
const { id } = got(await host.createSession(all, {})).value;
if (kind === "anywhere") console.log(JSON.stringify({ id, turn: "", queued: "" }));
const turn = got(await host.submitTurn(all, id, turnOf("a"), key)).value;
const queued = got(await host.submitTurn(all, id, turnOf("b", { onBusy: "queue" }))).value;
const wanted = kind === "question" ? "permission.requested" : "tool.started";
const log = got(await host.openLog(all, id));
const look = async () => {
  const lines = await log.read(0, { events: 1000, bytes: 1e6 });
  if (lines.some((l) => l.type === wanted)) {
    console.log(JSON.stringify({ id, turn: turn.id, queued: queued.id }));
  } else setTimeout(look, 10);
};
if (kind !== "anywhere") await look();
