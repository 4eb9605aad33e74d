// Hosts in the one form in which they are judged, and what kind of host one is. Looks nothing up.

/**
 * The one form in which hosts are judged, of the host of a parsed URL or of an address: lower case, no dot at the end, IPv6
 * without brackets and zone, IPv4-mapped IPv6 as four decimals. Empty when there is no name.
 */
export function canonicalHost(hostname: string): string {
  const bare = hostname.replace(/^\[|\]$/g, "").replace(/%.*$/, "").toLowerCase().replace(/\.+$/, "");
  const groups = bare.includes(":") ? ipv6(bare) : undefined;
  return groups?.slice(0, 6).join(" ") === "0 0 0 0 0 65535" ? dotted(groups) : bare;
}

/** Whether a canonical host is an address and no name. */
export function isAddress(host: string): boolean {
  return host.includes(":") || ipv4(host) !== undefined;
}

/**
 * Whether a canonical host is this machine, a localhost name, or an address that is not reachable from everywhere: all that
 * the registries of special-purpose addresses do not list as global counts as private. Addresses in which IPv6 carries an
 * IPv4 address count as that.
 */
export function isPrivateHost(host: string): boolean {
  const four = ipv4(host);
  if (four !== undefined) return isPrivate4(four);
  if (host.includes(":")) return isPrivate6(host);
  return /(^|\.)localhost(\.localdomain)?$/.test(host) || /^(ip6-localhost|ip6-loopback)$/.test(host);
}

function ipv4(host: string): readonly number[] | undefined {
  const parts = host.split(".");
  return parts.length === 4 && parts.every((p) => /^\d{1,3}$/.test(p)) ? parts.map(Number) : undefined;
}

// First address and length of each range: special-purpose, documentation, benchmarking, shared, multicast, reserved.
const private4: readonly (readonly [number, number])[] = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
].map((range) => {
  const [address = "", length] = range.split("/");
  return [number4(address.split(".").map(Number)), Number(length)];
});

function number4(four: readonly number[]): number {
  return four.reduce((sum, byte) => sum * 256 + byte, 0);
}

function isPrivate4(four: readonly number[]): boolean {
  const address = number4(four);
  return private4.some(([first, length]) => address >= first && address < first + 2 ** (32 - length));
}

function isPrivate6(host: string): boolean {
  const groups = ipv6(host);
  // What cannot be read is not taken for public.
  if (groups === undefined) return true;
  const [first = 0, second = 0, third = 0] = groups;
  const carried = first === 0x64 && second === 0xff9b && groups.slice(2, 6).every((g) => g === 0)
    ? groups
    : first === 0x2002
    ? [0, 0, 0, 0, 0, 0, second, third]
    : groups.slice(0, 5).every((g) => g === 0) && groups[5] === 0xffff
    ? groups
    : undefined;
  if (carried !== undefined) return isPrivate4(ipv4(dotted(carried)) ?? []);
  // Only 2000::/3 is handed out for global use; 2001::/23, 2001:db8::/32 and 3fff::/20 of it are not.
  return (first & 0xe000) !== 0x2000 || (first === 0x2001 && (second < 0x200 || second === 0xdb8)) ||
    (first === 0x3fff && second < 0x1000);
}

function dotted(groups: readonly number[]): string {
  const [high = 0, low = 0] = groups.slice(6);
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

// Eight groups; undefined when the text is no IPv6 address.
function ipv6(text: string): readonly number[] | undefined {
  const tail = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const four = tail === null ? undefined : ipv4(tail[2] ?? "");
  const plain = four === undefined || tail === null
    ? text
    : `${tail[1]}${((four[0] ?? 0) * 256 + (four[1] ?? 0)).toString(16)}:${
      ((four[2] ?? 0) * 256 + (four[3] ?? 0)).toString(16)
    }`;
  const halves = plain.split("::");
  if (halves.length > 2) return undefined;
  const sides = halves.map((half) => half === "" ? [] : half.split(":"));
  const given = sides.flat();
  if (!given.every((g) => /^[0-9a-f]{1,4}$/i.test(g))) return undefined;
  if (halves.length === 1) return given.length === 8 ? given.map((g) => parseInt(g, 16)) : undefined;
  if (given.length > 7) return undefined;
  const gap = Array.from({ length: 8 - given.length }, () => "0");
  return [...(sides[0] ?? []), ...gap, ...(sides[1] ?? [])].map((g) => parseInt(g, 16));
}
