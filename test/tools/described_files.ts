// A file system told by a list of files and links, as the permission cases describe theirs.
import type { FileKind, FilePort } from "../../src/tools/path_fact.ts";

export type Description = {
  readonly root: string;
  readonly files?: readonly string[];
  readonly symlinks?: { readonly [path: string]: string };
  readonly caseInsensitive?: boolean;
  readonly unicodeNormalizing?: boolean;
};

/** Relative paths start at the root. Nothing of the real machine is looked at. */
export function describedFiles(described: Description): FilePort {
  const absolute = (path: string) => path.startsWith("/") ? path : `${described.root}/${path}`;
  const links = new Map(Object.entries(described.symlinks ?? {}).map(([path, to]) => [absolute(path), to]));
  const kinds = new Map<string, FileKind>();
  for (const path of [...(described.files ?? []).map(absolute), ...links.keys(), described.root]) {
    kinds.set(path, links.has(path) ? "link" : path === described.root ? "dir" : "file");
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
      kinds.set(path.slice(0, at), "dir");
    }
  }
  return {
    lstat: (path) => path === "/" ? "dir" : kinds.get(path),
    readlink: (path) => links.get(path) ?? "",
    list: (folder) => {
      const prefix = folder === "/" ? "/" : `${folder}/`;
      return [...kinds.keys()].filter((k) => k.startsWith(prefix) && !k.slice(prefix.length).includes("/"))
        .map((k) => k.slice(prefix.length));
    },
    caseInsensitive: described.caseInsensitive ?? false,
    unicodeNormalizing: described.unicodeNormalizing ?? false,
  };
}
