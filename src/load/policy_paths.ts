// Paths that a policy names, by the marks of its schema: what is brought by a workspace and what is protected both follow it.
import { statSync } from "node:fs";
import type { Position } from "../core/problem.ts";
import { resolvePath } from "./locate.ts";
import type { PolicyFile } from "./policy_file.ts";
import { type PathRole, policySchema } from "./policy_schema.ts";
import type { YamlPath } from "./yaml.ts";

export type NamedPath = {
  /** Absolute. */
  readonly path: string;
  readonly role: PathRole;
  readonly at: Position;
};

/** A key whose value is a path, `*` for any name or index. */
export type PathKey = { readonly path: YamlPath; readonly role: PathRole };

/** The keys of a policy that are marked as paths, in the order of the schema. */
export const pathKeys: readonly PathKey[] = marked(policySchema as unknown as Node, []);

/** What one file names, each where it stands. */
export function namedPaths(file: PolicyFile, home: string): readonly NamedPath[] {
  const base = { file: file.path, home };
  return pathKeys.flatMap(({ path, role }) =>
    valuesAt(file.data, path, []).flatMap((found): NamedPath[] => {
      if (typeof found.value === "string") {
        return [{ path: resolvePath(found.value, base), role, at: file.at(found.path) }];
      }
      if (!Array.isArray(found.value)) return [];
      return found.value.flatMap((word: string, index): NamedPath[] => {
        const full = resolvePath(word, base);
        const isNamed = index === 0 ? /[/\\]/.test(word) : isFile(full);
        return isNamed ? [{ path: full, role, at: file.at([...found.path, index]) }] : [];
      });
    })
  );
}

// An interpreter is handed its program: an argument that is a file counts as what is started.
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

type Found = { readonly path: YamlPath; readonly value: unknown };

function valuesAt(value: unknown, pattern: YamlPath, path: YamlPath): readonly Found[] {
  const [step, ...rest] = pattern;
  if (step === undefined) return [{ path, value }];
  if (typeof value !== "object" || value === null) return [];
  const members: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value);
  return members.filter(([name]) => step === "*" || step === name)
    .flatMap(([name, member]) => valuesAt(member, rest, [...path, name]));
}

// The parts of a schema that the walk reads.
type Node = {
  readonly entries?: { readonly [key: string]: Node };
  readonly wrapped?: Node;
  readonly item?: Node;
  readonly value?: Node;
  readonly options?: readonly (Node | string)[];
  readonly pipe?: readonly (Node & { readonly metadata?: { readonly path?: PathRole } })[];
};

function marked(node: Node, path: YamlPath): readonly PathKey[] {
  const role = roleOf(node);
  if (role !== undefined) return [{ path, role }];
  return [
    ...(node.wrapped === undefined ? [] : marked(node.wrapped, path)),
    ...Object.entries(node.entries ?? {}).flatMap(([key, member]) => marked(member, [...path, key])),
    ...[node.item, node.value].flatMap((member) =>
      member === undefined ? [] : marked(member, [...path, "*"])
    ),
    ...(node.options ?? []).flatMap((option) => typeof option === "string" ? [] : marked(option, path)),
  ];
}

// A pipe of a pipe holds the inner one as its first step.
function roleOf({ pipe = [] }: Node): PathRole | undefined {
  const own = pipe.find((step) => step.metadata?.path !== undefined)?.metadata?.path;
  const [first] = pipe;
  return own ?? (first?.pipe === undefined || first.pipe === pipe ? undefined : roleOf(first));
}
