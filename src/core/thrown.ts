// What was thrown, as text. Anything can be thrown, so nothing is taken for granted about it.

/** The message of an Error, any other value as a string. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The code that the system or a runtime gives its errors, such as `ENOENT`; undefined where there is none. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}
