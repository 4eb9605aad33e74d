// What holds commands on this machine, whether it was seen to hold, and what is lacking: for whoever asks before a session.
import type { SandboxFacts } from "../core/event.ts";
import { findWalls, lacksOf } from "../sandbox/backend.ts";
import { run } from "../sandbox/subprocess.ts";
import type { Walls } from "../sandbox/walls.ts";
import type { BoxesOf } from "./box_ground.ts";
import { openBoxes, wallsWanted } from "./boxes.ts";

export type SandboxReport = {
  readonly mode: "required" | "off";
  /** `none`: with `required`, every command is refused. */
  readonly backend: SandboxFacts["backend"];
  /** As the backend says it: `bubblewrap 0.8.0`, `Landlock 7`. */
  readonly version?: string;
  /** What became of a hostile command in the default box. */
  readonly probe?: "held" | "escaped" | "failed";
  /** Why no command can run. */
  readonly reason?: string;
  /** Why a better backend is not taken, then what this one cannot do; in words, none of them means trouble by itself. */
  readonly missing: readonly string[];
  /** What to install or change to have all of it. */
  readonly remedy?: string;
  /** Keys of the policy whose programs run outside of every box. */
  readonly outside: readonly string[];
};

/** Opens boxes as a session does, and closes them again. Never rejects. */
export async function sandboxReport(settings: BoxesOf): Promise<SandboxReport> {
  const boxes = await openBoxes(settings);
  boxes.close();
  const { facts } = boxes;
  if (facts === "off") return { mode: "off", backend: "none", missing: [], outside: [] };
  const { outside = [], ...told } = facts;
  const found = await findWalls(wallsWanted(settings));
  const walls = found.ok && found.walls.backend === facts.backend ? found.walls : undefined;
  const version = walls === undefined ? undefined : await versionOf(walls);
  return {
    ...told,
    ...(version === undefined ? {} : { version }),
    missing: [...found.passedOver, ...(walls === undefined ? [] : lacksOf(walls))],
    ...(found.remedy === undefined ? {} : { remedy: found.remedy }),
    outside,
  };
}

async function versionOf(walls: Walls): Promise<string> {
  if (walls.backend === "landlock") return `Landlock ${walls.abi}`;
  const asked = await run([walls.bwrap, "--version"], { cwd: "/", env: {}, timeoutMs: 5000, maxOutput: 200 });
  return asked.stdout.trim() || "bubblewrap";
}
