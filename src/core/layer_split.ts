// The rules of a layer, sorted by what they can speak of at all: most rules are about other tools and other programs.
import { patternProgram, programOf } from "./command.ts";
import type { Subject } from "./facts.ts";
import type { Layer } from "./policy.ts";
import { programName } from "./program_options.ts";
import { namesTool, type Rule } from "./rule.ts";

type Sorted = { readonly allow: readonly Rule[]; readonly restrict: readonly Rule[] };

/** A layer as it bears on some tools; rules over others are left out. Rules keep their order. */
export type SplitLayer = Pick<Layer, "name" | "defaults" | "delegates"> & Sorted & {
  /** Allow rules with a matcher for commands, and those with one for boxes. */
  readonly commanded: readonly Rule[];
  readonly boxed: readonly Rule[];
  /** Those that may match this subject itself; what they match beyond it is not looked at. */
  about(subject: Subject): Sorted;
};

// Layers never change, and calls are of few tools: each split is made once.
const splits = new WeakMap<Layer, Map<string, SplitLayer>>();
const most = 500;

/** `tools`: those of the call and of its subjects. */
export function splitLayer(layer: Layer, tools: readonly string[]): SplitLayer {
  const known = splits.get(layer) ?? new Map<string, SplitLayer>();
  splits.set(layer, known);
  return kept(known, tools.join("\0"), () => {
    const whole = sorted(layer.rules.filter((r) => tools.some((tool) => namesTool(r, tool))));
    const { allow } = whole;
    const byProgram = new Map<string, Sorted>();
    const others = sorted(
      [...allow, ...whole.restrict].filter((r) => r.command === undefined),
    );
    return {
      name: layer.name,
      defaults: layer.defaults,
      delegates: layer.delegates,
      ...whole,
      commanded: allow.filter((r) => r.command !== undefined),
      boxed: allow.filter((r) => r.box !== undefined),
      about(subject) {
        if (subject.kind !== "part") return others;
        const program = programOf(subject.part);
        const name = programName(subject.part.argv[0] ?? "");
        return program === undefined
          ? whole
          : kept(byProgram, `${program} ${name}`, () => forProgram(whole, program, name));
      },
    };
  });
}

function kept<T>(map: Map<string, T>, key: string, make: () => T): T {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  if (map.size >= most) map.clear();
  map.set(key, made);
  return made;
}

function sorted(rules: readonly Rule[]): Sorted {
  return {
    allow: rules.filter((r) => r.effect === "allow"),
    restrict: rules.filter((r) => r.effect !== "allow"),
  };
}

// `git-push` is `git` to rules that restrict, and itself to those that allow.
function forProgram({ allow, restrict }: Sorted, program: string, name: string): Sorted {
  return {
    allow: allow.filter((r) => mayName(r, name)),
    restrict: restrict.filter((r) => mayName(r, program)),
  };
}

function mayName(rule: Rule, program: string): boolean {
  return rule.command === undefined || rule.command.some((pattern) => {
    const named = patternProgram(pattern);
    return named === undefined || named === program;
  });
}
