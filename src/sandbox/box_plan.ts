// What a boxed process may see and do, all paths resolved: what the backends are made from, whichever is there.

/** Absolute real paths throughout; a path may be a file or a folder. */
export type BoxPlan = {
  /** The policy's name of it; `default` unless a call or a rule names another. */
  readonly name: string;
  /** `none`: a network of its own in which there is only itself, or none at all. */
  readonly network: "none" | "all";
  /** Readable, with all that is below. */
  readonly read: readonly string[];
  /** Readable and writable, with all that is below, `protect` apart. */
  readonly write: readonly string[];
  /** Seen by nobody, also below what is readable. */
  readonly hide: readonly string[];
  /** Never written, also below what is writable, whether they exist yet or not. */
  readonly protect: readonly Protected[];
  /** Sockets of the host that may be connected to. */
  readonly sockets: readonly string[];
  /** Folder for temporary files, private to the session. */
  readonly tmp: string;
  readonly processes: number;
  /** Bytes of memory that one process may write to. */
  readonly memory: number;
};

/** `folder`: what it is, or what it would be if it came to exist. */
export type Protected = { readonly path: string; readonly folder: boolean };
