import { describe, test } from "bun:test";
import { assert, assertEquals } from "@std/assert";
import { hostFact } from "../../src/tools/host_fact.ts";

describe("hostFact() gives the host as it is judged", () => {
  const rows: [url: string, host: string][] = [
    ["HTTPS://Docs.Example.COM/a?b#c", "docs.example.com"],
    ["https://docs.example.com./", "docs.example.com"],
    ["https://docs.example.com:8443/", "docs.example.com"],
    ["https://docs.example.com@evil.test/", "evil.test"],
    ["https://evil.test\\@docs.example.com/", "evil.test"],
    ["https://evil.test#@docs.example.com/", "evil.test"],
    ["https:docs.example.com/a", "docs.example.com"],
    [" https://a.test/\n", "a.test"],
    ["https://ｅvil.test/", "evil.test"],
    ["https://exаmple.com/", "xn--exmple-4nf.com"],
    ["https://bücher.example/", "xn--bcher-kva.example"],
    ["http://2852039166/", "169.254.169.254"],
    ["http://0251.0376.0251.0376/", "169.254.169.254"],
    ["http://0xa9.0xfe.0xa9.0xfe/", "169.254.169.254"],
    ["http://169.254.43518/", "169.254.169.254"],
    ["http://[::ffff:169.254.169.254]/", "169.254.169.254"],
    ["http://[::FFFF:a9fe:a9fe]/", "169.254.169.254"],
    ["http://[2001:DB8::1]/", "2001:db8::1"],
    ["http://127.1/", "127.0.0.1"],
  ];
  for (const [url, host] of rows) {
    test(url, () => {
      const fact = hostFact(url);
      assert(!("code" in fact), JSON.stringify(fact));
      assertEquals([fact.written, fact.host], [url, host]);
    });
  }
});

describe("hostFact() knows private hosts", () => {
  const private_ = [
    "localhost",
    "a.localhost",
    "LOCALHOST.",
    "localhost.localdomain",
    "127.0.0.1",
    "127.255.0.1",
    "0.0.0.0",
    "10.0.0.5",
    "172.16.0.1",
    "172.31.255.1",
    "192.168.1.1",
    "169.254.169.254",
    "[::1]",
    "[::]",
    "[fe80::1]",
    "[febf::1]",
    "[fc00::1]",
    "[fd12::1]",
    "[::ffff:10.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
  ];
  const public_ = [
    "example.com",
    "localhost.example.com",
    "notlocalhost",
    "8.8.8.8",
    "172.32.0.1",
    "172.15.0.1",
    "192.169.0.1",
    "11.0.0.1",
    "169.253.0.1",
    "[2606:4700::1]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::808:808]",
    "[2002:808:808::]",
  ];
  for (const [list, expected] of [[private_, true], [public_, false]] as const) {
    for (const host of list) {
      test(`${host} is ${expected ? "private" : "public"}`, () => {
        const fact = hostFact(`http://${host}/`);
        assert(!("code" in fact));
        assertEquals(fact.private, expected);
      });
    }
  }

  const resolved: [addresses: string[], leadsTo?: string][] = [
    [["8.8.8.8"]],
    [["8.8.8.8", "127.0.0.1"], "127.0.0.1"],
    [["192.168.1.1", "8.8.8.8", "10.0.0.1"], "10.0.0.1"],
    [["::1"], "::1"],
    [["fe80::1%eth0"], "fe80::1"],
    [["::ffff:192.168.0.1"], "192.168.0.1"],
    [["2606:4700::1"]],
    [["not an address:"], "not an address:"],
  ];
  for (const [addresses, leadsTo] of resolved) {
    test(`a name that resolves to ${addresses.join(", ")}`, () => {
      assertEquals(hostFact("https://x.test/", addresses), {
        written: "https://x.test/",
        host: "x.test",
        private: leadsTo !== undefined,
        ...(leadsTo === undefined ? {} : { leadsTo }),
      });
    });
  }
});

describe("hostFact() refuses", () => {
  for (
    const url of [
      "",
      "docs.example.com/a",
      "file:///etc/passwd",
      "data:text/plain,hi",
      "ftp://a.test/",
      "https://",
      "http://[::1",
      "javascript:x",
      "https://a b/",
      `https://a.test/${"a".repeat(16 * 1024)}`,
    ]
  ) {
    test(JSON.stringify(url.slice(0, 40)), () => {
      const fact = hostFact(url);
      assertEquals("code" in fact && fact.code, "bad_url");
    });
  }
});
