// A box by Landlock and a filter of system calls: a process gives up its rights and becomes another program. No folder is
// private to it and no process hidden from it; what it may not reach, the kernel refuses.
import { closeSync, lstatSync, openSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { isWithin } from "../core/path.ts";
import type { BoxPlan } from "../core/box_plan.ts";
import type { Native } from "./native.ts";
import { type Machine, seccompProgram } from "./seccomp.ts";

const calls = {
  prctl: { x64: 157, arm64: 167 },
  capset: { x64: 126, arm64: 91 },
  seccomp: { x64: 317, arm64: 277 },
  landlock_create_ruleset: { x64: 444, arm64: 444 },
  landlock_add_rule: { x64: 445, arm64: 445 },
  landlock_restrict_self: { x64: 446, arm64: 446 },
} as const;

/** Of the kernel's Landlock: below it, a file outside could be emptied. */
export const oldestAbi = 3;
/** From here on signals cannot be sent out of the box. */
export const signalsAbi = 6;

const execute = 1 << 0;
const readFile = 1 << 2;
const readFolder = 1 << 3;
const truncate = 1 << 14;
const deviceControl = 1 << 15;
const fileRights = execute | (1 << 1) | readFile | truncate | deviceControl;

const reading = execute | readFile | readFolder;
const bindAndConnect = 3;
const abstractSocketsAndSignals = 3;

/** Zero when the kernel has no Landlock, or it is switched off. */
export function landlockAbi(native: Native, machine: Machine): number {
  const abi = native.syscall(calls.landlock_create_ruleset[machine], 0, 0, 1);
  return Math.max(0, abi);
}

/** What is readable and what is writable, with all that is below, so that nothing protected is writable. */
export type LandlockPaths = { readonly read: readonly string[]; readonly write: readonly string[] };

/**
 * What of the plan is there now. Landlock only ever allows, and what it allows of a folder it allows of all below. So a
 * folder with something protected in it is allowed entry by entry: in the folder itself nothing can be made or removed. A `.git` is readable as a whole.
 */
export function landlockPaths(plan: BoxPlan): LandlockPaths {
  const write: string[] = [];
  const read: string[] = [];
  const kept = wholeGit(plan.protect.map((p) => p.path));
  // What is named below something hidden is seen all the same; in what is protected nothing is ever written.
  const hidden = (path: string) => plan.hide.filter((h) => h === path || isWithin(h, path));
  for (const path of plan.write) allowBelow(path, [...kept, ...hidden(path)], write);
  for (const path of [...plan.read, ...plan.write]) allowBelow(path, hidden(path), read);
  return { read, write: [...write, plan.tmp] };
}

function wholeGit(protect: readonly string[]): readonly string[] {
  return protect.filter((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined).map((path) => {
    const steps = path.split("/");
    const git = steps.findIndex((step) => step.endsWith(".git"));
    return git < 0 ? path : steps.slice(0, git + 1).join("/");
  });
}

function allowBelow(path: string, except: readonly string[], allowed: string[]): void {
  if (except.some((p) => isWithin(path, p))) return;
  const found = lstatSync(path, { throwIfNoEntry: false });
  // What a link leads to is allowed, or not, where it is.
  if (found === undefined || found.isSymbolicLink()) return;
  if (!found.isDirectory() || !except.some((p) => isWithin(p, path))) {
    allowed.push(path);
    return;
  }
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    allowBelow(join(path, entry.name), except, allowed);
  }
}

const devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/** Gives up, for this thread and what comes of it, all that the plan does not name. Throws when the kernel refuses a step. */
export function confine(native: Native, machine: Machine, plan: BoxPlan, paths: LandlockPaths): void {
  const abi = landlockAbi(native, machine);
  if (abi < oldestAbi) {
    throw new Error(`the kernel's Landlock has version ${abi}; at least ${oldestAbi} is needed`);
  }
  const must = (what: string, result: number): number => {
    if (result < 0) throw new Error(`${what} failed`);
    return result;
  };
  const call = (name: keyof typeof calls, ...args: readonly (number | Uint8Array)[]) =>
    native.syscall(calls[name][machine], ...args);
  must("prctl(no_new_privs)", call("prctl", 38, 1, 0, 0, 0));
  const handled = handledRights(abi);
  const attributes = words([
    BigInt(handled),
    ...(abi >= 4 ? [plan.network === "none" ? BigInt(bindAndConnect) : 0n] : []),
    ...(abi >= signalsAbi ? [BigInt(abstractSocketsAndSignals)] : []),
  ]);
  const ruleset = must(
    "landlock_create_ruleset",
    call("landlock_create_ruleset", attributes, attributes.length, 0),
  );
  const allow = (path: string, rights: number) => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return;
    const fd = openPath(path);
    if (fd === undefined) return;
    try {
      // Who works in the same folder could have put a link in its place since it was looked at.
      if (readlinkSync(`/proc/self/fd/${fd}`) !== path) return;
      const allowed = handled & (found.isDirectory() ? rights : rights & fileRights);
      const rule = new Uint8Array(12);
      const view = new DataView(rule.buffer);
      view.setBigUint64(0, BigInt(allowed), true);
      view.setInt32(8, fd, true);
      must(`landlock_add_rule for ${path}`, call("landlock_add_rule", ruleset, 1, rule, 0));
    } finally {
      closeSync(fd);
    }
  };
  for (const path of [...paths.read, "/proc"]) allow(path, reading);
  for (const path of paths.write) allow(path, handled);
  for (const path of devices) allow(path, handled);
  dropCapabilities(call, must);
  must("landlock_restrict_self", call("landlock_restrict_self", ruleset, 0));
  const filter = seccompProgram(machine, {
    unix: plan.sockets.length > 0,
    inet: plan.network === "all",
    apart: false,
  });
  const program = new Uint8Array(16);
  const view = new DataView(program.buffer);
  view.setUint16(0, filter.length / 8, true);
  view.setBigUint64(8, native.address(filter), true);
  must("seccomp", call("seccomp", 1, 0, program));
}

// Of `oldestAbi` and later.
function handledRights(abi: number): number {
  return (1 << (abi >= 5 ? 16 : 15)) - 1;
}

function words(values: readonly bigint[]): Uint8Array {
  return new Uint8Array(BigUint64Array.from(values).buffer);
}

// Without rights to more than the path itself: what only root may read needs no reading here.
function openPath(path: string): number | undefined {
  const pathOnly = 0o10000000;
  try {
    return openSync(path, pathOnly);
  } catch {
    return undefined;
  }
}

type Call = (name: keyof typeof calls, ...args: readonly (number | Uint8Array)[]) => number;

// A root that has no capabilities is only the owner of its files, as in the other backend.
function dropCapabilities(call: Call, must: (what: string, result: number) => number): void {
  const ambientClear = 4;
  call("prctl", 47, ambientClear, 0, 0, 0);
  for (let capability = 0; capability < 64; capability++) call("prctl", 24, capability, 0, 0, 0);
  const header = new Uint8Array(8);
  new DataView(header.buffer).setUint32(0, 0x20080522, true);
  must("dropping capabilities", call("capset", header, new Uint8Array(24)));
}
