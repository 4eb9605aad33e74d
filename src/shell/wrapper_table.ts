// Programs whose arguments hold another command, and how to find it there.

/** Options are single letters for short ones and whole words for long ones. */
export type WrapperSpec = {
  /** Short options that take a value. */
  readonly valued?: string;
  /** Short options that take none; an unknown one may do either. */
  readonly flags?: string;
  /** Long options that take the next word as their value when written without `=`. */
  readonly long?: readonly string[];
  /** Long options that take none; an unknown one may do either. */
  readonly bare?: readonly string[];
  /** Words between the options and the command. */
  readonly operands?: number;
  /** `NAME=value` words may come before the command. */
  readonly assigns?: true;
  /** Short and long options whose value is a shell text. */
  readonly script?: readonly string[];
  /** The words of the command are joined and given to a shell. */
  readonly joined?: true;
  /** Only after one of these subcommands. */
  readonly subs?: readonly string[];
  /** Only what follows `--` is a command. */
  readonly dashes?: true;
  /** Further words are added to the command when it runs. */
  readonly adds?: true;
  /** An allow rule for the program covers it: what it runs is not hidden behind a harmless name. */
  readonly quiet?: true;
};

const time: WrapperSpec = { valued: "fo", flags: "apqvV", long: ["--format", "--output"] };
const sudo: WrapperSpec = {
  valued: "CDghpRrTtUua",
  flags: "ABbEeHiKklNnPSsVv",
  long: [
    "--user",
    "--group",
    "--host",
    "--prompt",
    "--chdir",
    "--chroot",
    "--role",
    "--type",
    "--close-from",
    "--command-timeout",
    "--other-user",
  ],
  bare: [
    "--preserve-env",
    "--non-interactive",
    "--login",
    "--shell",
    "--background",
    "--set-home",
    "--stdin",
  ],
  assigns: true,
};
const container: WrapperSpec = {
  subs: ["run", "exec"],
  valued: "aceEhlmpuvw",
  flags: "dithqPT",
  long: [
    "--add-host",
    "--annotation",
    "--attach",
    "--cap-add",
    "--cap-drop",
    "--cpus",
    "--cpuset-cpus",
    "--detach-keys",
    "--device",
    "--dns",
    "--entrypoint",
    "--env",
    "--env-file",
    "--expose",
    "--gpus",
    "--group-add",
    "--health-cmd",
    "--hostname",
    "--ip",
    "--ipc",
    "--label",
    "--link",
    "--log-driver",
    "--memory",
    "--mount",
    "--name",
    "--net",
    "--network",
    "--pid",
    "--platform",
    "--publish",
    "--pull",
    "--restart",
    "--runtime",
    "--security-opt",
    "--shm-size",
    "--stop-signal",
    "--tmpfs",
    "--ulimit",
    "--user",
    "--userns",
    "--volume",
    "--volumes-from",
    "--workdir",
  ],
  bare: [
    "--rm",
    "--interactive",
    "--tty",
    "--detach",
    "--init",
    "--privileged",
    "--read-only",
    "--publish-all",
  ],
  operands: 1,
  quiet: true,
};
const runner = (...subs: string[]): WrapperSpec => ({
  subs,
  quiet: true,
  long: ["--with", "--python", "--env-file", "--cwd", "--project"],
});

export const wrappers: Readonly<Record<string, WrapperSpec>> = {
  env: {
    valued: "uCaS",
    flags: "i0v-",
    long: ["--unset", "--chdir", "--argv0"],
    bare: ["--ignore-environment", "--null", "--debug"],
    assigns: true,
    script: ["S", "--split-string"],
  },
  sudo,
  doas: { valued: "aCu", flags: "Lns" },
  pkexec: { long: ["--user"] },
  runuser: {
    valued: "ugGsw",
    flags: "lmpfP",
    long: ["--user", "--group", "--supp-group", "--shell"],
    script: ["c", "--command"],
  },
  nohup: {},
  setsid: { flags: "cfw" },
  timeout: {
    valued: "ks",
    flags: "vpf",
    long: ["--signal", "--kill-after"],
    bare: ["--preserve-status", "--foreground", "--verbose"],
    operands: 1,
  },
  gtimeout: {
    valued: "ks",
    flags: "vpf",
    long: ["--signal", "--kill-after"],
    bare: ["--preserve-status", "--foreground", "--verbose"],
    operands: 1,
  },
  nice: { valued: "n", flags: "0123456789", long: ["--adjustment"] },
  ionice: { valued: "cnpPu", flags: "t", long: ["--class", "--classdata", "--pid", "--pgid", "--uid"] },
  chrt: { valued: "TPDp", flags: "abdforiRmv", operands: 1 },
  taskset: { valued: "p", flags: "ac", operands: 1 },
  stdbuf: { valued: "ioe", long: ["--input", "--output", "--error"] },
  time,
  gtime: time,
  exec: { valued: "a", flags: "cl" },
  builtin: {},
  command: { flags: "p" },
  coproc: {},
  chroot: { long: ["--groups", "--userspec"], operands: 1 },
  unshare: {
    valued: "RwSG",
    flags: "mupUCTfrcinh",
    long: ["--root", "--wd", "--setuid", "--setgid", "--map-user", "--map-group"],
  },
  nsenter: { valued: "tSGrw", flags: "amuinpUCTFZe", long: ["--target", "--setuid", "--setgid"] },
  setarch: { flags: "BFILRSTXZ3v", operands: 1 },
  linux32: {},
  linux64: {},
  choom: { valued: "np" },
  prlimit: { valued: "po", flags: "V" },
  numactl: {
    valued: "NmCpi",
    flags: "la",
    long: ["--cpunodebind", "--membind", "--physcpubind", "--interleave", "--preferred"],
  },
  cpulimit: { valued: "lpec", flags: "zivbm" },
  strace: { valued: "aeEIoOpPsSuUXb", flags: "cCdfFhikqrtTvVwxyYzZ", long: ["--output", "--trace", "--env"] },
  ltrace: { valued: "aAeDFlnopsuwx", flags: "bcCfhiLrStTV" },
  valgrind: {},
  perf: { subs: ["stat", "record"], valued: "eopCcFI", flags: "aBdgrvq" },
  hyperfine: {
    valued: "wmMrpcsPDLuN",
    flags: "iN",
    joined: true,
    script: ["p", "--prepare", "c", "--cleanup", "s", "--setup"],
  },
  watch: { valued: "nq", flags: "bcdegptwx", long: ["--interval", "--equexit"], joined: true },
  gwatch: { valued: "nq", flags: "bcdegptwx", joined: true },
  entr: { flags: "acdnprsxz", adds: true },
  xargs: {
    valued: "aEIdLnPsR",
    bare: ["--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit", "--open-tty"],
    flags: "0rtpxoeil",
    long: [
      "--arg-file",
      "--delimiter",
      "--max-lines",
      "--max-args",
      "--max-procs",
      "--max-chars",
      "--process-slot-var",
    ],
    adds: true,
  },
  gxargs: { valued: "aEIdLnPs", flags: "0rtpxeil", adds: true },
  parallel: {
    valued: "jaINnLSPdCE",
    flags: "0kmquvXt",
    long: [
      "--jobs",
      "--arg-file",
      "--max-args",
      "--colsep",
      "--delay",
      "--joblog",
      "--results",
      "--timeout",
      "--sshlogin",
      "--workdir",
      "--retries",
    ],
    joined: true,
    adds: true,
  },
  flock: {
    valued: "wEc",
    flags: "sxneuFov",
    long: ["--timeout", "--wait", "--conflict-exit-code"],
    operands: 1,
    script: ["c", "--command"],
  },
  script: { valued: "BEIOTm", flags: "aefqDh", script: ["c", "--command"], dashes: true },
  su: { valued: "gGsw", flags: "lmpfP", script: ["c", "--command"], dashes: true },
  ssh: {
    valued: "BbcDEeFIiJLlmOoPpQRSWw",
    flags: "46AaCfGgKkMNnqsTtVvXxYy",
    operands: 1,
    joined: true,
    quiet: true,
  },
  busybox: {},
  toybox: {},
  "xvfb-run": { valued: "efnpsw", flags: "al", long: ["--server-num", "--server-args", "--error-file"] },
  "dbus-run-session": { long: ["--config-file", "--dbus-daemon"] },
  "dbus-launch": {},
  "systemd-run": {
    valued: "puHMCESt",
    flags: "drGPqSt",
    long: [
      "--unit",
      "--property",
      "--slice",
      "--description",
      "--service-type",
      "--uid",
      "--gid",
      "--nice",
      "--working-directory",
      "--setenv",
      "--on-calendar",
    ],
  },
  "systemd-inhibit": { long: ["--what", "--who", "--why", "--mode"] },
  caffeinate: { valued: "tw", flags: "dimsu" },
  unbuffer: { flags: "p" },
  rlwrap: { valued: "abcCDfgHIlmMNOpPqrRsStwzAiW" },
  faketime: { flags: "fmp", operands: 1 },
  torsocks: {},
  torify: {},
  proxychains: { valued: "f", flags: "q" },
  proxychains4: { valued: "f", flags: "q" },
  fakeroot: { valued: "libs", flags: "uh" },
  fakechroot: {},
  proot: { valued: "rbqwkir0S" },
  firejail: {},
  bwrap: { dashes: true },
  catchsegv: {},
  "cross-env": { assigns: true },
  "cross-env-shell": { assigns: true, joined: true },
  dotenv: { valued: "efvpc", dashes: true },
  "aws-vault": { subs: ["exec"], dashes: true },
  op: { subs: ["run"], dashes: true },
  doppler: { subs: ["run"], dashes: true },
  direnv: { subs: ["exec"], operands: 1 },
  mise: { subs: ["exec", "x"], dashes: true },
  asdf: { subs: ["exec"] },
  rbenv: { subs: ["exec"] },
  pyenv: { subs: ["exec"] },
  bundle: runner("exec"),
  poetry: runner("run"),
  pipenv: runner("run"),
  uv: runner("run"),
  hatch: runner("run"),
  rye: runner("run"),
  pdm: runner("run"),
  npx: { valued: "pc", flags: "yq", long: ["--package", "--call"], script: ["c", "--call"], quiet: true },
  pnpx: { quiet: true },
  bunx: { quiet: true },
  uvx: { long: ["--from", "--with", "--python"], quiet: true },
  npm: {
    subs: ["exec", "x"],
    valued: "pc",
    long: ["--package", "--call"],
    script: ["c", "--call"],
    quiet: true,
  },
  pnpm: runner("exec", "dlx"),
  yarn: runner("exec", "dlx"),
  bun: runner("x"),
  docker: container,
  podman: container,
  nerdctl: container,
  kubectl: { subs: ["exec", "run", "debug"], dashes: true, quiet: true },
};

/** Builtins that change what later commands do, or run what is not seen. */
export const changers: ReadonlySet<string> = new Set(
  ("source . export declare typeset readonly local unset set shopt enable hash trap alias unalias eval let bind complete compgen ulimit " +
    "read mapfile readarray getopts").split(" "),
);

/** Builtins that take names of variables, in which a subscript is computed and may run commands. */
export const namers: ReadonlySet<string> = new Set(
  "test [ printf read unset let declare typeset local export readonly wait mapfile readarray getopts".split(
    " ",
  ),
);

export const shells: ReadonlySet<string> = new Set(
  "sh bash dash zsh ksh mksh lksh ash yash rbash rksh pdksh posh fish csh tcsh busybox-sh".split(" "),
);
