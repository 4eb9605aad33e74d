import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { boxOf, type BoxSettings, sharedPlaces, showBox, unknownBox } from "../../src/core/box.ts";
import { boxLack } from "../../src/core/box_lack.ts";
import type { SandboxSettings } from "../../src/core/box.ts";

const push: BoxSettings = {
  name: "push",
  network: "all",
  read: [{ path: "/k" }],
  write: [],
  env: ["SSH_AUTH_SOCK", "LANG"],
  sockets: ["SSH_AUTH_SOCK"],
  note: "to the server",
};
const host: BoxSettings = { name: "host", off: true, read: [], write: [], env: [], sockets: [] };
const sandbox: SandboxSettings = {
  mode: "required",
  backend: "auto",
  network: "none",
  read: ["system", "workspace"],
  write: ["workspace"],
  hide: [],
  limits: { processes: 1, memory: 1 },
  boxes: [host, push],
};

test("boxOf() adds what a box says to the default one", () => {
  const plain = {
    name: "default",
    off: false,
    network: "none",
    read: ["system", "workspace"],
    write: ["workspace"],
  };
  assertEquals([boxOf(sandbox, "default"), boxOf(sandbox, "push"), boxOf(sandbox, "none")], [
    { ...plain, env: [], sockets: [] } as ReturnType<typeof boxOf>,
    {
      ...plain,
      name: "push",
      network: "all",
      read: ["system", "workspace", { path: "/k" }],
      env: ["SSH_AUTH_SOCK", "LANG"],
      sockets: ["SSH_AUTH_SOCK"],
    } as ReturnType<typeof boxOf>,
    undefined,
  ]);
  assertEquals(boxOf({ ...sandbox, mode: "off" }, "default")?.off, true);
});

test("a box in one line says all that it opens", () => {
  assertEquals([push, host].map(showBox), [
    "push (network, socket SSH_AUTH_SOCK, reads /k, variable LANG; to the server)",
    "host (no sandbox)",
  ]);
  assertEquals(unknownBox([push], "push"), undefined);
});

test("sharedPlaces() is what both name, and of two in each other the inner one", () => {
  const at = (path: string) => ({ path });
  assertEquals(
    sharedPlaces(["system", "home", at("/a"), at("/b/c")], ["home", at("/a/x"), at("/b"), at("/d")]),
    [
      "home",
      at("/b/c"),
      at("/a/x"),
    ],
  );
});

describe("boxLack() says of", () => {
  const box = boxOf(sandbox, "default");
  const cases: readonly (readonly [output: string, locked: boolean, said: string | undefined])[] = [
    [
      "curl: (6) Could not resolve host: x",
      false,
      "the default box has no network; with it: host (no sandbox), ",
    ],
    [
      "Error: listen EPERM: operation not permitted 127.0.0.1",
      true,
      "the default box has no network; with it: host",
    ],
    [
      "Could not open a connection to your authentication agent.",
      false,
      "the default box reaches no such socket",
    ],
    ["cat: /home/u/.ssh/id: No such file or directory", false, undefined],
    ["cat: /home/u/.ssh/id: Permission denied", false, "the default box hides `/home/u/.ssh`"],
    [
      "fatal: Unable to create '/ws/.git/index.lock': Permission denied",
      true,
      "without bubblewrap a git folder is read-only",
    ],
    [
      "touch: cannot touch 'x': Permission denied",
      true,
      "without bubblewrap a folder that holds something protected",
    ],
    ["touch: cannot touch '/x': Read-only file system", false, "the default box writes only the workspace"],
    [
      "error: could not write config file .git/config: Device or resource busy",
      false,
      "the default box writes only the workspace",
    ],
    [
      "PermissionError: [Errno 1] Operation not permitted",
      true,
      "without bubblewrap a box has no terminals, no shared memory and, without a network, no sockets of its own; with it: host (no sandbox), push (network",
    ],
    ["OSError: out of pty devices", true, "without bubblewrap a box has no terminals"],
    ["OSError: out of pty devices", false, undefined],
    ["assertion failed: 1 is not 2", false, undefined],
  ];
  for (const [output, locked, said] of cases) {
    test(`${output}${locked ? ", by Landlock" : ""}`, () => {
      const lack = box === undefined ? undefined : boxLack(output, box, sandbox.boxes, {
        hidden: output.includes("Permission") ? ["/home/u/.ssh"] : [],
        locked,
      });
      assertEquals(lack?.slice(0, said?.length), said);
    });
  }
});
