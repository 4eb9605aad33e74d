// What a boxed process may see and do, all paths resolved, and the way into a box, whatever builds it.

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

/** How a program is started: its absolute path, its words with the name by which it is called first, and the folder. */
export type ProgramCall = {
  readonly program: string;
  readonly argv: readonly string[];
  readonly cwd: string;
};

/** The call as it is to be made so that the program is in the box. */
export type EnclosedCall = ProgramCall & {
  /** To be opened for reading and handed down as file 3 and following. */
  readonly files: readonly string[];
  /**
   * To be called when everything that ran is gone. Protected files that came to exist are removed, since what does not exist
   * cannot be held against being made, and protected links that were changed are set right; answers their paths. `keep`:
   * nothing of that is done.
   */
  leave(files: "remove" | "keep"): readonly string[];
};

/** Where a program runs, and the way into it; to be asked for each call anew. */
export type Box = { readonly plan: BoxPlan; enclose(call: ProgramCall): EnclosedCall };
