// Scripted sessions through the executable with programs of our own on the PATH: what a model tries, and what came of it.
import { assertEquals } from "@std/assert";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Event } from "../../src/core/event.ts";
import { checkChain } from "../../src/store/chain.ts";
import { binary, runWith } from "./runtimes.ts";

export type Call = { readonly [tool: string]: { readonly [argument: string]: unknown } };
/** One reply: its calls; or a text, which ends the turn. */
export type Reply = readonly Call[] | string;

export type Played = {
  readonly code: number | null;
  readonly events: readonly Event[];
  /** What `gh` was asked to do. */
  readonly merged: readonly string[];
};

export type Scene = {
  /** Of the policy what stands beside the model, the limits and the sandbox; `permissions` only where it is asked for. */
  readonly policy: string;
  readonly user: readonly string[];
  readonly git: boolean;
  readonly files: { readonly [path: string]: string };
  /** SKILL.md of each, by name. */
  readonly skills?: { readonly [name: string]: string };
};

export type Stage = {
  /** Real path of a folder that goes with the stage. */
  readonly top: string;
  /** A shell script that stands for a program of that name. */
  program(name: string, script: string): void;
  play(replies: readonly Reply[], scene: Scene): Played;
  close(): void;
};

/** With a `gh` that says what it did. Every ask is answered with yes. */
export function openStage(): Stage {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "writ-stage-")));
  mkdirSync(join(top, "bin"));
  const program = (name: string, script: string) => {
    const path = join(top, "bin", name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  };
  program("gh", 'echo "gh $*" >> "$(dirname "$0")/../merged"');
  return {
    top,
    program,
    play: (replies, scene) => play(top, replies, scene),
    close: () => rmSync(top, { recursive: true, force: true }),
  };
}

function play(top: string, replies: readonly Reply[], scene: Scene): Played {
  const permissions = /^permissions:/m.test(scene.policy) ? "" : "permissions: {default: allow}\n";
  const scenario = {
    workspace: { git: scene.git, files: scene.files },
    policy: `version: 1
model: {provider: script}
limits: {same_call: 99}
sandbox: {mode: "off"}
${permissions}${scene.policy}`,
    ...(scene.skills === undefined ? {} : { skills: scene.skills }),
    user: scene.user,
    approvals: Array.from({ length: 40 }, () => "allow"),
    model: replies.map((reply) => typeof reply === "string" ? { text: reply } : { calls: reply }),
  };
  const file = join(top, "scenario.yaml");
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(scenario));
  rmSync(join(top, "merged"), { force: true });
  const ran = runWith([binary], ["__scenario", file], {
    env: { PATH: `${join(top, "bin")}:${process.env["PATH"] ?? ""}`, HOME: top },
  });
  const report = checkChain(Buffer.from(ran.stdout));
  assertEquals([ran.stderr, report.damage], ["", undefined]);
  return { code: ran.code, events: report.events, merged: linesOf(join(top, "merged")) };
}

function linesOf(path: string): readonly string[] {
  try {
    return readFileSync(path, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}

/** Every call in order: what it was and what came of it, as `ok`, or its code with the first gate's first reason. */
export function story(events: readonly Event[]): readonly string[] {
  const asked = new Map<string, string>();
  const blocked = new Map<string, string>();
  return events.flatMap((event): string[] => {
    if (event.type === "model.tool_call_requested") {
      const { command, outcome } = event.data.args;
      asked.set(event.data.call, `${event.data.tool} ${command ?? outcome ?? ""}`.trim());
    } else if (event.type === "gate.blocked" && event.data.call !== undefined) {
      blocked.set(event.data.call, event.data.missing[0] ?? "");
    } else if (event.type === "tool.completed") {
      const { call, ok, code } = event.data;
      const why = blocked.get(call);
      return [`${asked.get(call)}: ${ok ? "ok" : code}${why === undefined ? "" : ` (${why})`}`];
    }
    return [];
  });
}

/** Why the merges of a play were refused, in order. */
export function refusals(events: readonly Event[]): readonly (readonly string[])[] {
  return events.flatMap((event) => event.type === "gate.blocked" ? [event.data.missing] : []);
}
