// What a gate is worth against somebody who wants to get around it.
import { type BoxSettings, defaultBox, showPlace } from "./box.ts";
import type { Gate, Policy } from "./policy.ts";
import { namesTool, type Rule } from "./rule.ts";
import { coversRule } from "./rule_cover.ts";

export type GateLabel = { readonly label: "enforced" | "advice"; readonly reason: string };
/** What of a policy decides about it. */
export type LabelFacts = Pick<Policy, "sandbox" | "layers" | "mcpServers" | "root" | "tools"> & {
  readonly skills: Pick<Policy["skills"], "boxes">;
};

/**
 * `enforced`: what the gate guards cannot be had in any other way than through it, save with a person's yes. For a call that is
 * so when it is gated in a box which alone opens the network, a socket or whatever else it needs, and when no rule lets
 * another command into that box.
 */
export function gateLabel(gate: Pick<Gate, "before">, policy: LabelFacts): GateLabel {
  if (gate.before.length === 0) return { label: "enforced", reason: "nothing but Writ ends a turn well" };
  const around = wayAround(gate.before, policy);
  if (around !== undefined) return { label: "advice", reason: around };
  const names = guardedBoxes(gate.before).map((name) => `\`${name}\``).join(", ");
  return {
    label: "enforced",
    reason: `what it guards is reachable only in box ${names}, and no rule lets anything else in there`,
  };
}

function wayAround(before: readonly Rule[], policy: LabelFacts): string | undefined {
  const { sandbox } = policy;
  if (before.some((rule) => rule.box === undefined || rule.box.includes(defaultBox))) {
    return "another program could do what the guarded call does; a box that the gate names, and that alone has what the call needs, would close that";
  }
  if (sandbox.mode === "off") {
    return "`sandbox.mode` is `off`, so another program could do what the guarded call does";
  }
  if (sandbox.network === "all") return "`sandbox.network` is `all`: every command has the network";
  const names = guardedBoxes(before);
  const guarded = sandbox.boxes.filter((b) => names.includes(b.name));
  const empty = guarded.find((box) => opens(box).length === 0);
  if (empty !== undefined) return `the box \`${empty.name}\` opens nothing that the default one has not`;
  return otherBox(guarded, policy) ?? otherTool(guarded, policy) ?? otherRule(before, names, policy);
}

function guardedBoxes(before: readonly Rule[]): readonly string[] {
  return [...new Set(before.flatMap((rule) => rule.box ?? []))];
}

/** What a box adds, in comparable words. */
function opens(box: BoxSettings): readonly string[] {
  return [
    ...(box.off === true ? ["everything"] : []),
    ...(box.network === "all" || box.off === true ? ["the network"] : []),
    ...box.sockets.map((s) => `the socket ${s}`),
    ...box.env.map((e) => `the variable ${e}`),
    ...box.read.map((p) => `the path ${showPlace(p)}`),
    ...box.write.map((p) => `the path ${showPlace(p)}`),
  ];
}

function otherBox(guarded: readonly BoxSettings[], { sandbox }: LabelFacts): string | undefined {
  const needed = guarded.flatMap(opens);
  for (const box of sandbox.boxes) {
    if (guarded.includes(box)) continue;
    const shared = opens(box).find((what) => what === "everything" || needed.includes(what));
    if (shared !== undefined) return `the box \`${box.name}\` opens ${shared} as well`;
  }
  return undefined;
}

function otherTool(guarded: readonly BoxSettings[], policy: LabelFacts): string | undefined {
  const names = guarded.map((b) => b.name);
  const skill = policy.skills.boxes.find((s) => names.includes(s.box));
  if (skill !== undefined) {
    return `the tools of the skill \`${skill.skill}\` run in the box \`${skill.box}\` as well`;
  }
  if (!guarded.flatMap(opens).includes("the network")) return undefined;
  const server = policy.mcpServers.find((s) => s.reach.kind === "url" || names.includes(s.box ?? defaultBox));
  if (server !== undefined) return `the server \`${server.name}\` reaches the network as well`;
  return policy.tools.enabled.includes("fetch_url") ? "`fetch_url` reaches the network as well" : undefined;
}

// Without a rule that names the box, a call in it is asked about.
function otherRule(
  before: readonly Rule[],
  names: readonly string[],
  policy: LabelFacts,
): string | undefined {
  const base = { root: policy.root, home: "/" };
  const reaches = { wide: "restrict", narrow: "allow" } as const;
  const letsIn = policy.layers.flatMap((l) => l.rules).find((rule) =>
    rule.effect === "allow" && namesTool(rule, "shell") && rule.box?.some((box) =>
        names.includes(box)
      ) === true &&
    !before.some((gated) => coversRule(gated, rule, reaches, base))
  );
  return letsIn === undefined
    ? undefined
    : `the rule \`${letsIn.id}\` lets other commands into the box: gate the box as a whole, as {tool: shell, box: ${
      names[0]
    }}`;
}
