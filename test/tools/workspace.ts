// A real workspace in a temporary folder, and the context in which tools run there.
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import type { Tool, ToolContext, ToolOutcome } from "../../src/agent/ports.ts";
import type { Args } from "../../src/core/message.ts";

export type Workspace = {
  readonly root: string;
  readonly home: string;
  /** Outside of the workspace. */
  readonly outside: string;
  readonly at: ToolContext;
  /** What keepBefore was given: path from the root and old text, undefined for a new file. */
  readonly kept: (readonly [string, string | undefined])[];
  write(path: string, content: string | Uint8Array): string;
  link(path: string, target: string): string;
  read(path: string): string;
  bytes(path: string): Uint8Array;
  remove(): void;
};

export function makeWorkspace(changes: Partial<ToolContext> = {}): Workspace {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "writ-tools-")));
  const [root, home, outside] = ["ws", "home", "outside"].map((name) => join(base, name)) as [
    string,
    string,
    string,
  ];
  for (const folder of [root, home, outside]) mkdirSync(folder);
  const kept: (readonly [string, string | undefined])[] = [];
  const at: ToolContext = {
    root,
    home,
    protectedBy: () => undefined,
    signal: new AbortController().signal,
    mayRead: () => true,
    mayReach: () => ({ allowed: false, reason: "nothing may be reached" }),
    seen: new Map(),
    keepBefore: async (path, bytes) => {
      kept.push([
        path.slice(root.length + 1),
        bytes === undefined ? undefined : new TextDecoder().decode(bytes),
      ]);
    },
    shell: {
      env: { PATH: process.env["PATH"] ?? "", HOME: home },
      timeoutMs: 20_000,
      maxTimeoutMs: 60_000,
      maxOutput: 65_536,
    },
    skills: {
      load: async () => ({ ok: true, content: "loaded" }),
      complete: async () => ({ ok: true, content: "completed" }),
      readFile: async () => ({ ok: true, content: "read" }),
      find: () => ({ ok: true, content: "found" }),
    },
    ...changes,
  };
  const inside = (path: string) => {
    const full = path.startsWith("/") ? path : join(root, path);
    mkdirSync(dirname(full), { recursive: true });
    return full;
  };
  return {
    root,
    home,
    outside,
    at,
    kept,
    write(path, content) {
      writeFileSync(inside(path), content);
      return inside(path);
    },
    link(path, target) {
      symlinkSync(target, inside(path));
      return inside(path);
    },
    read: (path) => readFileSync(join(root, path), "utf8"),
    bytes: (path) => new Uint8Array(readFileSync(join(root, path))),
    remove: () => rmSync(base, { recursive: true, force: true }),
  };
}

/** Inspects and runs, as the loop does. */
export async function call(tool: Tool, args: Args, at: ToolContext): Promise<ToolOutcome> {
  await tool.lookUp?.(args, at, at.signal);
  tool.inspect(args, at);
  return await tool.run(args, at);
}
