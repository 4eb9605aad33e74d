// What a command that failed in a box may have lacked, and which boxes have it: told to the model beside the output.
import { type BoxSettings, type FullBox, showBox } from "./box.ts";

type Lack = "network" | "socket" | "git" | "shared" | "path";

const signs: readonly (readonly [Lack, RegExp])[] = [
  [
    "network",
    /could not resolve|name resolution|name or service not known|network is unreachable|ENETUNREACH|ENOTFOUND|EAI_AGAIN|getaddrinfo|nodename nor servname|no route to host|unknown host|failed to lookup address|dns error|couldn't connect to server|failed to connect to|connect: (?:operation not permitted|permission denied)|\/dev\/(?:tcp|udp)\/|dial (?:tcp|udp)|NS_ERROR|socket: operation not permitted|error sending request|ConnectionRefused|unable to access 'https?:|listen EPERM|EPERM: operation not permitted, listen|Failed to start server/i,
  ],
  [
    "socket",
    /authentication agent|SSH_AUTH_SOCK|docker daemon|docker\.sock|podman\.sock|permission denied \(publickey|D-Bus|dbus|Host key verification failed/i,
  ],
  ["git", /\.git\/|index\.lock|\.git['": ]/],
  [
    "shared",
    /operation not permitted|EPERM|out of pty devices|openpty|posix_openpt|\/dev\/(?:shm|pts|ptmx)|SemLock|semaphore/i,
  ],
  [
    "path",
    /permission denied|read-only file system|EACCES|EROFS|operation not permitted|EPERM|resource busy|EBUSY|no such file or directory|ENOENT/i,
  ],
];

/**
 * A line for the model, or undefined where nothing points to the box. `hidden`: paths that the box hides, as they would be
 * written; `locked`: only what is there can be written, and git folders not at all, as by Landlock.
 */
export function boxLack(
  output: string,
  box: FullBox,
  boxes: readonly BoxSettings[],
  at: { readonly hidden: readonly string[]; readonly locked: boolean },
): string | undefined {
  if (box.off) return undefined;
  const seen = new Set(signs.flatMap(([lack, sign]) => sign.test(output) ? [lack] : []));
  const said: string[] = [];
  const others = boxes.filter((b) => b.name !== box.name);
  const offer = (what: string, has: (b: BoxSettings) => boolean) => {
    const found = others.filter((b) => b.off === true || has(b));
    said.push(
      found.length === 0
        ? `${what}, and the policy defines no box that has it`
        : `${what}; with it: ${found.map(showBox).join(", ")}`,
    );
  };
  const called = box.name === "default" ? "the default box" : `the box \`${box.name}\``;
  if (seen.has("network") && box.network === "none") {
    offer(`${called} has no network`, (b) => b.network === "all");
  }
  if (seen.has("socket")) offer(`${called} reaches no such socket of the host`, (b) => b.sockets.length > 0);
  const denied = seen.has("path");
  if (at.locked && seen.has("shared")) {
    if (said.length === 0) {
      offer(
        "without bubblewrap a box has no terminals, no shared memory and, without a network, no sockets of its own",
        (b) => b.network === "all",
      );
    }
  } else if (denied && seen.has("git") && at.locked) {
    offer("without bubblewrap a git folder is read-only in a box", () => false);
  } else if (denied) {
    const hidden = at.hidden.find((path) => output.includes(path));
    if (hidden !== undefined) {
      offer(
        `${called} hides \`${hidden}\``,
        (b) => [...b.read, ...b.write].some((p) => typeof p !== "string" && p.path.startsWith(hidden)),
      );
    } else if (at.locked && /permission denied|EACCES/i.test(output)) {
      offer(
        "without bubblewrap a folder that holds something protected, such as the workspace's own, takes no new entries, " +
          "and temporary files go to $TMPDIR",
        () => false,
      );
    } else if (!/no such file|ENOENT/i.test(output)) {
      offer(
        `${called} writes only the workspace, its own home and $TMPDIR, and nothing protected`,
        (b) => b.write.length > 0,
      );
    }
  }
  if (said.length === 0) return undefined;
  return `${said.join(". ")}. A call names its box as \`box\``;
}
