// `sandbox` of a policy: the default box and the named ones, of all layers as one, and whether each name that is used is defined.
import {
  type BoxPlace,
  boxPlaces,
  type BoxSettings,
  defaultBox,
  type SandboxSettings,
  sharedPlaces,
  showPlace,
  undefinedBox,
} from "../core/box.ts";
import type { Json } from "../core/message.ts";
import type { Position, Problem } from "../core/problem.ts";
import { showFound, showPath } from "./check_value.ts";
import { parseSize } from "./duration.ts";
import { resolvePath } from "./locate.ts";
import type { PolicyFile } from "./policy_file.ts";
import type { PolicyData } from "./policy_schema.ts";
import {
  firstOf,
  leastOf,
  type Placed,
  policyLayers,
  type Settings,
  setTwice,
  strictestOf,
  unionOf,
} from "./policy_settings.ts";
import type { KeyFault } from "./policy_values.ts";
import type { YamlPath } from "./yaml.ts";

type BoxEntry = NonNullable<NonNullable<PolicyData["sandbox"]>["boxes"]>[string];

/** Hidden whatever the policy says, from every box that does not name what lies in them. */
export const homeSecrets = ["~/.ssh", "~/.aws", "~/.gnupg", "~/.config"] as const;

/** What values must be beyond their shape. */
export const sandboxChecks: readonly {
  readonly path: string;
  readonly fault: (path: YamlPath, value: unknown) => KeyFault | undefined;
}[] = [
  { path: "sandbox.read.*", fault: placeFault },
  { path: "sandbox.write.*", fault: writeFault },
  { path: "sandbox.hide.*", fault: pathFault },
  { path: "sandbox.boxes.*", fault: boxFault },
  { path: "sandbox.boxes.*.read.*", fault: placeFault },
  { path: "sandbox.boxes.*.write.*", fault: writeFault },
  { path: "sandbox.boxes.*.sockets.*", fault: socketFault },
];

export function mergeSandbox(settings: Settings, home: string): SandboxSettings {
  const least = (n: number) => n;
  return {
    mode: strictestOf(settings, "sandbox.mode", ["required", "off"], "required").value,
    backend: firstOf(settings, "sandbox.backend", "auto"),
    network: strictestOf(settings, "sandbox.network", ["none", "all"], "none").value,
    read: mergePlaces(settings, "read", ["system", "tools", "workspace", "home"], home),
    write: mergePlaces(settings, "write", ["workspace", "home"], home),
    hide: mergeHidden(settings, home),
    limits: {
      processes: leastOf(settings, "sandbox.limits.processes", 256, least) ?? 0,
      memory: leastOf(settings, "sandbox.limits.memory", "2GiB", (text) => parseSize(text) ?? 0) ?? 0,
    },
    boxes: mergeBoxes(settings, home),
  };
}

/** A name of a box that nothing defines, where a skill or a server uses it. */
export function undefinedBoxes(
  sandbox: SandboxSettings,
  used: readonly { readonly box: string; readonly at: Position }[],
): readonly Problem[] {
  const names = sandbox.boxes.map((b) => b.name);
  return used.flatMap(({ box, at }): Problem[] => {
    const fault = undefinedBox(names, box);
    return fault === undefined ? [] : [{ code: "unknown-box", severity: "error", at, ...fault }];
  });
}

/** `skills.boxes` of all layers: at most one box of a skill; two that differ are a Problem. */
export function mergeSkillBoxes(
  settings: Settings,
): readonly { readonly skill: string; readonly box: string; readonly at: Position }[] {
  const found = new Map<string, { readonly skill: string; readonly box: string; readonly at: Position }>();
  for (const file of settings.files) {
    for (const [skill, box] of Object.entries(file.data.skills?.boxes ?? {})) {
      const path = ["skills", "boxes", skill];
      const at = file.at(path);
      const before = found.get(skill);
      if (before !== undefined && before.box !== box) setTwice(settings, path.join("."), before, { at });
      if (before !== undefined) continue;
      found.set(skill, { skill, box, at });
      settings.origin.push({ key: path.join("."), value: box, layer: file.layer, at });
    }
  }
  return [...found.values()];
}

type ListKey = "read" | "write";

// What every layer that sets the list names.
function mergePlaces(
  settings: Settings,
  key: ListKey,
  fallback: readonly BoxPlace[],
  home: string,
): readonly BoxPlace[] {
  const whole = `sandbox.${key}`;
  const layers = policyLayers.map((layer) =>
    settings.files.filter((f) => f.layer === layer && f.data.sandbox?.[key] !== undefined)
  ).filter((files) => files.length > 0).map((files) =>
    files.flatMap((file) =>
      (file.data.sandbox?.[key] ?? []).map((text, index): Placed<BoxPlace> => ({
        value: placeOf(text, file, home),
        layer: file.layer,
        at: file.at(["sandbox", key, index]),
      }))
    )
  );
  const [first, ...others] = layers;
  if (first === undefined) {
    for (const place of fallback) {
      settings.origin.push({ key: whole, value: showPlace(place), layer: "default", at: "default" });
    }
    return fallback;
  }
  let kept = first;
  for (const lower of others) {
    const both = sharedPlaces(kept.map((p) => p.value), lower.map((p) => p.value));
    for (const item of lower.filter((l) => sharedPlaces(kept.map((p) => p.value), [l.value]).length === 0)) {
      noEffect(settings, whole, showPlace(item.value), item);
    }
    kept = [...kept, ...lower].filter((p) => both.includes(p.value));
  }
  for (const p of kept) {
    settings.origin.push({ key: whole, value: showPlace(p.value), layer: p.layer, at: p.at });
  }
  return [...new Map(kept.map((p) => [showPlace(p.value), p.value])).values()];
}

function placeOf(text: string, file: PolicyFile, home: string): BoxPlace {
  const known = boxPlaces.find((place) => place === text);
  return known ?? { path: resolvePath(text, { file: file.path, home }) };
}

// The embedded ones stay whatever a file adds: a further entry never uncovers one.
function mergeHidden(settings: Settings, home: string): readonly string[] {
  const own = unionOf(settings, "sandbox.hide").map((p) => resolvePath(p.value, { file: p.at.file, home }));
  const embedded = homeSecrets.map((path) => resolvePath(path, { file: "", home }));
  for (const value of homeSecrets) {
    settings.origin.push({ key: "sandbox.hide", value, layer: "default", at: "default" });
  }
  return [...new Set([...embedded, ...own])];
}

type PlacedBox = Placed<BoxSettings>;

// A layer that defines boxes says by that which there are: one below it can make them smaller, not add to them.
function mergeBoxes(settings: Settings, home: string): readonly BoxSettings[] {
  let kept: ReadonlyMap<string, PlacedBox> | undefined;
  for (const layer of policyLayers) {
    const own = layerBoxes(settings, layer, home);
    if (own.size === 0) continue;
    if (kept === undefined) {
      kept = own;
      continue;
    }
    const upper: ReadonlyMap<string, PlacedBox> = kept;
    for (const [name, box] of own) {
      if (!upper.has(name)) noEffect(settings, `sandbox.boxes.${name}`, undefined, box);
    }
    kept = new Map([...upper].map(([name, box]) => {
      const lower = own.get(name);
      return [name, lower === undefined ? box : { ...box, value: sharedBox(box.value, lower.value) }];
    }));
  }
  const boxes = [...kept ?? []].sort(([a], [b]) => a < b ? -1 : 1);
  for (const [name, { value, layer, at }] of boxes) {
    settings.origin.push({ key: `sandbox.boxes.${name}`, value: shownBox(value), layer, at });
  }
  return boxes.map(([, { value }]) => value);
}

function layerBoxes(
  settings: Settings,
  layer: (typeof policyLayers)[number],
  home: string,
): ReadonlyMap<string, PlacedBox> {
  const found = new Map<string, PlacedBox>();
  for (const file of settings.files.filter((f) => f.layer === layer)) {
    for (const [name, entry] of Object.entries(file.data.sandbox?.boxes ?? {})) {
      const at = file.keyAt(["sandbox", "boxes", name]);
      const before = found.get(name);
      if (before === undefined) found.set(name, { value: boxSettings(name, entry, file, home), layer, at });
      else setTwice(settings, `sandbox.boxes.${name}`, before, { at });
    }
  }
  return found;
}

function boxSettings(name: string, entry: BoxEntry, file: PolicyFile, home: string): BoxSettings {
  const places = (texts: readonly string[] = []) => texts.map((text) => placeOf(text, file, home));
  return {
    name,
    ...(entry.mode === "off" ? { off: true } : {}),
    ...(entry.network === undefined ? {} : { network: entry.network }),
    read: places(entry.read),
    write: places(entry.write),
    env: entry.env ?? [],
    sockets: (entry.sockets ?? []).map((text) =>
      isVariable(text) ? text : resolvePath(text, { file: file.path, home })
    ),
    ...(entry.note === undefined ? {} : { note: entry.note }),
  };
}

function sharedBox(upper: BoxSettings, lower: BoxSettings): BoxSettings {
  const { off: _, network: __, ...rest } = upper;
  const network = upper.network === "none" || lower.network === "none"
    ? "none"
    : upper.network !== undefined && lower.network !== undefined
    ? "all"
    : undefined;
  return {
    ...rest,
    ...(upper.off === true && lower.off === true ? { off: true } : {}),
    ...(network === undefined ? {} : { network }),
    read: sharedPlaces(upper.read, lower.read),
    write: sharedPlaces(upper.write, lower.write),
    env: upper.env.filter((name) => lower.env.includes(name)),
    sockets: upper.sockets.filter((name) => lower.sockets.includes(name)),
  };
}

function shownBox({ name: _, off, read, write, ...rest }: BoxSettings): Json {
  return {
    ...(off === undefined ? {} : { mode: "off" }),
    ...rest,
    ...(read.length === 0 ? {} : { read: read.map(showPlace) }),
    ...(write.length === 0 ? {} : { write: write.map(showPlace) }),
  };
}

function noEffect(
  settings: Settings,
  key: string,
  value: string | undefined,
  { at, layer }: { readonly at: Position; readonly layer: string },
): void {
  const shown = value === undefined ? "" : ` as ${showFound(value)}`;
  settings.problems.push({
    code: "no-effect",
    severity: "warning",
    message: `${
      showPath(key.split("."))
    }${shown} in the ${layer} layer has no effect: an upper layer does not name it`,
    at,
  });
}

function placeFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "string" || (boxPlaces as readonly string[]).includes(value)) return undefined;
  if (/^[a-z]+$/.test(value)) {
    return {
      code: "wrong-value",
      message: `${showPath(path)} is ${showFound(value)}`,
      expected: `${boxPlaces.map((p) => `\`${p}\``).join(", ")}, or a path`,
      hint: `a folder of that name is written \`./${value}\``,
      place: "value",
    };
  }
  return pathFault(path, value);
}

function writeFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (value !== "system" && value !== "tools") return placeFault(path, value);
  return {
    code: "wrong-value",
    message: `${showPath(path)} is ${showFound(value)}: what commands are made of is never writable`,
    expected: "`workspace`, `home`, or a path",
    place: "value",
  };
}

// A box holds what it is given when it is made: a pattern would say nothing of a file that is still to come.
function pathFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "string") return undefined;
  if (/[*?[\]{}]/.test(value)) {
    return {
      code: "bad-pattern",
      message: `${showPath(path)} is ${
        showFound(value)
      }, and no sandbox can hold a pattern: a file that comes later would not be covered`,
      expected: "the path of a file or folder",
      hint: "name the folder, or forbid the files to the file tools by a rule on their path",
      place: "value",
    };
  }
  if (value !== "/" || path.includes("hide") === false) return undefined;
  return {
    code: "wrong-value",
    message: `${showPath(path)} is ${showFound(value)}`,
    expected: "the path of a file or folder",
    place: "value",
  };
}

function boxFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (path.at(-1) === defaultBox) {
    return {
      code: "wrong-value",
      message: `${showPath(path)}: \`${defaultBox}\` is the box of a call that names none`,
      hint: "choose another name; the default box is described by `sandbox` itself",
      place: "key",
    };
  }
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, "mode")) return undefined;
  const other = Object.keys(value).find((key) => !["mode", "note", "env"].includes(key));
  return other === undefined ? undefined : {
    code: "wrong-value",
    message: `${
      showPath([...path, other])
    } says nothing where \`mode\` is \`off\`: such a box holds nothing back`,
    hint: "remove the one or the other",
    place: "key",
  };
}

function socketFault(path: YamlPath, value: unknown): KeyFault | undefined {
  if (typeof value !== "string" || isVariable(value) || /^(~?\/)/.test(value)) return pathFault(path, value);
  return {
    code: "wrong-value",
    message: `${showPath(path)} is ${showFound(value)}`,
    expected:
      "the name of a variable that holds the socket's path, such as `SSH_AUTH_SOCK`, or an absolute path",
    place: "value",
  };
}

function isVariable(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}
