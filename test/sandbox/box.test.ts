import { afterEach, beforeEach, describe, test } from "bun:test";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { findWalls } from "../../src/sandbox/backend.ts";
import type { BoxPlan, Walls } from "../../src/core/box_plan.ts";
import { run } from "../../src/sandbox/subprocess.ts";
import { runtimes } from "../support/runtimes.ts";

const source = runtimes[process.versions["bun"] === undefined ? 1 : 0]?.command as [string, ...string[]];
const scratch = realpathSync(mkdtempSync(join(tmpdir(), "writ-box-")));
const system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"].filter((p) =>
  existsSync(p)
);

async function wallsOf(backend: "bwrap" | "landlock"): Promise<Walls | undefined> {
  const found = await findWalls({ backend, folder: join(scratch, "filters"), self: source, writable: [] });
  return found.ok ? found.walls : undefined;
}

type Stage = { readonly top: string; readonly ws: string; readonly outside: string; readonly plan: BoxPlan };

function stage(changes: Partial<BoxPlan> = {}): Stage {
  const top = mkdtempSync(join(scratch, "stage-"));
  const ws = join(top, "ws");
  const outside = join(top, "outside");
  for (
    const folder of [
      join(ws, ".git/hooks"),
      join(ws, "src"),
      join(ws, "skills/a"),
      outside,
      join(top, "tmp"),
      join(ws, "private"),
    ]
  ) {
    mkdirSync(folder, { recursive: true });
  }
  writeFileSync(join(ws, ".git/config"), "[core]\n");
  writeFileSync(join(ws, "skills/a/SKILL.md"), "kept\n");
  writeFileSync(join(ws, "private/key"), "canary-in-workspace\n");
  writeFileSync(join(outside, "secret"), "canary-outside\n");
  symlinkSync(join(outside, "secret"), join(ws, "link"));
  return {
    top,
    ws,
    outside,
    plan: {
      name: "default",
      network: "none",
      read: system,
      write: [ws],
      hide: ["/etc/shadow", join(ws, "private")],
      protect: [
        { path: join(ws, ".git/hooks"), folder: true },
        { path: join(ws, ".git/config"), folder: false },
        { path: join(ws, ".git/commondir"), folder: false },
        { path: join(ws, ".writ"), folder: true },
        { path: join(ws, "skills/a"), folder: true },
        { path: join(ws, "AGENTS.md"), folder: false },
      ],
      sockets: [],
      tmp: join(top, "tmp"),
      processes: 256,
      memory: 2 ** 31,
      ...changes,
    },
  };
}

const python = ["/usr/bin/python3", "/usr/local/bin/python3"].find((p) => existsSync(p));

/** Modes, times and owners are not Landlock's business: what is owned by the user can be changed in these. */
const notByLandlock = ["a skill's mode"];

/** What must not come about: each script says `ESCAPED` when it did, or leaves a trace that `trace` finds. */
const escapes: readonly (readonly [name: string, script: string])[] = [
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

    const inside = (script: string, plan = at.plan) =>
      run(["bash", "--noprofile", "--norc", "-c", script], {
        cwd: at.ws,
        env: { PATH: "/usr/local/bin:/usr/bin:/bin", TMPDIR: at.plan.tmp, HOME: at.plan.tmp },
        box: { plan, walls },
        timeoutMs: 20_000,
        maxOutput: 10_000,
      });

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
      const found: string[] = [];
      for (const [name, script] of escapes) {
        if (backend === "landlock" && notByLandlock.includes(name)) continue;
        const text = script.replaceAll("PARENT", String(process.pid)).replaceAll("PORT", String(port))
          .replaceAll("OUTSIDE", at.outside)
          .replace(
            "SOCKET",
            python === undefined
              ? "true"
              : `${python} -c 'import socket; socket.socket(1).connect("${at.outside}/socket"); print("ESCAPED")'`,
          );
        const { stdout, stderr } = await inside(text);
        if (/ESCAPED|canary/.test(stdout + stderr)) found.push(`${name}: ${stdout}${stderr}`);
      }
      server.close();
      unix.close();
      assertEquals(found, []);
      assertEquals(existsSync(join(at.outside, "made")), false);
      assertEquals(readFileSync(join(at.ws, "skills/a/SKILL.md"), "utf8"), "kept\n");
      assertEquals(readFileSync(join(at.ws, ".git/config"), "utf8"), "[core]\n");
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
      const { stdout } = await inside("ulimit -u; ulimit -d; ulimit -c");
      const [processes, ...others] = stdout.split("\n");
      assertEquals(others, ["2097152", "0", ""]);
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
        box: { plan: at.plan, walls },
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
