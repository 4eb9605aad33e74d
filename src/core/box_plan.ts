// What a boxed process may see and do, all paths resolved, and what builds the box: what the backends are made from.

/** Absolute real paths throughout; a path may be a file or a folder. Of two that lie in each other the deeper one counts. */
export type BoxPlan = {
  /** The policy's name of it; `default` unless a call or a rule names another. */
  readonly name: string;
  /** `none`: a network of its own in which there is only itself, or none at all. */
  readonly network: "none" | "all";
  /** Readable, with all that is below. */
  readonly read: readonly string[];
  /** Readable and writable, with all that is below, `protect` apart. */
  readonly write: readonly string[];
  /** Seen by nobody, also below what is readable; what is named in `read` or `write` below it is seen all the same. */
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

/** What builds boxes. `folder` is private to the user; `self` starts Writ itself: program and first arguments. */
export type Walls =
  | {
    readonly backend: "bwrap";
    readonly machine: "x64" | "arm64";
    readonly bwrap: string;
    readonly folder: string;
  }
  | { readonly backend: "landlock"; readonly abi: number; readonly self: readonly [string, ...string[]] };

/** Where a program runs, and what builds that place. */
export type Box = { readonly plan: BoxPlan; readonly walls: Walls };
