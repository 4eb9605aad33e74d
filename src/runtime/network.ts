// The way to the network: names are looked up as the system does it, within a time limit.
import type { Addresses, Network } from "../agent/ports.ts";

const longestMs = 10_000;

/** `env` is only looked at for proxies, which are never used: the address that was judged is the one that is dialled. */
export function systemNetwork(env: { readonly [name: string]: string | undefined }): Network {
  const proxies = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"].filter((name) =>
    (env[name] ?? env[name.toLowerCase()] ?? "") !== ""
  );
  return {
    addresses: (host, signal) => lookUp(host.host, signal),
    ...(proxies.length === 0 ? {} : {
      hint: `${
        proxies.join(", ")
      } is set but not used: fetch_url goes straight to the address that was judged`,
    }),
  };
}

/** Knows the given names only and connects to nothing. */
export function fixedNetwork(hosts: { readonly [name: string]: readonly string[] }): Network {
  return {
    addresses: async ({ host }) => {
      const addresses = Object.hasOwn(hosts, host) ? hosts[host] ?? [] : [];
      return addresses.length > 0
        ? { ok: true, addresses }
        : unresolved(host, "it is not among the given hosts");
    },
    offline: "this run has no network",
  };
}

// The system's look-up cannot be cancelled: an answer that comes too late is dropped.
async function lookUp(name: string, signal: AbortSignal): Promise<Addresses> {
  if (signal.aborted) return unresolved(name, "cancelled");
  let settle = () => {};
  const late = new Promise<Addresses>((resolve) => {
    const end = (reason: string) => resolve(unresolved(name, reason));
    const timer = setTimeout(() => end(`no answer within ${longestMs / 1000} s`), longestMs);
    const stop = () => end("cancelled");
    signal.addEventListener("abort", stop, { once: true });
    settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    };
  });
  try {
    return await Promise.race([ask(name), late]);
  } finally {
    settle();
  }
}

async function ask(name: string): Promise<Addresses> {
  try {
    // Most runs look nothing up.
    const { lookup } = await import("node:dns/promises");
    const found = await lookup(name, { all: true, verbatim: true });
    return found.length > 0
      ? { ok: true, addresses: found.map((f) => f.address) }
      : unresolved(name, "no address");
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    return unresolved(
      name,
      typeof code === "string" ? code : error instanceof Error ? error.message : "failed",
    );
  }
}

function unresolved(name: string, reason: string): Addresses {
  return { ok: false, code: "unresolved_host", message: `the name \`${name}\` has no address: ${reason}` };
}
