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
 * Whether a canonical host is this machine or a private network: loopback, unspecified, link-local, RFC 1918,
 * unique-local, or a localhost name. Addresses in which IPv6 carries an IPv4 address count as that.
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

function isPrivate4([a = 0, b = 0]: readonly number[]): boolean {
  return a === 0 || a === 10 || a === 127 || (a === 169 && b === 254) || (a === 172 && b >= 16 && b <= 31) ||
    (a === 192 && b === 168);
}

function isPrivate6(host: string): boolean {
  const groups = ipv6(host);
  // What cannot be read is not taken for public.
  if (groups === undefined) return true;
  const [first = 0, second = 0] = groups;
  if (groups.slice(0, 7).every((g) => g === 0) && (groups[7] ?? 0) <= 1) return true;
  if ((first & 0xffc0) === 0xfe80 || (first & 0xffc0) === 0xfec0 || (first & 0xfe00) === 0xfc00) return true;
  const carried = groups.slice(0, 6).every((g) => g === 0) ||
      (groups.slice(0, 5).every((g) => g === 0) && groups[5] === 0xffff) ||
      (first === 0x64 && second === 0xff9b)
    ? dotted(groups)
    : first === 0x2002
    ? dotted([0, 0, 0, 0, 0, 0, second, groups[2] ?? 0])
    : undefined;
  const four = carried === undefined ? undefined : ipv4(carried);
  return four !== undefined && isPrivate4(four);
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
