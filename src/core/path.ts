// Paths as text: what lies in which folder. Absolute and normalised on both sides; nothing is looked up.

/** Whether `path` is `folder` or lies in it. A folder may end in a separator; whose system it is of shows in how it begins. */
export function isWithin(path: string, folder: string): boolean {
  return relativeTo(path, folder) !== undefined;
}

/** Whether `path` lies in `folder` and is not the folder itself. */
export function isBelow(path: string, folder: string): boolean {
  return (relativeTo(path, folder) ?? "") !== "";
}

/** The way from `folder` to `path`, with `/` between names; "" for the folder itself, undefined for what is not in it. */
export function relativeTo(path: string, folder: string): string | undefined {
  // Elsewhere a backslash is a letter of a name.
  const windows = /^[A-Za-z]:|^\\/.test(folder);
  const base = folder.replace(windows ? /[\\/]+$/ : /\/+$/, "");
  if (path === base) return "";
  if (!path.startsWith(base) || !(windows ? /[\\/]/ : /\//).test(path.charAt(base.length))) return undefined;
  const inner = path.slice(base.length + 1);
  return windows ? inner.replaceAll("\\", "/") : inner;
}
