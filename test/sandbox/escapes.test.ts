// Ways out that need somebody outside, or a program of their own: memory, queues and sockets that boxes and the machine could
// share, files by other ways than their paths, and the doors to the kernel that few programs use.
import { afterEach, beforeEach, describe, test } from "bun:test";
import { assertEquals } from "@std/assert";
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { BoxPlan } from "../../src/core/box_plan.ts";
import { protectedPaths } from "../../src/sandbox/protected_paths.ts";
import { run } from "../../src/sandbox/subprocess.ts";
import {
  asPython,
  type Attempt,
  inBox,
  python,
  type Stage,
  stage,
  systemCall,
  wallsOf,
  ways,
} from "./stage.ts";

/** Somebody outside who shares what can be shared: sockets by path, System V memory and queues, a POSIX queue. */
const host = `
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
held = []
def listening(kind, name):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(name)
    if kind != socket.SOCK_DGRAM: s.listen()
    held.append(s)
listening(socket.SOCK_DGRAM, sys.argv[1] + '/datagrams')
listening(socket.SOCK_STREAM, sys.argv[2] + '/live.sock')
os.chdir(sys.argv[2])
listening(socket.SOCK_STREAM, 'src/relative.sock')
listening(socket.SOCK_DGRAM, 'src/datagrams.sock')
listening(socket.SOCK_DGRAM, '\\0' + sys.argv[3])
key = int(sys.argv[4])
memory = libc.shmget(key, 4096, 0o1600)
ctypes.memmove(ctypes.c_void_p(libc.shmat(memory, None, 0)), b'canary-memory', 13)
queue = libc.msgget(key, 0o1600)
libc.msgsnd(queue, b'\\1\\0\\0\\0\\0\\0\\0\\0canary-queue', 12, 0)
posix = libc.mq_open(('/writ-%d' % key).encode(), 0o102, 0o600, None)
libc.mq_send(posix, b'canary-posix', 12, 0)
print('ready', flush=True)
sys.stdin.read()
libc.shmctl(memory, 0, None)
libc.msgctl(queue, 0, None)
libc.mq_unlink(('/writ-%d' % key).encode())
`;

const libc = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n";
const pair = "import socket\na, b = socket.socketpair(1, TYPE)\n";

const shared: readonly Attempt[] = [
  ...["2", "3"].flatMap((type): readonly Attempt[] => [
    [
      `a datagram from a pair of sockets of type ${type}`,
      asPython(`${pair}a.sendto(b'x', 'OUTSIDE/datagrams')\nprint('ESCAPED')`.replace("TYPE", type)),
    ],
    [
      `a pair of sockets of type ${type} that is connected anew`,
      asPython(`${pair}a.connect('OUTSIDE/datagrams')\nprint('ESCAPED')`.replace("TYPE", type)),
    ],
    [
      `a datagram from a pair of type ${type} to a name without a path`,
      asPython(`${pair}a.sendto(b'x', '\\0ABSTRACT')\nprint('ESCAPED')`.replace("TYPE", type)),
    ],
    [
      `a datagram from a pair of type ${type} into the workspace`,
      asPython(`${pair}a.sendto(b'x', 'src/datagrams.sock')\nprint('ESCAPED')`.replace("TYPE", type)),
    ],
  ]),
  [
    "a socket of the host in the workspace",
    asPython("import socket\nsocket.socket(1).connect('live.sock')\nprint('ESCAPED')"),
  ],
  [
    "one that was bound by a relative path",
    asPython("import socket\nsocket.socket(1).connect('src/relative.sock')\nprint('ESCAPED')"),
  ],
  [
    "one of them by a second name",
    "ln live.sock src/other; mv src/relative.sock src/moved\n" +
    asPython(
      "import socket\nfor n in ('src/other', 'src/moved'):\n  try:\n    socket.socket(1).connect(n)\n    print('ESCAPED')\n  except OSError: pass",
    ),
  ],
  [
    "memory of System V",
    asPython(
      `${libc}libc.shmat.restype = ctypes.c_void_p\nat = libc.shmat(libc.shmget(KEY, 4096, 0), None, 0)\nprint(ctypes.string_at(at, 13) if at not in (None, 2**64 - 1) else 'none')`,
    ),
  ],
  [
    "a queue of System V",
    asPython(
      `${libc}text = ctypes.create_string_buffer(64)\nlibc.msgrcv(libc.msgget(KEY, 0), text, 32, 0, 0o4000)\nprint(text.raw)`,
    ),
  ],
  [
    "a queue of POSIX",
    asPython(
      `${libc}text = ctypes.create_string_buffer(8192)\nq = libc.mq_open(b'/writ-KEY', 0o4000, 0, None)\nlibc.mq_receive(q, text, 8192, None)\nprint(text.raw[:16])`,
    ),
  ],
];

const files: readonly Attempt[] = [
  ["a pair of another family", asPython("import socket\nsocket.socketpair(30, 1)\nprint('ESCAPED')")],
  [
    "a file that Writ has open",
    asPython(
      "import os\nfor fd in os.listdir('/proc/self/fd'):\n  if int(fd) < 3: continue\n  try: print('ESCAPED', os.readlink('/proc/self/fd/' + fd))\n  except OSError: pass",
    ),
  ],
  [
    "a folder outside, opened as a mere path",
    asPython(
      "import os\nfd = os.open('OUTSIDE', os.O_PATH)\nfor way in ('/proc/self/fd/%d/secret' % fd, '/proc/self/fd/%d/../outside/secret' % fd):\n  try: print(open(way).read())\n  except OSError: pass\nprint(open(os.open('secret', os.O_RDONLY, dir_fd=fd)).read())",
    ),
  ],
  [
    "a file outside, opened as a mere path and linked in",
    asPython(
      `${libc}fd = os.open('OUTSIDE/secret', os.O_PATH)\nlibc.linkat(fd, b'', -100, b'src/in', 0x1000)\nlibc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, b'src/in', 0x400)\nprint(open('src/in').read())`,
    ),
  ],
  [
    "a program outside, started by its open path",
    asPython(
      `${libc}fd = os.open('OUTSIDE/tool', os.O_PATH)\nif os.fork() == 0:\n  empty = (ctypes.c_char_p * 2)(b'tool', None)\n  libc.syscall(322 if os.uname().machine == 'x86_64' else 281, fd, b'', empty, empty, 0x1000)\n  os._exit(0)\nos.wait()`,
    ),
  ],
  [
    "a program outside",
    "OUTSIDE/tool; sh OUTSIDE/tool; /lib64/ld-linux-x86-64.so.2 OUTSIDE/tool; . OUTSIDE/tool",
  ],
  [
    "a file outside by its handle",
    asPython(
      `${libc}handle = ctypes.create_string_buffer(136)\nctypes.memmove(handle, b'\\x80\\0\\0\\0', 4)\nmount = ctypes.c_int()\nlibc.name_to_handle_at(-100, b'OUTSIDE/secret', handle, ctypes.byref(mount), 0)\nfd = libc.open_by_handle_at(os.open('.', 0), handle, 0)\nif fd >= 0: print('ESCAPED')`,
    ),
  ],
  [
    "two folders exchanged",
    asPython(
      `${libc}number = 316 if os.uname().machine == 'x86_64' else 276\nos.makedirs('src/skills/a'); os.makedirs('src/git/hooks')\nfor a, b in ((b'src/skills', b'skills'), (b'src/skills/a', b'skills/a'), (b'src/git', b'.git'), (b'src/git/hooks', b'.git/hooks'), (b'src', b'private')):\n  if libc.syscall(number, -100, a, -100, b, 2) == 0: print('ESCAPED', a)`,
    ),
  ],
  [
    "a protected file emptied by opening it",
    asPython("import os\nos.open('skills/a/SKILL.md', os.O_RDONLY | os.O_TRUNC)\nprint('ESCAPED')"),
  ],
  [
    "other things than files among the hooks",
    "mkfifo .git/hooks/pre-push && echo ESCAPED; ln -s /bin/true .git/hooks/pre-commit && echo ESCAPED; mkdir .git/hooks/x && echo ESCAPED\n" +
    asPython("import socket\nsocket.socket(1).bind('.git/hooks/post-merge')\nprint('ESCAPED')"),
  ],
  [
    "what the process above has",
    "for p in 1 $PPID PARENT; do cat /proc/$p/root/OUTSIDE/secret /proc/$p/cwd/../outside/secret; head -c 4 /proc/$p/exe > /dev/null && [ $p = PARENT ] && echo ESCAPED; done; " +
    "for f in auxv maps syscall stack io task/PARENT/environ; do head -c 1 /proc/PARENT/$f | grep -q . && echo ESCAPED $f; done; true",
  ],
  [
    "where the kernel puts what is left of a process",
    'for f in core_pattern modprobe hotplug poweroff_cmd; do v=$(cat /proc/sys/kernel/$f) && echo "$v" > /proc/sys/kernel/$f && echo ESCAPED $f; done; true',
  ],
  [
    "a device",
    "for d in fuse kvm net/tun loop-control mapper/control userfaultfd vhost-vsock vhost-net kmsg mem port uinput ptmx; do (: < /dev/$d) && [ $d != ptmx ] && echo ESCAPED $d; done; true",
  ],
  [
    "who does things later or elsewhere",
    "echo 'touch OUTSIDE/made' | at now; (echo '* * * * * touch OUTSIDE/made' | crontab -) && crontab -l | grep made && echo ESCAPED; systemd-run true && echo ESCAPED; systemctl status && echo ESCAPED; true",
  ],
];

const calls: readonly (readonly [name: string, numbers: readonly [number, number], args: string])[] = [
  ["a copy of a mount with other properties", [467, 467], "-100, b'/', 1, b'\\0' * 32, 32"],
  ["a child by clone3 in a namespace of its own", [435, 435], "b'\\0\\0\\0\\x10' + b'\\0' * 84, 88"],
  ["io_uring that somebody else has made", [426, 426], "1, 1, 0, 0, 0, 0"],
  ["io_uring with more", [427, 427], "1, 0, 0, 0"],
  ["memory of others by advice", [440, 440], "0, 0, 0, 0, 0"],
  ["swap", [167, 224], "b'src', 0"],
  ["accounts of processes", [163, 89], "b'src/a'"],
  ["quotas", [179, 60], "0x800002, b'/dev/sda', 0, 0"],
  ["taking a mount away", [166, 39], "b'/', 2"],
  ["another kernel", [246, 104], "0, 0, 0, 0"],
  ["a restart", [169, 142], "0, 0, 0, 0"],
  ["what is typed next", [16, 29], "0, 0x541c, b'\\2'"],
  ["what is typed, with high bits", [16, 29], "0, 0x100005412, b'x'"],
  ["a pair of sockets of another family, with high bits", [53, 199], "0x10000001e, 1, 0, b'\\0' * 8"],
];
const namespaces = [
  ["mounts", 0x20000],
  ["control groups", 0x2000000],
  ["names", 0x4000000],
  ["shared memory", 0x8000000],
  ["users", 0x10000000],
  ["processes", 0x20000000],
  ["networks", 0x40000000],
  ["time", 0x80],
] as const;

const onX64: readonly Attempt[] = [
  [
    "a call as 32-bit programs make it",
    asPython(
      "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes.fromhex('b814000000cd80c3'))\nf = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nif f() > 0: print('ESCAPED')",
    ),
  ],
  ["a call by the other convention of x64", systemCall([0x40000000 + 39, 0], "")],
];

/** Who has processes of its own can only mean those: what others share with it is not to be met. */
const outwards: readonly Attempt[] = [
  [
    "limits of Writ",
    asPython("import resource\nresource.prlimit(PARENT, resource.RLIMIT_CORE)\nprint('ESCAPED')"),
  ],
  ["the turn of Writ", asPython("import os\nos.setpriority(os.PRIO_PROCESS, PARENT, 19)\nprint('ESCAPED')")],
  [
    "the processors of Writ",
    asPython("import os\nos.sched_setaffinity(PARENT, os.sched_getaffinity(0))\nprint('ESCAPED')"),
  ],
  [
    "the class of Writ",
    asPython("import os\nos.sched_setscheduler(PARENT, os.SCHED_IDLE, os.sched_param(0))\nprint('ESCAPED')"),
  ],
];
const outwardsOfAll: readonly Attempt[] = [
  ["the turn of all of the user's", systemCall([141, 140], "2, 0, 0")],
  ["the disk's turn of all of the user's", systemCall([251, 30], "3, 0, 0x4000")],
];

const all: readonly Attempt[] = [
  ...shared,
  ...files,
  ...calls.map(([name, numbers, args]): Attempt => [name, systemCall(numbers, args)]),
  ...namespaces.map((
    [name, flag],
  ): Attempt => [`a new namespace of ${name}`, systemCall([272, 97], `${flag}`)]),
  ...(process.arch === "x64" ? onX64 : []),
  ...outwards,
  [
    "a wider box within this one",
    asPython(`${libc}fd = libc.syscall(444, (ctypes.c_uint64 * 1)(4), 8, 0)
rule = ctypes.create_string_buffer(12)
ctypes.memmove(rule, (4).to_bytes(8, 'little') + os.open('/', os.O_PATH).to_bytes(4, 'little'), 12)
libc.syscall(445, fd, 1, rule, 0)
libc.syscall(446, fd, 0)
print(open('OUTSIDE/secret').read())`),
  ],
];

for (const backend of ["bwrap", "landlock"] as const) {
  const walls = python === undefined ? undefined : await wallsOf(backend);
  if (walls === undefined) {
    test.skip(`further ways out of a box by ${backend}, which this machine does not offer`, () => {});
    continue;
  }
  describe(`a box by ${backend}`, () => {
    let at: Stage;
    let outside: ChildProcess;
    const key = 0x57000000 + process.pid;
    const abstract = `writ-escapes-${process.pid}`;
    beforeEach(async () => {
      at = stage();
      writeFileSync(join(at.outside, "tool"), "#!/bin/sh\necho canary-program\n");
      chmodSync(join(at.outside, "tool"), 0o755);
      writeFileSync(join(at.ws, "AGENTS.md"), "kept\n");
      outside = spawn(python ?? "", ["-c", host, at.outside, at.ws, abstract, String(key)], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      await new Promise((done) => outside.stdout?.once("data", done));
    });
    afterEach(async () => {
      const gone = new Promise((done) => outside.once("exit", done));
      outside.stdin?.end();
      await gone;
      rmSync(at.top, { recursive: true, force: true });
    });

    const words = () => ({
      PARENT: String(process.pid),
      OUTSIDE: at.outside,
      ABSTRACT: abstract,
      KEY: String(key),
    });

    test("no further way out", async () => {
      const inside = (script: string) => inBox(walls, at.plan, at.ws, script);
      const tried = [...all, ...(backend === "landlock" ? outwardsOfAll : [])];
      const found = await ways(inside, tried, words());
      assertEquals(found, []);
      assertEquals(existsSync(join(at.outside, "made")), false);
      const kept = ["skills/a/SKILL.md", "AGENTS.md"].map((name) => readFileSync(join(at.ws, name), "utf8"));
      assertEquals(kept, ["kept\n", "kept\n"]);
    });

    test("no further way out where there is a network", async () => {
      const plan: BoxPlan = { ...at.plan, network: "all" };
      assertEquals(await ways((script) => inBox(walls, plan, at.ws, script), shared, words()), []);
    });

    test("what is shared and not held would be met", async () => {
      const bare = (script: string) =>
        run(["bash", "-c", script], {
          cwd: at.ws,
          env: { PATH: "/usr/bin:/bin" },
          timeoutMs: 20_000,
          maxOutput: 10_000,
        });
      const tried = [...shared, ...outwards];
      // Set for somebody who does not mind.
      const met = await ways(bare, tried, { ...words(), PARENT: String(outside.pid) });
      assertEquals(met.map((text) => text.slice(0, text.indexOf(":"))), tried.map(([name]) => name));
    });

    test("a protected file by a second name that it had before", async () => {
      linkSync(join(at.ws, "AGENTS.md"), join(at.ws, "deep/twin"));
      linkSync(join(at.ws, "skills/a/SKILL.md"), join(at.ws, "src/twin"));
      const named = at.plan.protect.filter(({ path }) => existsSync(path));
      const protect = protectedPaths({ root: at.ws, gitFolders: [], named, isProtected: () => false });
      const plan = { ...at.plan, protect };
      await inBox(
        walls,
        plan,
        at.ws,
        "echo x > src/twin; echo x > deep/twin; rm deep/twin; mv src/twin src/y",
      );
      const kept = ["skills/a/SKILL.md", "AGENTS.md", "src/twin", "deep/twin"];
      assertEquals(kept.map((name) => readFileSync(join(at.ws, name), "utf8")), kept.map(() => "kept\n"));
    });
  });
}
