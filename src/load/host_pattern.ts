// Host patterns of rules, brought to the form in which hosts are judged.
import { canonicalHost, isAddress } from "../core/host.ts";
import type { HostPattern } from "../core/rule.ts";

/**
 * Exact, `*.sub`, `*` or `@private`. Names come out in lower case and as punycode, without a dot at the end; addresses in
 * the one form that a parsed URL has, IPv6 without brackets.
 */
export function parseHostPattern(text: string): HostPattern | { readonly error: string } {
  if (text === "*") return { kind: "any" };
  if (text === "@private") return { kind: "private" };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    const host = /^[^/]*\/\/(?:[^@/]*@)?([\w.*-]+)/.exec(text)?.[1];
    const meant = host === undefined ? "" : `; write \`${host}\``;
    return { error: `a host pattern names the host only, without \`https://\`${meant}` };
  }
  if (/[/?#@\s]/.test(text)) return { error: "a host pattern names the host only, without a path or a user" };
  const under = text.startsWith("*.");
  const name = under ? text.slice(2) : text;
  if (name.includes("*")) return { error: "`*` stands alone or at the start, as in `*.example.com`" };
  const host = readHost(name);
  if (host === undefined) return { error: "it is no host name or address" };
  if (!under) return { kind: "exact", host };
  return isAddress(host) ? { error: "an address has no subdomains" } : { kind: "under", domain: host };
}

// Undefined when the text is no host, or names a port.
function readHost(text: string): string | undefined {
  const bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  const sixth = bare.includes(":");
  const address = `http://${sixth ? `[${bare}]` : bare}/`;
  if (bare === "" || (sixth && !/^[0-9a-f:.]+$/i.test(bare)) || !URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (url.port !== "" || url.pathname !== "/" || url.username !== "") return undefined;
  const host = canonicalHost(url.hostname);
  return host === "" ? undefined : host;
}
