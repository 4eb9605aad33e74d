// Which host a URL talks to, in the one form in which hosts are judged. Looks nothing up.
import type { HostFact } from "../core/facts.ts";
import { canonicalHost, isPrivateHost } from "../core/host.ts";

// Reading the names in it takes time by their length.
const longestUrl = 16 * 1024;

export type HostFault = { readonly code: string; readonly message: string };

/**
 * The host of an http or https URL as the WHATWG parser reads it: lower case, punycode, no dot at the end, every spelling
 * of an IPv4 address and IPv4-mapped IPv6 as four decimals, IPv6 without brackets. `addresses` are what the name resolves
 * to: one private address makes the host private.
 */
export function hostFact(url: string, addresses: readonly string[] = []): HostFact | HostFault {
  if (url.length > longestUrl) {
    return {
      code: "bad_url",
      message: `the URL has ${url.length} characters; expected at most ${longestUrl}, and servers take fewer`,
    };
  }
  if (!URL.canParse(url)) {
    return {
      code: "bad_url",
      message: `\`${shortened(url)}\` is not a URL; expected one such as \`https://example.com/page\``,
    };
  }
  const parsed = new URL(url);
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
    return {
      code: "bad_url",
      message: `\`${shortened(parsed.protocol)}\` is not supported; expected \`http:\` or \`https:\``,
    };
  }
  const host = canonicalHost(parsed.hostname);
  if (host === "") return { code: "bad_url", message: `\`${shortened(url)}\` names no host` };
  const leadsTo = addresses.map(canonicalHost).filter(isPrivateHost).sort()[0];
  return {
    written: url,
    host,
    private: isPrivateHost(host) || leadsTo !== undefined,
    ...(leadsTo === undefined || leadsTo === host ? {} : { leadsTo }),
  };
}

function shortened(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
