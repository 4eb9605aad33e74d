// The machine and the person that a session works for, handed in as a value: nothing in this layer looks for them itself.

export type Host = {
  readonly env: { readonly [name: string]: string | undefined };
  /** Where relative paths of options start. */
  readonly cwd: string;
  readonly home: string;
  readonly user: string;
  /** `linux-x64` and the like. */
  readonly platform: string;
  /** Where the machine layer lies, in place of the system's folder; set only by scenarios. */
  readonly machineFolder?: string;
};
