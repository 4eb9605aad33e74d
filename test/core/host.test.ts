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
    ["2001:db8::1", "2001:db8::1", true, true],
    ["2606:4700::1111", "2606:4700::1111", true, false],
    ["10.1.2.3", "10.1.2.3", true, true],
    ["10.1.2", "10.1.2", false, false],
    ["1.2.3.4.5", "1.2.3.4.5", false, false],
    ["1234.2.3.4", "1234.2.3.4", false, false],
    ["a1.2.3.4", "a1.2.3.4", false, false],
    ["1.2.3.4a", "1.2.3.4a", false, false],
    ["example.com..", "example.com", false, false],
    ["x[1]y", "x[1]y", false, false],
    ["::FFFF:1.2.3.4", "1.2.3.4", true, false],
    ["a.localhost", "a.localhost", false, true],
    ["localhost.localdomain", "localhost.localdomain", false, true],
    ["mylocalhost", "mylocalhost", false, false],
    ["localhost.example.com", "localhost.example.com", false, false],
    ["ip6-localhost", "ip6-localhost", false, true],
    ["ip6-loopback", "ip6-loopback", false, true],
    ["an-ip6-loopback", "an-ip6-loopback", false, false],
    ["ip6-localhosts", "ip6-localhosts", false, false],
    ["an-ip6-localhost", "an-ip6-localhost", false, false],
    ["ip6-loopbacks", "ip6-loopbacks", false, false],
    ["", "", false, false],
  ];
  const found = rows.map(([written]) => {
    const host = canonicalHost(written);
    return [written, host, isAddress(host), isPrivateHost(host)];
  });
  assertEquals(found, rows as never);
});

test("an address that is not reachable from everywhere is private", () => {
  const private_ = [
    ..."0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 169.254.169.254 172.16.0.1 172.31.255.255"
      .split(" "),
    ..."192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9".split(
      " ",
    ),
    ..."224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255".split(" "),
    ...":: ::1 ::7f00:1 ::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8 ::8.8.8.8 100::1 64:ff9b::127.0.0.1 64:ff9b::a00:1"
      .split(" "),
    ..."64:ff9b:1::8.8.8.8 2002:7f00:1::1 2002:a00:1:: 2001::1 2001:10::1 2001:db8::1 3fff::1 5f00::1".split(
      " ",
    ),
    ..."fc00::1 fd12::1 fe80::1 fec0::1 ff02::1 ffff::1 4000::1 1::2::3".split(" "),
    // First and last of a range.
    ..."10.0.0.0 10.255.255.255 224.0.0.0 64:1::8.8.8.8 65:ff9b::8.8.8.8 64:ff9b:0:0:1::808:808 2001:1ff::1"
      .split(" "),
    // What cannot be read.
    ..."2600::1::2 2600::g 2600::12345 2600:1 2600:1:2:3:4:5:6:7::8 2600:1:2:3:4:5:6:7:8 2600::x.2.3.4".split(
      " ",
    ),
  ];
  const public_ = [
    ..."1.1.1.1 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.0.0.1 128.0.0.1 169.253.0.1 172.15.0.1"
      .split(" "),
    ..."172.32.0.1 192.0.1.1 192.167.0.1 192.169.0.1 198.17.0.1 198.20.0.1 203.0.112.1 203.0.114.1 223.0.0.1"
      .split(" "),
    ..."64:ff9b::8.8.8.8 2002:808:808:: 2001:4860:4860::8888 2a00:1450::1 3ffe::1 3fff:1000::1".split(" "),
    ..."11.0.0.0 223.255.255.255 2001:200::1 2600::1:2:3:4:5:6 2600:1:2:3:4:5:6:7 2600:1:2:3:4:5:6:: 2600::255.1.1.1"
      .split(" "),
  ];
  const is = (host: string) => isPrivateHost(canonicalHost(host));
  assertEquals([private_.filter((h) => !is(h)), public_.filter(is)], [[], []]);
});
