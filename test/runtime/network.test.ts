import { assert, assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import type { HostFact } from "../../src/core/facts.ts";
import { fixedNetwork, systemNetwork } from "../../src/runtime/network.ts";

const open = new AbortController().signal;

function host(name: string): HostFact {
  return { written: `https://${name}/`, host: name, private: false };
}

describe("systemNetwork()", () => {
  test("looks names up as the system does", async () => {
    const found = await systemNetwork({}).addresses(host("localhost"), open);
    assert(found.ok, JSON.stringify(found));
    assertEquals(found.addresses.filter((a) => a !== "127.0.0.1" && a !== "::1"), []);
  });

  test("gives back a reason for a name without an address", async () => {
    // No system asks anybody for a name with an empty label.
    const found = await systemNetwork({}).addresses(host("a..b"), open);
    assertEquals([found.ok, !found.ok && found.code], [false, "unresolved_host"]);
  });

  test("looks nothing up for a call that was cancelled", async () => {
    assertEquals(await systemNetwork({}).addresses(host("localhost"), AbortSignal.abort()), {
      ok: false,
      code: "unresolved_host",
      message: "the name `localhost` has no address: cancelled",
    });
  });

  const unused = (names: string) =>
    `${names} is set but not used: fetch_url goes straight to the address that was judged`;
  const hints: readonly (readonly [string, { readonly [name: string]: string }, string | undefined])[] = [
    ["no proxy", { PATH: "/bin" }, undefined],
    ["an empty one", { HTTPS_PROXY: "" }, undefined],
    ["one", { HTTPS_PROXY: "http://p.test" }, unused("HTTPS_PROXY")],
    ["small letters", { http_proxy: "http://p.test" }, unused("HTTP_PROXY")],
    [
      "several",
      { HTTP_PROXY: "p", https_proxy: "q", ALL_PROXY: "r" },
      unused("HTTPS_PROXY, HTTP_PROXY, ALL_PROXY"),
    ],
  ];
  for (const [name, env, hint] of hints) {
    test(`says that proxies are not used: ${name}`, () => assertEquals(systemNetwork(env).hint, hint));
  }
});

describe("fixedNetwork()", () => {
  test("knows what it was given, and connects to nothing", async () => {
    const network = fixedNetwork({ "a.test": ["10.0.0.1", "8.8.8.8"], "b.test": [] });
    const unknown = (name: string) => ({
      ok: false as const,
      code: "unresolved_host",
      message: `the name \`${name}\` has no address: it is not among the given hosts`,
    });
    assertEquals(
      [
        await network.addresses(host("a.test"), open),
        await network.addresses(host("b.test"), open),
        await network.addresses(host("toString"), open),
        network.offline,
      ],
      [
        { ok: true, addresses: ["10.0.0.1", "8.8.8.8"] },
        unknown("b.test"),
        unknown("toString"),
        "this run has no network",
      ],
    );
  });
});
