// At the start: which sessions there are, and those that ended in the middle of something brought to an end.
import { messageOf } from "../core/thrown.ts";
import { sessionsFolder } from "../load/locate.ts";
import { listSessions, startOf } from "../store/session_files.ts";
import { type Entry, newEntry, trackOf } from "./entry.ts";
import type { Hub } from "./hub.ts";
import { load, unload } from "./loading.ts";
import { problemLine } from "./policies.ts";
import { requestId } from "./track.ts";

/** Takes in every session that a server made, by the logs of the host's policy and of each profile. Never throws. */
export async function recover(hub: Hub): Promise<void> {
  for (const dir of await foldersOf(hub)) {
    for (const { id, path, changedMs } of listSessions(dir)) {
      const facts = startOf(path);
      if (facts?.served === undefined || facts.parent !== undefined || hub.entries.has(id)) continue;
      const entry = newEntry({ id, path, served: facts.served, cwd: facts.cwd });
      hub.entries.set(id, entry);
      const { request } = facts.served;
      if (request !== undefined) {
        hub.made.set(requestId(request), { bodyHash: request.bodyHash, session: id, atMs: changedMs });
      }
      await finish(hub, entry);
    }
  }
}

async function foldersOf(hub: Hub): Promise<ReadonlySet<string>> {
  const { policy, surroundings } = hub.policies.own();
  const dirs = new Set([sessionsFolder(surroundings, policy.auditDir)]);
  for (const name of Object.keys(policy.server.profiles)) {
    const read = await hub.policies.read(name, hub.machine.cwd);
    if (read.ok) dirs.add(sessionsFolder(surroundings, read.value.policy.auditDir));
    else hub.note(`warning: the profile \`${name}\` cannot be used: ${problemLine(read.problems)}`);
  }
  return dirs;
}

// Opening it closes the turn that was left open, its calls and its questions; what waited behind it will not begin.
async function finish(hub: Hub, entry: Entry): Promise<void> {
  try {
    const track = trackOf(entry);
    const left = track.turns.filter((t) => t.stage === "queued");
    if (left.length > 0 || track.turns.some((t) => t.stage === "running")) {
      const session = await load(hub, entry);
      if (!session.ok) {
        hub.note(`warning: \`${entry.id}\` was left in the middle of a turn: ${session.refusal.detail}`);
        return;
      }
      const { recorder } = session.value.agent;
      for (const { submitted } of left) recorder.emit("turn.dropped", { submitted, reason: "restart" });
      await recorder.sync();
      await unload(entry);
    }
  } catch (error) {
    hub.note(`warning: \`${entry.id}\` cannot be gone on with: ${messageOf(error)}`);
  }
  entry.track = undefined;
  entry.state = undefined;
}
