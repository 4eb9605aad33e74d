// Boxes as the policy describes them: what the default one holds, what a named one adds, and how they are told apart in words.
import { nearest } from "./problem.ts";
import { isWithin } from "./path.ts";

/** A place by its name, or by its absolute path. */
export type BoxPlace = "system" | "tools" | "workspace" | "home" | { readonly path: string };
export const boxPlaces = ["system", "tools", "workspace", "home"] as const;

export type Network = "none" | "all";

/** What a named box adds to the default one. */
export type BoxSettings = {
  readonly name: string;
  /** No sandbox at all: the command runs as Writ itself does. */
  readonly off?: true;
  readonly network?: Network;
  readonly read: readonly BoxPlace[];
  readonly write: readonly BoxPlace[];
  /** Names of variables. */
  readonly env: readonly string[];
  /** Names of variables that hold the path of a socket, and absolute paths. */
  readonly sockets: readonly string[];
  readonly note?: string;
};

export type SandboxSettings = {
  readonly mode: "required" | "off";
  readonly backend: "auto" | "bwrap" | "landlock";
  readonly network: Network;
  readonly read: readonly BoxPlace[];
  readonly write: readonly BoxPlace[];
  /** Absolute paths. */
  readonly hide: readonly string[];
  readonly limits: { readonly processes: number; readonly memory: number };
  /** In the order of their names. */
  readonly boxes: readonly BoxSettings[];
};

/** The box of a call that names none. */
export const defaultBox = "default";

/** One box with all that it holds, what it has from the default one included. */
export type FullBox = {
  readonly name: string;
  readonly off: boolean;
  readonly network: Network;
  readonly read: readonly BoxPlace[];
  readonly write: readonly BoxPlace[];
  /** Further variables, beside those of every command. */
  readonly env: readonly string[];
  readonly sockets: readonly string[];
};

/** Undefined: the policy defines no such box. */
export function boxOf(sandbox: SandboxSettings, name: string): FullBox | undefined {
  const added = name === defaultBox ? plain : sandbox.boxes.find((b) => b.name === name);
  if (added === undefined) return undefined;
  return {
    name,
    off: sandbox.mode === "off" || added.off === true,
    network: added.network ?? sandbox.network,
    read: [...sandbox.read, ...added.read],
    write: [...sandbox.write, ...added.write],
    env: added.env,
    sockets: added.sockets,
  };
}

const plain: BoxSettings = { name: defaultBox, read: [], write: [], env: [], sockets: [] };

/** In one line: `push (network, socket SSH_AUTH_SOCK; to the team's server)`. */
export function showBox(box: BoxSettings): string {
  const listed = (what: string, items: readonly string[]) =>
    items.length === 0 ? [] : [`${what} ${items.join(", ")}`];
  const holds = box.off === true ? ["no sandbox"] : [
    ...(box.network === undefined ? [] : [box.network === "all" ? "network" : "no network"]),
    ...listed("socket", box.sockets),
    ...listed("reads", box.read.map(showPlace)),
    ...listed("writes", box.write.map(showPlace)),
    ...listed("variable", box.env.filter((name) => !box.sockets.includes(name))),
  ];
  const said = [holds.join(", "), box.note ?? ""].filter((text) => text !== "").join("; ");
  return said === "" ? box.name : `${box.name} (${said})`;
}

export function showPlace(place: BoxPlace): string {
  return typeof place === "string" ? place : place.path;
}

/** The names that a call may use, and what stands behind them. */
export function showBoxes(boxes: readonly BoxSettings[]): string {
  return boxes.length === 0
    ? `\`${defaultBox}\`; the policy defines no other`
    : `\`${defaultBox}\`, ${boxes.map(showBox).join(", ")}`;
}

/** Why a call cannot run in the box of that name; undefined where it can. */
export function unknownBox(
  boxes: readonly BoxSettings[],
  name: string,
): { readonly code: "unknown_box"; readonly message: string } | undefined {
  if (name === defaultBox || boxes.some((b) => b.name === name)) return undefined;
  return { code: "unknown_box", message: `there is no box \`${name}\`; boxes are ${showBoxes(boxes)}` };
}

/** For a file that names a box which the policy does not define. */
export function undefinedBox(
  names: readonly string[],
  name: string,
): { readonly message: string; readonly hint: string } | undefined {
  if (name === defaultBox || names.includes(name)) return undefined;
  const near = nearest(name, names);
  return {
    message: `the box \`${name}\` is not defined`,
    hint: near !== undefined
      ? `did you mean \`${near}\`?`
      : names.length === 0
      ? "define it in `sandbox.boxes`"
      : `boxes are ${names.map((n) => `\`${n}\``).join(", ")}; define it in \`sandbox.boxes\``,
  };
}

/** What both lists hold; of two paths that lie in each other, the inner one. */
export function sharedPlaces(upper: readonly BoxPlace[], lower: readonly BoxPlace[]): readonly BoxPlace[] {
  return [
    ...upper.filter((u) => lower.some((l) => holds(l, u))),
    ...lower.filter((l) => upper.some((u) => holds(u, l) && !holds(l, u))),
  ];
}

function holds(outer: BoxPlace, inner: BoxPlace): boolean {
  if (typeof outer === "string" || typeof inner === "string") return outer === inner;
  return isWithin(inner.path, outer.path);
}
