import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { canonicalHost, isAddress, isPrivateHost } from "../../src/core/host.ts";

test("hosts have one form, which says whether they are addresses and whether they are private", () => {
  const rows: readonly (readonly [written: string, host: string, address: boolean, private_: boolean])[] = [
    ["Example.COM.", "example.com", false, false],
    ["localhost", "localhost", false, true],
    ["[::1]", "::1", true, true],
    ["fe80::1%eth0", "fe80::1", true, true],
    ["[::ffff:7f00:1]", "127.0.0.1", true, true],
    ["::ffff:8.8.8.8", "8.8.8.8", true, false],
    ["0:0:0:0:0:ffff:808:808", "8.8.8.8", true, false],
    ["2001:db8::1", "2001:db8::1", true, false],
    ["10.1.2.3", "10.1.2.3", true, true],
    ["", "", false, false],
  ];
  const found = rows.map(([written]) => {
    const host = canonicalHost(written);
    return [written, host, isAddress(host), isPrivateHost(host)];
  });
  assertEquals(found, rows as never);
});
