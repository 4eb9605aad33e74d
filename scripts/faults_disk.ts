// A disk that fails: the n-th write, sync, open or rename, a file system without room, one that cannot be written. The writer
// goes on each time; what it was told is recorded must be there, and the log must hold.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { losses, readWriter, write, writerCommand, type Written } from "../test/support/crashes.ts";
import type { FaultOptions, Finding } from "./faults.ts";

/** System calls by what the writer uses them for, and what they fail with. */
const calls: readonly { readonly call: string; readonly errors: readonly string[] }[] = [
  { call: "pwrite64", errors: ["ENOSPC", "EIO", "EROFS", "EFBIG"] },
  { call: "fdatasync", errors: ["EIO", "ENOSPC"] },
  { call: "fsync", errors: ["EIO"] },
  { call: "openat", errors: ["EIO", "EROFS", "ENOSPC"] },
  { call: "rename", errors: ["EIO", "ENOSPC"] },
  { call: "ftruncate", errors: ["EIO"] },
];
const most = 200;
const turns = "210";

export async function* diskFaults(options: FaultOptions): AsyncIterable<Finding> {
  if (spawnSync("strace", ["-V"]).error !== undefined) {
    yield { name: "calls that fail", skipped: "there is no strace" };
  } else for (const { call, errors } of calls) yield await failing(call, errors, options);
  if (spawnSync("unshare", ["--mount", "true"]).status !== 0) {
    yield { name: "a full and a read-only disk", skipped: "`unshare --mount` is not allowed" };
    return;
  }
  yield await onSmallDisk("a disk of 64 KiB that fills up, then has room", "rm -f ballast");
  yield await onSmallDisk(
    "a disk that cannot be written, then can",
    "mount -o remount,rw .",
    "mount -o remount,ro .",
  );
}

// Every n would take an hour of a small machine: the gate takes one in eight, another each time the seed changes.
async function failing(
  call: string,
  errors: readonly string[],
  { nightly, seed, until }: FaultOptions,
): Promise<Finding> {
  const step = nightly ? 1 : 8;
  const faults: string[] = [];
  let tried = 0;
  let met = 0;
  for (let n = 1 + seed % step; n <= most && Date.now() < until; n += step) {
    const error = errors[tried++ % errors.length] ?? "EIO";
    const dir = mkdtempSync(join(tmpdir(), "writ-disk-"));
    try {
      const written = await write(tracedWriter(dir, call, n, error));
      if (written.failed.length > 0) met++;
      faults.push(...faultsOf(dir, written).map((f) => `${call} ${n} with ${error}: ${f}`));
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  }
  return { name: `${call} fails`, tried, faults, note: `${met} times the writer was told so` };
}

// The files of the session alone, where a call names one of them; else all calls, but those of the runtime's own start.
function tracedWriter(dir: string, call: string, n: number, error: string): readonly string[] {
  const names = ["", "/s1", "/s1/log.jsonl"].flatMap((p) => ["-P", `${dir}${p}`]);
  const onFiles = call === "openat" || call === "rename" ? [] : names;
  const group = call === "rename" ? "rename,renameat,renameat2" : call;
  const first = call === "openat" ? openedAtStart() : 0;
  // A log is only cut where a write of it has failed.
  const cause = call === "ftruncate" ? "pwrite64" : undefined;
  return [
    ...strace(cause === undefined ? group : `${group},${cause}`, "/dev/null"),
    ...onFiles,
    "-e",
    `inject=${group}:error=${error}:when=${first + n}`,
    ...(cause === undefined ? [] : ["-e", `inject=${cause}:error=ENOSPC:when=3+6`]),
    ...writerAt(dir),
  ];
}

function strace(calls: string, output: string): readonly string[] {
  return ["strace", "--quiet=all", "-f", "-o", output, "-e", `trace=${calls}`];
}

function writerAt(dir: string): readonly string[] {
  return [...writerCommand(), dir, "s1", turns];
}

let counted: number | undefined;

// Files that the runtime opens before the writer opens its first.
function openedAtStart(): number {
  if (counted !== undefined) return counted;
  const dir = mkdtempSync(join(tmpdir(), "writ-disk-"));
  const [program = "", ...args] = [...strace("openat", join(dir, "trace")), ...writerAt(dir)];
  spawnSync(program, args, { stdio: "ignore", timeout: 60_000 });
  const lines = readFileSync(join(dir, "trace"), "utf8").split("\n");
  rmSync(dir, { recursive: true, force: true });
  counted = lines.findIndex((line) => line.includes(`${dir}/`));
  return counted;
}

function faultsOf(dir: string, { code, done, acks, failed, stderr }: Written): readonly string[] {
  if (code !== 0 || !done) {
    return [`the writer ended with ${code}: ${failed.at(-1) ?? ""} ${stderr.slice(0, 500)}`];
  }
  return [
    ...(existsSync(join(dir, "s1/log.jsonl")) ? losses(dir, "s1", acks) : ["there is no log"]),
    ...failed.filter((f) => !/^(?:log_unwritable|session_busy): /.test(f)),
  ];
}

// Everything happens in a mount namespace of its own, which goes with the last process in it.
async function onSmallDisk(name: string, remedy: string, illness = ":"): Promise<Finding> {
  const dir = mkdtempSync(join(tmpdir(), "writ-disk-"));
  const out = mkdtempSync(join(tmpdir(), "writ-disk-"));
  const quoted = writerCommand().map((w) => `'${w}'`).join(" ");
  const script = [
    `mount -t tmpfs -o size=64k none '${dir}' && cd '${dir}'`,
    // A session that is there before the disk falls ill.
    `${quoted} '${dir}' s1 1 > /dev/null`,
    illness === ":" ? "head -c 100000 /dev/zero > ballast; truncate -s -8192 ballast" : illness,
    `${quoted} '${dir}' s1 6 3 'cd "${dir}"; ${remedy}'`,
    `mount -o remount,rw . ; cp -r s1 '${out}/'`,
  ].join("\n");
  try {
    const ran = spawnSync("unshare", ["--mount", "sh", "-c", script], { encoding: "utf8", timeout: 60_000 });
    const written = readWriter(ran.stdout, { code: ran.status, stderr: ran.stderr });
    const faults = faultsOf(out, written);
    return { name, tried: 1, faults: written.failed.length === 0 ? [...faults, "nothing failed"] : faults };
  } finally {
    for (const path of [dir, out]) rmSync(path, { recursive: true, force: true });
  }
}
