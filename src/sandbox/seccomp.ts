// The system calls that a boxed process may not make, as a filter program for the kernel (classic BPF, seccomp(2)).

export type Machine = "x64" | "arm64";

/** Of the machine that Node's `process.arch` names; undefined: its numbers are not known here. */
export function machineOf(arch: string): Machine | undefined {
  return arch === "x64" || arch === "arm64" ? arch : undefined;
}

/** What is let through beside what every box may do. */
export type FilterKind = {
  /** Sockets by a path, those of the box itself or that it names. */
  readonly unix: boolean;
  /** TCP and UDP. */
  readonly inet: boolean;
  /** Processes and shared memory are the box's own: what meets others there meets none of the host. */
  readonly apart: boolean;
};

// Numbers of the kernel's own tables (asm/unistd_64.h, asm-generic/unistd.h); from 424 on they are the same everywhere.
const refused: Readonly<Record<string, Readonly<Record<Machine, number>>>> = {
  ptrace: { x64: 101, arm64: 117 },
  process_vm_readv: { x64: 310, arm64: 270 },
  process_vm_writev: { x64: 311, arm64: 271 },
  kcmp: { x64: 312, arm64: 272 },
  pidfd_getfd: { x64: 438, arm64: 438 },
  process_madvise: { x64: 440, arm64: 440 },
  add_key: { x64: 248, arm64: 217 },
  request_key: { x64: 249, arm64: 218 },
  keyctl: { x64: 250, arm64: 219 },
  bpf: { x64: 321, arm64: 280 },
  perf_event_open: { x64: 298, arm64: 241 },
  userfaultfd: { x64: 323, arm64: 282 },
  io_uring_setup: { x64: 425, arm64: 425 },
  io_uring_enter: { x64: 426, arm64: 426 },
  io_uring_register: { x64: 427, arm64: 427 },
  mount: { x64: 165, arm64: 40 },
  umount2: { x64: 166, arm64: 39 },
  pivot_root: { x64: 155, arm64: 41 },
  chroot: { x64: 161, arm64: 51 },
  open_tree: { x64: 428, arm64: 428 },
  open_tree_attr: { x64: 467, arm64: 467 },
  move_mount: { x64: 429, arm64: 429 },
  fsopen: { x64: 430, arm64: 430 },
  fsconfig: { x64: 431, arm64: 431 },
  fsmount: { x64: 432, arm64: 432 },
  fspick: { x64: 433, arm64: 433 },
  mount_setattr: { x64: 442, arm64: 442 },
  setns: { x64: 308, arm64: 268 },
  open_by_handle_at: { x64: 304, arm64: 265 },
  fanotify_init: { x64: 300, arm64: 262 },
  kexec_load: { x64: 246, arm64: 104 },
  kexec_file_load: { x64: 320, arm64: 294 },
  init_module: { x64: 175, arm64: 105 },
  finit_module: { x64: 313, arm64: 273 },
  delete_module: { x64: 176, arm64: 106 },
  reboot: { x64: 169, arm64: 142 },
  swapon: { x64: 167, arm64: 224 },
  swapoff: { x64: 168, arm64: 225 },
  acct: { x64: 163, arm64: 89 },
  quotactl: { x64: 179, arm64: 60 },
  quotactl_fd: { x64: 443, arm64: 443 },
  settimeofday: { x64: 164, arm64: 170 },
  clock_settime: { x64: 227, arm64: 112 },
  adjtimex: { x64: 159, arm64: 171 },
  clock_adjtime: { x64: 305, arm64: 266 },
  sethostname: { x64: 170, arm64: 161 },
  setdomainname: { x64: 171, arm64: 162 },
  vhangup: { x64: 153, arm64: 58 },
  syslog: { x64: 103, arm64: 116 },
  nfsservctl: { x64: 180, arm64: 42 },
  lookup_dcookie: { x64: 212, arm64: 18 },
};
/** Memory, queues and semaphores that all processes of a user share. */
const shared: Readonly<Record<string, Readonly<Record<Machine, number>>>> = {
  shmget: { x64: 29, arm64: 194 },
  shmat: { x64: 30, arm64: 196 },
  shmctl: { x64: 31, arm64: 195 },
  semget: { x64: 64, arm64: 190 },
  semop: { x64: 65, arm64: 193 },
  semctl: { x64: 66, arm64: 191 },
  semtimedop: { x64: 220, arm64: 192 },
  msgget: { x64: 68, arm64: 186 },
  msgsnd: { x64: 69, arm64: 189 },
  msgrcv: { x64: 70, arm64: 188 },
  msgctl: { x64: 71, arm64: 187 },
  mq_open: { x64: 240, arm64: 180 },
  mq_unlink: { x64: 241, arm64: 181 },
};
/** Limits and turns of the processor that a process may set for another one: who that is stands in the arguments. */
const steering = [
  { x64: 302, arm64: 261, self: [0] }, // prlimit64
  { x64: 203, arm64: 122, self: [0] }, // sched_setaffinity
  { x64: 142, arm64: 118, self: [0] }, // sched_setparam
  { x64: 144, arm64: 119, self: [0] }, // sched_setscheduler
  { x64: 314, arm64: 274, self: [0] }, // sched_setattr
  { x64: 141, arm64: 140, self: [0, 0] }, // setpriority
  { x64: 251, arm64: 30, self: [1, 0] }, // ioprio_set
] as const;
const legacy: readonly number[] = [172, 173, 139]; // iopl, ioperm, sysfs: x64 alone has them

const numbers = {
  clone: { x64: 56, arm64: 220 },
  clone3: { x64: 435, arm64: 435 },
  unshare: { x64: 272, arm64: 97 },
  ioctl: { x64: 16, arm64: 29 },
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
} as const;

const auditArch: Readonly<Record<Machine, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** Calls of the other x64 calling convention carry this bit: a second door to every number. */
const x32Bit = 0x40000000;
/** CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET}, CLONE_NEWNS and CLONE_NEWTIME. */
const newNamespaces = 0x7e020080;
/** Of clone(2) the low byte is the signal at its end: CLONE_NEWTIME is for unshare alone. */
const cloneNamespaces = 0x7e020000;
const terminalInput = [0x5412, 0x541c]; // TIOCSTI, TIOCLINUX
/** SOCK_STREAM and SOCK_SEQPACKET: an end of such a pair speaks to the other end alone. */
const pairOnly = [1, 5];
const socketType = 0xf;
const family = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;

const eperm = 1;
const enosys = 38;
const allow = 0x7fff0000;
const errno = (code: number) => 0x00050000 + code;

const load = 0x20;
const ifEqual = 0x15;
const ifAtLeast = 0x35;
const ifAnyBit = 0x45;
const and = 0x54;
const finish = 0x06;
const at = { number: 0, arch: 4, arg0: 16, arg1: 24, arg2: 32 } as const;

type Step = { readonly code: number; readonly jt?: number; readonly jf?: number; readonly k: number };

/** The filter as the kernel takes it: eight bytes a step, little-endian. */
export function seccompProgram(machine: Machine, kind: FilterKind): Uint8Array {
  const steps: Step[] = [
    { code: load, k: at.arch },
    { code: ifEqual, jt: 1, k: auditArch[machine] },
    { code: finish, k: errno(enosys) },
    { code: load, k: at.number },
  ];
  if (machine === "x64") steps.push(...onNumber(ifAtLeast, x32Bit, [{ code: finish, k: errno(enosys) }]));
  const denied = [...Object.values(refused), ...(kind.apart ? [] : Object.values(shared))].map((n) =>
    n[machine]
  );
  for (const number of machine === "x64" ? [...denied, ...legacy] : denied) {
    steps.push(...onNumber(ifEqual, number, [{ code: finish, k: errno(eperm) }]));
  }
  const on = (name: keyof typeof numbers, body: readonly Step[]) =>
    steps.push(...onNumber(ifEqual, numbers[name][machine], body));
  // Its arguments lie in memory, where a filter cannot look; libraries fall back to clone.
  on("clone3", [{ code: finish, k: errno(enosys) }]);
  on("clone", withoutBits(at.arg0, cloneNamespaces));
  on("unshare", withoutBits(at.arg0, newNamespaces));
  on("ioctl", [
    { code: load, k: at.arg1 },
    ...terminalInput.flatMap((k): Step[] => onNumber(ifEqual, k, [{ code: finish, k: errno(eperm) }])),
    { code: finish, k: allow },
  ]);
  on("socket", socketSteps(kind));
  on("socketpair", pairSteps(kind));
  if (!kind.apart) {
    for (const call of steering) steps.push(...onNumber(ifEqual, call[machine], onlySelf(call.self)));
  }
  steps.push({ code: finish, k: allow });
  return encode(steps);
}

function onNumber(test: number, k: number, body: readonly Step[]): Step[] {
  return [{ code: test, jf: body.length, k }, ...body];
}

function withoutBits(argument: number, bits: number): readonly Step[] {
  return [
    { code: load, k: argument },
    { code: ifAnyBit, jf: 1, k: bits },
    { code: finish, k: errno(eperm) },
    { code: finish, k: allow },
  ];
}

// Netlink only to ask about network interfaces (protocol 0), as ordinary programs do.
function socketSteps({ unix, inet }: FilterKind): readonly Step[] {
  const families = [...(unix ? [family.unix] : []), ...(inet ? [family.inet, family.inet6] : [])];
  return [
    { code: load, k: at.arg0 },
    ...families.flatMap((k) => onNumber(ifEqual, k, [{ code: finish, k: allow }])),
    ...(inet
      ? onNumber(ifEqual, family.netlink, [
        { code: load, k: at.arg2 },
        { code: ifEqual, jf: 1, k: 0 },
        { code: finish, k: allow },
        { code: finish, k: errno(eperm) },
      ])
      : []),
    { code: finish, k: errno(eperm) },
  ];
}

// An end of a pair of datagram sockets can still send to any name.
function pairSteps({ unix }: FilterKind): readonly Step[] {
  const types = pairOnly.flatMap((k) => onNumber(ifEqual, k, [{ code: finish, k: allow }]));
  return [
    { code: load, k: at.arg0 },
    ...onNumber(
      ifEqual,
      family.unix,
      unix
        ? [{ code: finish, k: allow }]
        : [{ code: load, k: at.arg1 }, { code: and, k: socketType }, ...types],
    ),
    { code: finish, k: errno(eperm) },
  ];
}

// The caller itself is meant by fixed values of the first arguments.
function onlySelf(values: readonly number[]): readonly Step[] {
  const places = [at.arg0, at.arg1];
  return [
    ...values.flatMap((k, index): Step[] => [
      { code: load, k: places[index] ?? at.arg0 },
      { code: ifEqual, jt: 1, k },
      { code: finish, k: errno(eperm) },
    ]),
    { code: finish, k: allow },
  ];
}

function encode(steps: readonly Step[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(steps.length * 8));
  for (const [index, { code, jt = 0, jf = 0, k }] of steps.entries()) {
    view.setUint16(index * 8, code, true);
    view.setUint8(index * 8 + 2, jt);
    view.setUint8(index * 8 + 3, jf);
    view.setUint32(index * 8 + 4, k >>> 0, true);
  }
  return new Uint8Array(view.buffer);
}
