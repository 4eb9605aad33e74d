// Everything that one started process has started: found by session, descent, inherited pipes and a mark in the
// environment, then ended.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { codeOf } from "../core/thrown.ts";

export type FamilyMark = { readonly name: string; readonly value: string };

export type Family = {
  /** Process id of the child; also its group and its session. */
  readonly leader: number;
  /** A variable that descendants inherit, also those that leave the session and lose their parent. */
  readonly mark: FamilyMark;
  /** The ends of our pipes that the leader got, as the system names them: whoever holds one has it from there. */
  readonly pipes: readonly string[];
  /** When it was started, on the monotonic clock. */
  readonly since: number;
};

type Signal = "SIGTERM" | "SIGCONT" | "SIGKILL";

export function familyMark(id: string): FamilyMark {
  return { name: "CHILD_OF", value: `${process.pid}.${id}` };
}

/** The family of a child that has just been started. */
export function familyOf(leader: number, mark: FamilyMark): Family {
  const pipes = [1, 2].map((fd) => linkOf(`/proc/${leader}/fd/${fd}`)).filter((link) =>
    /^(pipe|socket):/.test(link)
  );
  return { leader, mark, pipes, since: performance.now() };
}

/** Sends a signal to everyone of the family who can be found. Who is gone already is no error. */
export function signalFamily(family: Family, signal: Signal): void {
  if (family.leader <= 0) return;
  send(process.platform === "win32" ? family.leader : -family.leader, signal);
  for (const pid of members(family) ?? []) send(pid, signal);
}

/** Whether anyone of the family still runs. Dead processes that nobody has collected do not count. */
export function isFamilyAlive(family: Family): boolean {
  if (family.leader <= 0) return false;
  const found = members(family);
  if (found !== undefined) return found.length > 0;
  return send(process.platform === "win32" ? family.leader : -family.leader, 0);
}

const held = new Set<Family>();
let guarding = false;

/** Ends the family when Writ itself exits, until the returned function is called. */
export function holdFamily(family: Family): () => void {
  held.add(family);
  if (!guarding) process.once("exit", endHeldFamilies);
  guarding = true;
  return () => void held.delete(family);
}

/** Ends, at once, every process that Writ has started and that still runs. For the last moment before an exit. */
function endHeldFamilies(): void {
  for (const family of held) {
    for (let round = 0; round < 20 && isFamilyAlive(family); round++) signalFamily(family, "SIGKILL");
  }
}

function send(pid: number, signal: Signal | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

// Undefined where there is no /proc to look into.
function members(family: Family): readonly number[] | undefined {
  const pids = candidates(family);
  if (pids === undefined) return undefined;
  const rows = pids.flatMap((pid) => statOf(pid) ?? []);
  const found = new Set(rows.filter((r) => belongs(r, family)).map((r) => r.pid));
  for (let before = -1; before !== found.size;) {
    before = found.size;
    for (const row of rows) {
      if (row.parent === family.leader || found.has(row.parent)) found.add(row.pid);
    }
  }
  return rows.filter((r) => found.has(r.pid) && r.state !== "Z" && r.state !== "X").map((r) => r.pid);
}

const shortRunMs = 10_000;

// Process ids are given out in rising order: what is younger than the leader has a higher one, unless they have started
// again from below. After a long run that may have happened unseen, so everything is looked at.
function candidates(family: Family): readonly number[] | undefined {
  try {
    const all = readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)).map(Number)
      .filter((pid) => pid !== process.pid);
    const newest = Number(readFileSync("/proc/loadavg", "latin1").trim().split(" ").at(-1));
    if (performance.now() - family.since > shortRunMs || !(newest >= family.leader)) return all;
    return all.filter((pid) => pid >= family.leader && pid <= newest);
  } catch {
    return undefined;
  }
}

type Row = {
  readonly pid: number;
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
};

function statOf(pid: number): Row | undefined {
  const text = read(`/proc/${pid}/stat`);
  // The program's name stands in brackets and may hold anything.
  const [state, parent, group, session] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  if (state === undefined || session === undefined) return undefined;
  return { pid, state, parent: Number(parent), group: Number(group), session: Number(session) };
}

function belongs(row: Row, { leader, mark, pipes }: Family): boolean {
  if (row.pid === leader || row.group === leader || row.session === leader) return true;
  if (`\0${read(`/proc/${row.pid}/environ`)}`.includes(`\0${mark.name}=${mark.value}\0`)) return true;
  return filesOf(row.pid).some((link) => pipes.includes(link));
}

function filesOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
