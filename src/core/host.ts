// Hosts in the one form in which they are judged, and what kind of host one is. Looks nothing up.

/**
 * The one form in which hosts are judged, of the host of a parsed URL or of an address: lower case, no dot at the end, IPv6
 * without brackets and zone, IPv4-mapped IPv6 as four decimals. Empty when there is no name.
 */
export function canonicalHost(hostname: string): string {
  const bare = hostname.replace(/^\[|\]$/g, "").replace(/%.*/, "").toLowerCase().replace(/\.+$/, "");
  const groups = ipv6(bare);
  return groups?.slice(0, 6).join(" ") === "0 0 0 0 0 65535" ? carried4(groups).join(".") : bare;
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
const private4 = ([
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const).map(([address, length]) => [number4(address.split(".").map(Number)), length] as const);

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
  if (first === 0x64 && second === 0xff9b && groups.slice(2, 6).every((g) => g === 0)) {
    return isPrivate4(carried4(groups));
  }
  if (first === 0x2002) return isPrivate4(carried4([0, 0, 0, 0, 0, 0, second, third]));
  // Only 2000::/3 is handed out for global use; 2001::/23, 2001:db8::/32 and 3fff::/20 of it are not.
  return (first & 0xe000) !== 0x2000 || (first === 0x2001 && (second < 0x200 || second === 0xdb8)) ||
    (first === 0x3fff && second < 0x1000);
}

// The IPv4 address in the last two groups.
function carried4(groups: readonly number[]): readonly number[] {
  return groups.slice(6).flatMap((group) => [group >> 8, group & 255]);
}

// Eight groups; undefined when the text is no IPv6 address.
function ipv6(text: string): readonly number[] | undefined {
  const tail = text.lastIndexOf(":") + 1;
  const four = ipv4(text.slice(tail));
  const number = number4(four ?? []);
  const plain = four === undefined
    ? text
    : `${text.slice(0, tail)}${(number >>> 16).toString(16)}:${(number & 0xffff).toString(16)}`;
  const halves = plain.split("::").map((half) => half === "" ? [] : half.split(":"));
  const given = halves.flat();
  const missing = 8 - given.length;
  if (!given.every((g) => /^[0-9a-f]{1,4}$/.test(g))) return undefined;
  if (halves.length > 2 || (halves.length === 1 ? missing !== 0 : missing < 1)) return undefined;
  const [left = [], right = []] = halves;
  return [...left, ...Array.from({ length: missing }, () => "0"), ...right].map((g) => parseInt(g, 16));
}
