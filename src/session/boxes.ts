// The boxes of a session: what this machine builds them with, tried once, and the way of every program that Writ starts into
// one of them.
import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { Boxes, Entered, Place, ShellSettings } from "../agent/ports.ts";
import { boxOf, defaultBox, type FullBox, unknownBox } from "../core/box.ts";
import { boxLack } from "../core/box_lack.ts";
import type { BoxPlan, Protected } from "../core/box_plan.ts";
import type { SandboxFacts } from "../core/event.ts";
import { isWithin } from "../core/path.ts";
import type { Policy } from "../core/policy.ts";
import { keyPrograms, keySources } from "../core/key_sources.ts";
import { messageOf } from "../core/thrown.ts";
import { stateFolder } from "../load/locate.ts";
import { findWalls, likelyWalls, type WallsWanted } from "../sandbox/backend.ts";
import { type BoxSite, planBox, planLook } from "../sandbox/plan_box.ts";
import { type Probe, probe } from "../sandbox/probe.ts";
import { selfCommand } from "../sandbox/self.ts";
import { boxWith, type Walls } from "../sandbox/walls.ts";
import {
  bareEnvironment,
  type BoxesOf,
  type BoxGround,
  environmentOf,
  layBoxGround,
  protectedNow,
  siteOf,
} from "./box_ground.ts";

export type SessionBoxes = {
  readonly facts: SandboxFacts | "off";
  /** Where commands stand under these settings, which may be newer ones. */
  at(
    settings: BoxesOf,
  ): { readonly place: BoxPlaces; readonly shell: ShellSettings; readonly writable: readonly string[] };
  /** To be called before every turn: what is there to be protected is looked for anew. */
  renew(): void;
  close(): void;
};
type BoxPlaces = Pick<Place, "shellRefused" | "boxes">;

/** What this machine may build boxes with. */
export function wallsWanted({ policy, surroundings }: BoxesOf): WallsWanted {
  const folder = join(stateFolder(surroundings), "filters");
  return { backend: policy.sandbox.backend, folder, self: selfCommand(), writable: [policy.root] };
}

/** Why no command can run here, and what to do; undefined where one can, as far as a look shows. */
export async function sandboxFault(settings: BoxesOf): Promise<string | undefined> {
  if (settings.policy.sandbox.mode === "off") return undefined;
  const found = await findWalls(wallsWanted(settings));
  return found.ok ? undefined : refusal(found.message);
}

function refusal(message: string): string {
  return `${message}; a machine or user policy may say \`sandbox: {mode: "off"}\` to run commands without one`;
}

/** Whether boxes that were opened under one of the settings serve the other as well. */
export function isSameWalls({ policy: a }: BoxesOf, { policy: b }: BoxesOf): boolean {
  return a.sandbox.mode === b.sandbox.mode && a.sandbox.backend === b.sandbox.backend && a.root === b.root;
}

/** Looks for walls and tries them. Never rejects: where there are none, every command is refused and says why. */
export async function openBoxes(settings: BoxesOf): Promise<SessionBoxes> {
  if (settings.policy.sandbox.mode === "off") return withoutBoxes();
  const programs = keyPrograms(keySources(settings.policy));
  const outside = programs.length === 0 ? {} : { outside: programs };
  let ground: BoxGround;
  try {
    ground = layBoxGround(settings);
  } catch (error) {
    const reason = `no private home or folder for temporary files can be made (${messageOf(error)})`;
    return refusedBoxes({ mode: "required", backend: "none", reason, ...outside }, reason);
  }
  const { walls, facts } = await tryWalls(settings, ground);
  if (walls !== undefined && facts.reason === undefined) {
    return boxesWith(walls, ground, { mode: "required", ...facts, ...outside });
  }
  ground.close();
  return refusedBoxes({ mode: "required", ...facts, ...outside }, refusal(facts.reason ?? ""));
}

type Tried = { readonly walls?: Walls; readonly facts: Pick<SandboxFacts, "backend" | "probe" | "reason"> };

async function tryWalls(settings: BoxesOf, ground: BoxGround): Promise<Tried> {
  const wanted = wallsWanted(settings);
  const likely = await likelyWalls(wanted);
  const first = likely === undefined ? undefined : await tryOut(likely, settings, ground);
  if (likely !== undefined && first !== undefined && first.failure === undefined) {
    return judged(likely, first);
  }
  // It may be there and be of no use, and then another one counts; what is wrong with it is said by its own trial.
  const found = await findWalls(wanted);
  if (!found.ok) return { facts: { backend: "none", reason: found.message } };
  return judged(found.walls, await tryOut(found.walls, settings, ground));
}

function judged(walls: Walls, { holes, failure }: Probe): Tried {
  const { backend } = walls;
  if (failure !== undefined) {
    const reason = `a trial command could not be run in the sandbox: ${failure}`;
    return { walls, facts: { backend, probe: "failed", reason } };
  }
  if (holes.length === 0) return { walls, facts: { backend, probe: "held" } };
  const reason = `a trial command got out of the sandbox: ${holes.join(", ")}`;
  return { walls, facts: { backend, probe: "escaped", reason } };
}

async function tryOut(walls: Walls, settings: BoxesOf, ground: BoxGround): Promise<Probe> {
  const outside = realpathSync(stateFolder(settings.surroundings));
  const box = boxOf(settings.policy.sandbox, defaultBox);
  if (box === undefined) return { holes: [], failure: "there is no default box" };
  // A policy may give commands the network or the state folder itself: that is no hole.
  const plan: BoxPlan = {
    ...planBox({ ...box, network: "none" }, siteOf(settings, ground, [])),
    write: [ground.home.folder],
  };
  return await probe(boxWith(walls, plan), {
    cwd: ground.home.folder,
    outside,
    env: environmentOf(settings, ground, box, walls),
  });
}

function boxesWith(walls: Walls, ground: BoxGround, facts: SandboxFacts): SessionBoxes {
  const plans = new Map<string, BoxPlan>();
  let protect: { readonly revision: string; readonly paths: readonly Protected[] } | undefined;
  const siteNow = (settings: BoxesOf) => {
    const { revision } = settings.policy;
    if (protect?.revision !== revision) {
      plans.clear();
      protect = { revision, paths: protectedNow(settings) };
    }
    return siteOf(settings, ground, protect.paths);
  };
  const planned = (settings: BoxesOf, key: string, make: (site: BoxSite) => BoxPlan) => {
    const site = siteNow(settings);
    const plan = plans.get(key) ?? make(site);
    plans.set(key, plan);
    return plan;
  };
  return {
    facts,
    at(settings) {
      const { sandbox } = settings.policy;
      const enter = entering(settings, (box, more) => {
        const fault = boxFault(box, walls);
        if (fault !== undefined) return { ok: false, code: "box_unavailable", message: fault };
        const plan = planned(settings, JSON.stringify([box.name, more]), (site) => planBox(box, site, more));
        return { ok: true, env: environmentOf(settings, ground, box, walls), box: boxWith(walls, plan) };
      });
      const entered = enter(defaultBox);
      return {
        place: { boxes: sandbox.boxes },
        shell: {
          ...limitsOf(settings.policy),
          env: entered.ok ? entered.env : {},
          boxes: {
            enter,
            look: () => ({
              ok: true,
              env: entered.ok ? entered.env : {},
              box: boxWith(walls, planned(settings, "git", planLook)),
            }),
            lack(name, output) {
              const box = boxOf(sandbox, name);
              return box === undefined ? undefined : boxLack(output, box, sandbox.boxes, {
                hidden: shownHidden(sandbox.hide, settings.surroundings.home),
                locked: walls.backend === "landlock",
              });
            },
          },
        },
        writable: [settings.policy.root, ground.home.folder, ground.tmp],
      };
    },
    renew() {
      protect = undefined;
    },
    close: ground.close,
  };
}

function refusedBoxes(facts: SandboxFacts, reason: string): SessionBoxes {
  const refused: Entered = { ok: false, code: "sandbox_unavailable", message: reason };
  return {
    facts,
    at(settings) {
      const { sandbox, root } = settings.policy;
      const enter = entering(settings, () => refused);
      const open = sandbox.boxes.filter((b) => b.off === true).map((b) => `\`${b.name}\``);
      return {
        place: {
          boxes: sandbox.boxes,
          shellRefused: open.length === 0
            ? reason
            : `${reason}; without a sandbox runs: box ${open.join(", ")}`,
        },
        shell: {
          ...limitsOf(settings.policy),
          env: bareEnvironment(settings, undefined),
          boxes: { enter, look: () => refused, lack: () => undefined },
        },
        writable: [root],
      };
    },
    renew() {},
    close() {},
  };
}

function withoutBoxes(): SessionBoxes {
  return {
    facts: "off",
    at(settings) {
      const { sandbox, root } = settings.policy;
      const env = bareEnvironment(settings, undefined);
      return {
        place: { boxes: sandbox.boxes },
        shell: {
          ...limitsOf(settings.policy),
          env,
          boxes: {
            // Without a sandbox none of them has walls.
            enter: entering(settings, (box) => ({ ok: true, env: bareEnvironment(settings, box) })),
            look: () => ({ ok: true, env }),
            lack: () => undefined,
          },
        },
        writable: [root],
      };
    },
    renew() {},
    close() {},
  };
}

// A box that is off needs no walls; `into` is asked for the others.
function entering(
  settings: BoxesOf,
  into: (box: FullBox, more: readonly string[]) => Entered,
): Boxes["enter"] {
  const { sandbox } = settings.policy;
  return (name, more = []) => {
    const box = boxOf(sandbox, name);
    if (box === undefined) return { ok: false, ...missing(settings, name) };
    return box.off ? { ok: true, env: bareEnvironment(settings, box) } : into(box, more);
  };
}

function missing({ policy }: BoxesOf, name: string): { readonly code: string; readonly message: string } {
  return unknownBox(policy.sandbox.boxes, name) ??
    { code: "unknown_box", message: `there is no box \`${name}\`` };
}

// Landlock cannot tell one socket of the host from another one.
function boxFault(box: FullBox, walls: Walls): string | undefined {
  if (walls.backend === "bwrap" || box.sockets.length === 0) return undefined;
  return `the box \`${box.name}\` names sockets, and without bubblewrap none can be opened alone; install bubblewrap, or take \`sockets\` out of the box`;
}

function limitsOf({ tools }: Policy): Omit<ShellSettings, "env" | "boxes"> {
  const { timeoutMs, maxTimeoutMs, maxOutput } = tools.shell;
  return { timeoutMs, maxTimeoutMs, maxOutput };
}

// As a command may write them.
function shownHidden(hide: readonly string[], home: string): readonly string[] {
  return hide.flatMap((path) => isWithin(path, home) ? [path, `~${path.slice(home.length)}`] : [path]);
}
