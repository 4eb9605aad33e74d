import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { findWalls } from "../../src/sandbox/backend.ts";
import { run } from "../../src/sandbox/subprocess.ts";
import { boxWith } from "../../src/sandbox/walls.ts";
import {
  asPython,
  type Attempt,
  inBox,
  python,
  scratch,
  source,
  type Stage,
  stage,
  systemCall,
  wallsOf,
  ways,
} from "./stage.ts";

/** Modes, times and owners are not Landlock's business: what is owned by the user can be changed in these. */
const notByLandlock = ["a skill's mode"];

const escapes: readonly Attempt[] = [
  ["writing beside the workspace", "echo x > ../outside/made && echo ESCAPED"],
  ["reading beside the workspace", "cat ../outside/secret"],
  ["reading through a link", "cat link"],
  ["a link of its own", "ln -s ../outside/secret mine; cat mine"],
  ["a hard link to what is outside", "ln ../outside/secret hard && cat hard"],
  ["a hidden folder in the workspace", "cat private/key"],
  ["a hidden folder by another way", "cat /proc/self/root$PWD/private/key; cat /proc/self/cwd/private/key"],
  ["the shadow file", "cat /etc/shadow && echo ESCAPED"],
  ["the home of the user", `ls ${process.env["HOME"] ?? "/root"} && echo ESCAPED`],
  ["a hook", "echo x > .git/hooks/pre-commit && echo ESCAPED"],
  ["a hook by a link", "ln -s $PWD/.git/hooks h; echo x > h/pre-commit && echo ESCAPED"],
  ["git's own settings", "echo '[core]' >> .git/config && echo ESCAPED"],
  ["git's settings replaced", "echo x > c; mv c .git/config && echo ESCAPED"],
  ["git's settings removed", "rm -f .git/config && echo ESCAPED"],
  ["git's folder renamed away", "mv .git .old && echo ESCAPED"],
  ["the hooks renamed away", "mv .git/hooks .git/old && echo ESCAPED"],
  ["a skill", "echo x >> skills/a/SKILL.md && echo ESCAPED"],
  ["a skill renamed away", "mv skills other && echo ESCAPED"],
  ["a skill's mode", "chmod 777 skills/a/SKILL.md && echo ESCAPED"],
  ["a skill emptied", "truncate -s 0 skills/a/SKILL.md && echo ESCAPED"],
  ["another namespace", "unshare -r true && echo ESCAPED"],
  ["another namespace of mounts", "unshare -rm true && echo ESCAPED"],
  ["a mount", "mount -t tmpfs none src && echo ESCAPED"],
  ["taking a mount away", "umount private && echo ESCAPED; umount .git/hooks && echo ESCAPED"],
  ["a new root", "chroot / true && echo ESCAPED"],
  ["a device", "mknod disk b 8 0 && echo ESCAPED"],
  [
    "the kernel's settings",
    "cat /proc/sys/kernel/domainname > v; cat v > /proc/sys/kernel/domainname && echo ESCAPED",
  ],
  ["the kernel's hot key", "echo h > /proc/sysrq-trigger && echo ESCAPED"],
  ["a signal outwards", "kill -0 PARENT && echo ESCAPED"],
  ["the environment of Writ", "tr '\\0' '\\n' < /proc/PARENT/environ | grep CANARY"],
  ["the files of Writ", "readlink /proc/PARENT/fd/1 && echo ESCAPED; cat /proc/PARENT/root/OUTSIDE/secret"],
  ["the memory of Writ", "head -c 1 /proc/PARENT/mem && echo ESCAPED"],
  ["TCP to this machine", "exec 3<>/dev/tcp/127.0.0.1/PORT && echo ESCAPED"],
  ["UDP", "echo x > /dev/udp/127.0.0.1/PORT && cat < /dev/tcp/127.0.0.1/PORT && echo ESCAPED"],
  ["a socket of the host", "SOCKET"],
  ["the container engine", "ls -l /run/docker.sock /var/run/docker.sock && echo ESCAPED"],
  [
    "the agent of ssh, and the session bus",
    "ls ${SSH_AUTH_SOCK:-/run/user/0/none} /run/user/*/bus && echo ESCAPED",
  ],
  [
    "the canary in its own environment",
    "env | grep CANARY; cat /proc/self/environ | tr '\\0' '\\n' | grep CANARY",
  ],
  ["the environment of all others", "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep CANARY"],
  [
    "the folders of all others",
    "for p in /proc/[0-9]*; do cat $p/root/OUTSIDE/secret $p/cwd/../outside/secret; done",
  ],
  [
    "the open files of Writ",
    "timeout 0.5 cat /proc/PARENT/fd/* < /dev/null | grep -a canary",
  ],
  ["the map of files of Writ", "ls /proc/PARENT/map_files && echo ESCAPED"],
  ["how soon Writ is ended when memory is short", "echo 1000 > /proc/PARENT/oom_score_adj && echo ESCAPED"],
  [
    "a programme of the owner",
    "cp /bin/sh src/s; chmod u+s src/s; src/s -p -c 'cat /etc/shadow' && echo ESCAPED",
  ],
  ["becoming somebody else", "sudo -n true && echo ESCAPED; su -c true nobody </dev/null && echo ESCAPED"],
  ["a capability", "grep -E '^Cap(Prm|Eff|Inh|Amb):.*[1-9a-f]' /proc/self/status && echo ESCAPED"],
  ["privileges by exec", "grep -q '^NoNewPrivs:.1' /proc/self/status || echo ESCAPED"],
  ["the disk", "ls /dev/sd* /dev/vd* /dev/nvme* && echo ESCAPED; head -c 1 /dev/mem && echo ESCAPED"],
  ["the terminal", "echo x > /dev/tty && echo ESCAPED"],
  [
    "a file in the system",
    "echo x > /etc/writ-made && echo ESCAPED; echo x > /usr/bin/writ-made && echo ESCAPED",
  ],
  ["a program of the system", "cp /bin/true /usr/bin/env && echo ESCAPED; rm -f /bin/sh && echo ESCAPED"],
  ["the top folder", "mkdir /made && echo ESCAPED; touch /made && echo ESCAPED"],
  ["the folder above", "mv ../ws ../moved && echo ESCAPED; rmdir .. && echo ESCAPED"],
  ["the workspace renamed away", "cd ..; mv ws other && echo ESCAPED"],
  [
    "a mount on its own folder",
    "mount --bind ../outside src && cat src/secret; mount --rbind / src && echo ESCAPED",
  ],
  ["the shadow file by another name", "cat /etc/../etc/shadow /proc/self/root/etc/shadow && echo ESCAPED"],
  [
    "a hidden folder renamed into sight",
    "mv private seen && cat seen/key; cp -r private src/p && cat src/p/key",
  ],
  ["a hidden folder whose parent is renamed", "mv deep other && cat other/private/key; cat deep/private/key"],
  ["a hidden file by a hard link", "ln private/key src/k && cat src/k"],
  ["git's settings by a hard link", "ln .git/config src/c && echo '[a]' >> src/c"],
  ["git's settings by a folder in their place", "rm -rf .git/config; mkdir .git/config && echo ESCAPED"],
  ["git's settings by git itself", "git config core.fsmonitor 'touch ../outside/made' && echo ESCAPED"],
  [
    "another folder in the place of git's",
    "cp -r .git .git2 && mv .git .git3 && mv .git2 .git && echo ESCAPED",
  ],
  ["a skill's folder replaced", "rm -rf skills/a; mkdir skills/a && echo ESCAPED"],
  ["a skill's folder by a link", "mv skills/a skills/b && ln -s b skills/a && echo ESCAPED"],
  ["a new file among the hooks", "touch .git/hooks/post-checkout && echo ESCAPED"],
  ["a protected link set to something else", "ln -sfn src linked && true"],
  [
    "the settings of the sandbox itself",
    "ls ../filters && echo ESCAPED; cat ../../filters/*.bpf && echo ESCAPED",
  ],
];

/** By a system call, which needs a program that makes any: each is refused, whatever its arguments. x64 and arm64. */
const systemCalls: readonly (readonly [name: string, x64: number, arm64: number, args: string])[] = [
  ["tracing Writ", 101, 117, "16, PARENT, 0, 0"],
  ["reading the memory of Writ", 310, 270, "PARENT, 0, 0, 0, 0, 0"],
  ["writing to the memory of Writ", 311, 271, "PARENT, 0, 0, 0, 0, 0"],
  ["taking over a file of Writ", 438, 438, "3, 0, 0"],
  ["comparing with Writ", 312, 272, "PARENT, PARENT, 0, 0, 0"],
  ["io_uring", 425, 425, "8, b'\\0' * 256"],
  ["the kernel's key store", 250, 219, "0, -3, 0"],
  ["adding a key", 248, 217, "b'user', b'x', b'y', 1, -3"],
  ["a BPF program", 321, 280, "0, b'\\0' * 64, 64"],
  ["performance counters", 298, 241, "b'\\0' * 128, 0, -1, -1, 0"],
  ["handling page faults", 323, 282, "0"],
  ["mounting, the new way", 430, 430, "b'tmpfs', 0"],
  ["a copy of a mount", 428, 428, "-100, b'/', 1"],
  ["other properties of a mount", 442, 442, "-100, b'/', 0, b'\\0' * 32, 32"],
  ["a mount, the old way", 165, 40, "b'none', b'/', 0, 32, 0"],
  ["another root", 155, 41, "b'/', b'/'"],
  ["another root, the old way", 161, 51, "b'/'"],
  ["the namespace of another", 308, 268, "3, 0"],
  ["a file by its handle", 304, 265, "-100, b'\\0' * 16, 0"],
  ["watching all files", 300, 262, "0, 0"],
  ["a kernel module", 313, 273, "3, b'', 0"],
  ["the clock", 227, 112, "0, b'\\0' * 16"],
  ["the name of the machine", 170, 161, "b'x', 1"],
  ["the log of the kernel", 103, 116, "3, b'\\0' * 64, 64"],
  ["a new namespace of users", 272, 97, "0x10000000"],
  ["a child in a new namespace of users", 56, 220, "0x10000011, 0, 0, 0, 0"],
  ["input to a terminal", 16, 29, "0, 0x5412, b'x'"],
];

/** Escapes that only a program of their own makes. */
const programs: readonly (readonly [name: string, code: string])[] = [
  [
    "a program that is only in memory, to be free",
    "import os\nfd = os.memfd_create('x')\nos.write(fd, open('/bin/cat','rb').read())\npid = os.fork()\nif pid == 0: os.execve(fd, ['cat', 'OUTSIDE/secret'], {})\nos.waitpid(pid, 0)",
  ],
  [
    "an abstract socket of the host",
    "import socket\ns = socket.socket(1)\ns.connect('\\0ABSTRACT')\nprint('ESCAPED')",
  ],
  ["a raw socket", "import socket\nsocket.socket(2, 3, 1)\nprint('ESCAPED')"],
  ["a packet socket", "import socket\nsocket.socket(17, 3, 0)\nprint('ESCAPED')"],
  ["netlink for the firewall", "import socket\nsocket.socket(16, 3, 12)\nprint('ESCAPED')"],
  [
    "UDP with an answer",
    "import socket\ns = socket.socket(2, 2)\ns.settimeout(0.3)\ns.sendto(b'x', ('127.0.0.1', UDP))\ns.recv(1)\nprint('ESCAPED')",
  ],
  [
    "a folder kept open on the way out",
    "import os\nfd = os.open('.', 0)\nos.chdir('/')\nprint(open(os.open('../outside/secret', 0, dir_fd=fd)).read())",
  ],
  [
    "a socket handed over by name",
    "import socket, os\nos.chdir('OUTSIDE')\ns = socket.socket(1)\ns.connect('socket')\nprint('ESCAPED')",
  ],
  ["a signal to all", "import os\ntry:\n  os.kill(PARENT, 0)\n  print('ESCAPED')\nexcept OSError: pass"],
  [
    "a signal by a handle",
    "import os, signal\nfd = os.pidfd_open(PARENT)\nsignal.pidfd_send_signal(fd, 0)\nprint('ESCAPED')",
  ],
  ["more memory than is allowed", "x = bytearray(3 * 2**30)\nprint('ESCAPED')"],
];

const allEscapes: readonly Attempt[] = [
  ...escapes,
  ...(python === undefined
    ? []
    : systemCalls.map(([name, x64, arm64, args]) => [name, systemCall([x64, arm64], args)] as const)),
  ...(python === undefined ? [] : programs.map(([name, code]) => [name, asPython(code)] as const)),
];

const sockets = (names: string) =>
  `import socket,sys\nfor n in ${names}:\n  f=getattr(socket,n,None)\n  if f is None: continue\n  for t in (1,2,3):\n    try: socket.socket(f,t); print("ESCAPED",n,t)\n    except OSError: pass\n`;

for (const backend of ["bwrap", "landlock"] as const) {
  const walls = await wallsOf(backend);
  if (walls === undefined) {
    test.skip(`a box by ${backend}, which this machine does not offer`, () => {});
    continue;
  }
  describe(`a box by ${backend}`, () => {
    let at: Stage;
    beforeEach(() => at = stage());
    afterEach(() => rmSync(at.top, { recursive: true, force: true }));

    const inside = (script: string, plan = at.plan, cwd = at.ws) => inBox(walls, plan, cwd, script);

    test("ordinary work", async () => {
      const result = await inside(
        "echo hi > src/a; cat src/a; echo t > $TMPDIR/t; cat $TMPDIR/t; ls /usr >/dev/null && id -u; (sleep 0.01 & wait); exit 3",
      );
      assertEquals([result.stdout, result.stderr, result.exit], [`hi\nt\n${process.getuid?.()}\n`, "", 3]);
      assertEquals(readFileSync(join(at.ws, "src/a"), "utf8"), "hi\n");
    });

    test("no way out", async () => {
      process.env["CANARY"] = "canary-environment";
      const server = createServer().listen(0, "127.0.0.1");
      await new Promise((done) => server.once("listening", done));
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      const unix = createServer().listen(join(at.outside, "socket"));
      const abstract = createServer().listen(`\0writ-box-${process.pid}`);
      const udp = createSocket("udp4").on("message", (_, from) => udp.send("y", from.port, from.address));
      await new Promise((done) => udp.bind(0, "127.0.0.1", () => done(undefined)));
      const tried = allEscapes.filter(([name]) => backend === "bwrap" || !notByLandlock.includes(name));
      const found = await ways(inside, tried, {
        PARENT: String(process.pid),
        PORT: String(port),
        OUTSIDE: at.outside,
        ABSTRACT: `writ-box-${process.pid}`,
        UDP: String(udp.address().port),
        SOCKET: python === undefined
          ? "true"
          : `${python} -c 'import socket; socket.socket(1).connect("${at.outside}/socket"); print("ESCAPED")'`,
      });
      abstract.close();
      udp.close();
      server.close();
      unix.close();
      assertEquals(found, []);
      assertEquals(existsSync(join(at.outside, "made")), false);
      assertEquals(readFileSync(join(at.ws, "skills/a/SKILL.md"), "utf8"), "kept\n");
      assertEquals(readFileSync(join(at.ws, ".git/config"), "utf8"), "[core]\n");
      assertEquals(readlinkSync(join(at.ws, "linked")), "skills/a");
      assertEquals(
        existsSync("/etc/writ-made") || existsSync("/usr/bin/writ-made") || existsSync("/made"),
        false,
      );
    });

    test("no way to have Writ remove or write what lies elsewhere when it cleans up", async () => {
      const { ws, outside } = at;
      mkdirSync(join(outside, "skills/mine"), { recursive: true });
      mkdirSync(join(ws, "docs"));
      symlinkSync("docs", join(ws, "manual"));
      for (const name of ["AGENTS.md", "linked"]) writeFileSync(join(outside, name), "mine\n");
      const protect = [
        { path: join(ws, ".agents/skills"), folder: true },
        { path: join(ws, "docs/AGENTS.md"), folder: false },
        { path: join(ws, "manual/rules.md"), folder: false },
        { path: join(ws, "src/deep/AGENTS.md"), folder: false },
      ];
      const traps =
        "ln -s ../outside .agents; mv docs d; ln -s ../outside docs; rm manual; ln -s ../outside manual; " +
        "mkdir -p src/deep/AGENTS.md; touch src/deep/AGENTS.md/x; chmod 0 src/deep/AGENTS.md; true";
      const { exit, removed } = await inside(traps, { ...at.plan, protect });
      assertEquals(exit, 0);
      // By Landlock nothing is made in a folder that holds something protected.
      const set = backend === "bwrap" ? ["manual", ".agents", "docs"] : [];
      assertEquals(removed, [...set, "src/deep/AGENTS.md"].map((name) => join(ws, name)));
      assertEquals(readlinkSync(join(ws, "manual")), "docs");
      const left = ["skills/mine", "AGENTS.md", "linked"].map((name) => existsSync(join(outside, name)));
      assertEquals([left, existsSync(join(outside, "rules.md"))], [[true, true, true], false]);
    });

    test("no way out where there is a network: no socket but TCP and UDP", async () => {
      const plan = stage({ network: "all" }).plan;
      const names = '["AF_UNIX","AF_PACKET","AF_VSOCK","AF_ALG","AF_NETLINK"]';
      const abstract = createServer().listen(`\0writ-net-${process.pid}`);
      const tried = python === undefined ? "" : `${python} -c '${sockets(names)}'`;
      const { stdout } = await inside(
        `cd ${plan.write[0]}; ${tried}; grep writ-net /proc/net/unix > /dev/null; true`,
        plan,
        plan.write[0],
      );
      abstract.close();
      // Programs ask netlink about the interfaces of the network.
      assertEquals(stdout.split("\n").filter((line) => !line.includes("AF_NETLINK")), [""]);
    });

    test("what is opened below something hidden is seen, and nothing beside it", async () => {
      const { plan, ws } = at;
      writeFileSync(join(ws, "private/open"), "opened\n");
      const { stdout } = await inside("cat private/open; cat private/key; echo x > private/open", {
        ...plan,
        read: [...plan.read, join(ws, "private/open")],
      });
      assertEquals([stdout, readFileSync(join(ws, "private/open"), "utf8")], ["opened\n", "opened\n"]);
    });

    test("folders that were made to be held are taken away again", async () => {
      await inside("ls -d .writ");
      assertEquals(existsSync(join(at.ws, ".writ")), false);
    });

    test("protected files that do not exist yet do not come to exist", async () => {
      const result = await inside(
        "mkdir .writ; echo x > .writ/policy.yaml; echo x > AGENTS.md; echo . > .git/commondir; true",
      );
      for (const path of [".writ/policy.yaml", "AGENTS.md", ".git/commondir"]) {
        assertEquals([path, existsSync(join(at.ws, path))], [path, false]);
      }
      assertEquals(result.exit, 0);
    });

    test.skipIf(python === undefined)("no socket of any unusual kind", async () => {
      const names =
        '["AF_PACKET","AF_VSOCK","AF_ALG","AF_BLUETOOTH","AF_CAN","AF_TIPC","AF_RDS","AF_QIPCRTR","AF_KEY"]';
      const { stdout } = await inside(`${python} -c '${sockets(names)}'`);
      assertEquals(stdout, "");
    });

    test("limits of a process and its core files", async () => {
      const { stdout, stderr } = await inside("ulimit -u; ulimit -d; ulimit -c");
      const [processes, ...others] = stdout.split("\n");
      assertEquals([others, stderr], [["2097152", "0", ""], ""]);
      assert(backend === "bwrap" ? processes === "256" : Number(processes) >= 256);
    });

    test("what it starts is gone when it ends, also what left its session", async () => {
      const result = await run([
        "bash",
        "-c",
        "setsid sleep 3017 & (setsid sleep 3017 &) ; echo started; sleep 3017",
      ], {
        cwd: at.ws,
        env: { PATH: "/usr/bin:/bin" },
        box: boxWith(walls, at.plan),
        timeoutMs: 500,
        killGraceMs: 200,
        maxOutput: 1000,
      });
      assertEquals([result.timedOut, result.stdout], [true, "started\n"]);
      const left = spawnSync("pgrep", ["-fc", `sleep 3017`], { encoding: "utf8" }).stdout.trim();
      assertEquals(left, "0");
    });
  });
}

test("a backend that is not there is said in words", async () => {
  const found = await findWalls({ backend: "bwrap", folder: scratch, self: source, writable: ["/"] });
  assertEquals(found.ok, false);
  assertStringIncludes(found.ok ? "" : found.message, "install bubblewrap");
});
