import { assertEquals } from "@std/assert";
import { describe, test } from "bun:test";
import { hostMatches } from "../../src/core/rule.ts";
import { parseHostPattern } from "../../src/load/host_pattern.ts";
import { hostFact } from "../../src/tools/host_fact.ts";

describe("host patterns and the hosts of URLs have one form", () => {
  const rows: readonly (readonly [pattern: string, url: string, matches: boolean])[] = [
    ["docs.example.com", "https://DOCS.Example.COM./a", true],
    ["Docs.Example.com.", "https://docs.example.com/", true],
    ["example.com", "https://www.example.com/", false],
    ["*.evil.test", "https://x.y.evil.test/", true],
    ["*.evil.test", "https://evil.test/", false],
    ["*.evil.test", "https://notevil.test/", false],
    ["evil.test", "https://ｅvil.test/x", true],
    ["bücher.example", "https://xn--bcher-kva.example/", true],
    ["169.254.169.254", "http://2852039166/", true],
    ["2852039166", "http://169.254.169.254/", true],
    ["169.254.169.254", "http://[::ffff:169.254.169.254]/", true],
    ["::ffff:169.254.169.254", "http://169.254.169.254/", true],
    ["[::1]", "http://[0:0:0:0:0:0:0:1]/", true],
    ["::1", "http://[::1]:8080/", true],
    ["2001:DB8::0:1", "http://[2001:db8::1]/", true],
    ["*", "https://anything.test/", true],
    ["@private", "http://127.1/", true],
    ["@private", "http://172.32.0.1/", false],
  ];
  for (const [pattern, url, expected] of rows) {
    test(`\`${pattern}\` and ${url}`, () => {
      const parsed = parseHostPattern(pattern);
      const fact = hostFact(url);
      assertEquals([!("error" in parsed), !("code" in fact)], [true, true]);
      if ("error" in parsed || "code" in fact) return;
      assertEquals(hostMatches(parsed, fact), expected);
    });
  }
});

describe("parseHostPattern() refuses", () => {
  const rows: readonly (readonly [pattern: string, error: string])[] = [
    ["https://example.com", "a host pattern names the host only, without `https://`; write `example.com`"],
    ["example.com/path", "a host pattern names the host only, without a path or a user"],
    ["u@example.com", "a host pattern names the host only, without a path or a user"],
    ["example.com:8080", "it is no host name or address"],
    ["[::1", "it is no host name or address"],
    ["", "it is no host name or address"],
    ["999.1.1.1", "it is no host name or address"],
    ["a.*.b", "`*` stands alone or at the start, as in `*.example.com`"],
    ["*example.com", "`*` stands alone or at the start, as in `*.example.com`"],
    ["*.10.0.0.1", "an address has no subdomains"],
  ];
  for (const [pattern, error] of rows) {
    test(`\`${pattern}\``, () => assertEquals(parseHostPattern(pattern), { error }));
  }
});
