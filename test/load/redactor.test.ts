import { describe, test } from "bun:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { Buffer } from "node:buffer";
import {
  type Redactor,
  redactText,
  redactValue,
  secretShapes,
  settledLength,
} from "../../src/core/redact.ts";
import { capText } from "../../src/core/text.ts";
import { compilePattern } from "../../src/load/pattern.ts";
import { makeRedactor } from "../../src/load/redactor.ts";

const none = { builtin: true, env: [], patterns: [] };
const plain: Redactor = makeRedactor({ redact: none, env: {}, secrets: [] });
const a = (n: number) => "aB3".repeat(Math.ceil(n / 3)).slice(0, n);

// Made up here, in the shapes that the makers of these keys document; written so that no scanner takes them for real.
const samples: readonly (readonly [kind: string, text: string])[] = [
  ["anthropic-key", `sk-ant-api03-${a(40)}`],
  ["openai-key", `sk-proj-${a(48)}`],
  ["github-token", `ghp_${a(36)}`],
  ["github-token", `github_pat_${a(60)}`],
  ["gitlab-token", `glpat-${a(20)}`],
  ["slack-token", `xoxb-${"1".repeat(12)}-${a(12)}`],
  ["slack-token", `xapp-1-${a(20)}`],
  ["slack-webhook", `hooks.slack.com/services/T0/B0/${a(24)}`],
  ["aws-key-id", `AKIA${"A1".repeat(8)}`],
  ["google-key", `AIza${a(35)}`],
  ["google-token", `ya29.${a(30)}`],
  ["npm-token", `npm_${a(36)}`],
  ["pypi-token", `pypi-${a(60)}`],
  ["stripe-key", `sk_live_${a(24)}`],
  ["sendgrid-key", `SG.${a(22)}.${a(43)}`],
  ["huggingface-token", `hf_${a(34)}`],
  ["digitalocean-token", `dop_v1_${"0a".repeat(32)}`],
  ["docker-token", `dckr_pat_${a(27)}`],
  ["vault-token", `hvs.${a(30)}`],
  ["aws-secret-key", `SecretAccessKey: "${a(40)}`],
  ["azure-key", `AccountKey=${a(86)}==`],
  ["atlassian-token", `ATATT3${a(80)}`],
  ["age-key", `AGE-SECRET-KEY-1${"Q5Z".repeat(20)}`],
  ["grafana-token", `glsa_${a(32)}_0a1b2c3d`],
  ["databricks-token", `dapi${"0a".repeat(16)}`],
  ["shopify-token", `shpat_${"0a".repeat(16)}`],
  ["telegram-token", `123456789:AA${a(33)}`],
  ["postman-key", `PMAK-${"0a".repeat(12)}-${"0a".repeat(17)}`],
  ["linear-key", `lin_api_${a(40)}`],
  ["groq-key", `gsk_${a(52)}`],
  ["vercel-token", `vcp_${a(24)}`],
  ["figma-token", `figd_${a(40)}`],
  ["notion-token", `ntn_${a(46)}`],
  ["1password-token", `ops_eyJ${a(260)}`],
  ["tailscale-key", `tskey-auth-${a(12)}-${a(32)}`],
  ["pulumi-token", `pul-${"0a".repeat(20)}`],
  ["npm-token", `_authToken = 0a1b2c3d-${a(28)}`],
  ["authorization", `Authorization: Bearer ${a(30)}`],
  ["authorization", `AUTHORIZATION=token ${a(30)}`],
  ["netrc-password", `machine example.com login me password ${a(24)}`],
  ["jwt", `eyJ${a(20)}.eyJ${a(20)}.${a(20)}`],
  ["private-key", `-----BEGIN RSA PRIVATE KEY-----\n${a(64)}\n-----END RSA PRIVATE KEY-----`],
  ["private-key", `-----BEGIN PGP PRIVATE KEY BLOCK-----\n${a(64)}\n-----END PGP PRIVATE KEY BLOCK-----`],
  ["private-key", `-----BEGIN PRIVATE KEY-----\n${a(64)}\nand no end`],
];

describe("redaction", () => {
  for (const [kind, secret] of samples) {
    test(`takes out: ${kind} ${secret.slice(0, 8)}`, () => {
      const cut = secret.endsWith("no end") ? "" : " after";
      assertEquals(redactText(plain, `before ${secret}${cut}`), `before [redacted:${kind}]${cut}`);
      assertEquals(redactText(plain, `${secret}\n${secret}`).includes(a(20)), false);
    });
  }

  test("has a sample for every shape, and every sample holds one of the marks of its shape", () => {
    const without = secretShapes.filter(({ kind, marks }) =>
      kind !== "url-password" &&
      !samples.some(([k, text]) => k === kind && marks.some((m) => text.includes(m)))
    );
    assertEquals(without, []);
  });

  const kept = [
    "sk-learn and task-runner-with-a-very-long-name-of-many-words",
    "https://example.com/a:b@c",
    "git@github.com:owner/name.git",
    "the AKIA prefix",
    "hf_ and npm_ and SG. and xox",
    "npm_config_registry",
    "authorization: none needed, a token will do",
    "the password of machine 7",
    "secret_access_key: see the vault",
    "dapi, shp, :AA and AccountKey=",
  ];
  for (const text of kept) test(`leaves alone: ${text}`, () => assertEquals(redactText(plain, text), text));

  test("takes the password out of a URL", () => {
    assertEquals(
      redactText(plain, "git clone https://me:hunter22@host/x"),
      "git clone [redacted:url-password]host/x",
    );
  });

  test("takes out values of variables that look secret, of those that are named, and keys that were read", () => {
    const redactor = makeRedactor({
      redact: { ...none, env: ["PLAIN"] },
      env: { MY_API_KEY: "value-of-key", PLAIN: "value-of-plain", HOME: "/home/somebody", TOKEN: "short" },
      secrets: ["value-of-read-key"],
    });
    assertEquals(
      redactText(redactor, "value-of-key value-of-plain value-of-read-key /home/somebody short"),
      "[redacted:MY_API_KEY] [redacted:PLAIN] [redacted:key] /home/somebody short",
    );
  });

  test("the name of a variable says whether its value is secret", () => {
    const names = ["APIKEY_PROD", "MY_PASSPHRASE", "SIGNING_KEYS", "GITHUBTOKEN", "KEYBOARD", "TOKENIZER"];
    const hidden = (name: string) =>
      redactText(makeRedactor({ redact: none, env: { [name]: "some value" }, secrets: [] }), "some value") !==
        "some value";
    assertEquals(names.map(hidden), [true, true, true, true, false, false]);
  });

  test("takes out what a pattern of the policy finds", () => {
    const patterns = [compilePattern("ticket-[0-9]+", { ignoreCase: false })];
    const redactor = makeRedactor({ redact: { ...none, patterns }, env: {}, secrets: [] });
    assertEquals(redactText(redactor, "see ticket-12, ticket-7"), "see [redacted:policy], [redacted:policy]");
  });

  test("reaches names of members", () => {
    assertEquals(redactValue(plain, { [`ghp_${a(36)}`]: 1 }), { "[redacted:github-token]": 1 });
  });

  test("makes a text well formed", () => {
    assertEquals(redactText(plain, "a\ud800b \u{1f600}"), "a\ufffdb \u{1f600}");
  });

  test("holds back what may be the beginning of a secret", () => {
    const rows: readonly (readonly [text: string, settled: string])[] = [
      ["", ""],
      ["some words and ", "some words and "],
      ["some words and ghp_a", "some words and "],
      ["one", ""],
      [`key:\n-----BEGIN PRIVATE KEY-----\nabc\n`, "key:\n"],
      [
        `-----BEGIN X KEY-----\nabc\n-----END X KEY-----\nand on `,
        `-----BEGIN X KEY-----\nabc\n-----END X KEY-----\nand on `,
      ],
      ["x".repeat(5000), ""],
      ["一二三四", "一二三四"],
      ["一二三四sk-", "一二三四"],
      ["一二 https://me:一二", "一二 "],
    ];
    for (const [text, settled] of rows) assertEquals(text.slice(0, settledLength(plain, text)), settled);
  });

  test("cut anywhere, what is settled holds no part of a secret", () => {
    const whole = `before ghp_${a(36)} and -----BEGIN PRIVATE KEY-----\n${a(64)}\n${
      a(64)
    }\n-----END PRIVATE KEY----- after`;
    for (let end = 0; end <= whole.length; end++) {
      const pieces = [whole.slice(0, end), whole.slice(end)];
      let pending = "";
      let shown = "";
      for (const piece of pieces) {
        pending += piece;
        const length = settledLength(plain, pending);
        shown += redactText(plain, pending.slice(0, length));
        pending = pending.slice(length);
      }
      shown += redactText(plain, pending);
      assertEquals(shown, "before [redacted:github-token] and [redacted:private-key] after");
    }
  });

  test("holds back what may become a value that is known, or a match of a pattern", () => {
    const patterns = [compilePattern("ticket [0-9]+", { ignoreCase: false })];
    const known = makeRedactor({
      redact: none,
      env: {},
      secrets: ["correct horse battery", "短い秘密の言葉です"],
    });
    const rows: readonly (readonly [redactor: Redactor, text: string, settled: string])[] = [
      [known, "it is correct horse ", "it is "],
      [known, "it is correct horses ", "it is correct horses "],
      [known, "それは短い秘密", "それは"],
      [makeRedactor({ redact: { ...none, patterns }, env: {}, secrets: [] }), "one\ntwo ticket ", "one\n"],
    ];
    for (const [redactor, text, settled] of rows) {
      assertEquals(text.slice(0, settledLength(redactor, text)), settled);
    }
  });

  test("takes out values that are known in base64, hexadecimal, of a URL and of JSON as well", () => {
    const value = 'pass "word" ÿ/?>';
    const redactor = makeRedactor({ redact: none, env: { MY_TOKEN: value }, secrets: [] });
    const bytes = Buffer.from(value);
    const written = [
      bytes.toString("hex"),
      bytes.toString("hex").toUpperCase(),
      JSON.stringify(value).slice(1, -1),
      encodeURIComponent(value),
    ];
    for (const text of written) assertEquals(redactText(redactor, `<${text}>`), "<[redacted:MY_TOKEN]>");
    for (const encoding of ["base64", "base64url"] as const) {
      for (const before of ["", "u", "us", "user:"]) {
        const text = redactText(redactor, Buffer.from(`${before}${value}!`).toString(encoding));
        assertStringIncludes(text, "[redacted:MY_TOKEN]");
        // The characters around it hold two letters of it at most.
        assertEquals(text.replace("[redacted:MY_TOKEN]", "").length <= before.length * 2 + 6, true, text);
      }
    }
  });

  const canary = "correct horse battery staple";
  const long = `sk-ant-${a(3000)}`;
  const jwt = `eyJ${a(40)}.eyJ${"Zx9".repeat(1300)}.${a(40)}`;
  const cut:
    readonly (readonly [name: string, secret: string, secrets: readonly string[], telling: string])[] = [
      ["a known value with blanks", canary, [canary], "orse"],
      ["a known value of two lines", "first line\nsecond line", ["first line\nsecond line"], "line"],
      ["a known value that is long", long, [long], long.slice(0, 12)],
      ["a token that is long", long, [], long.slice(0, 12)],
      ["a web token that is long", jwt, [], "Zx9Zx9"],
    ];
  for (const [name, secret, secrets, telling] of cut) {
    test(`leaves nothing of ${name} before a cut, wherever it is`, () => {
      const redactor = makeRedactor({ redact: none, env: {}, secrets });
      const step = Math.max(1, Math.floor(secret.length / 50));
      for (let at = 1; at < secret.length; at += step) {
        const head = `some words ${secret.slice(0, at)}`;
        const { text } = capText(head + secret.slice(at) + " more".repeat(1000) + " end", head.length * 2);
        const redacted = redactText(redactor, text);
        assertEquals(redacted.includes(telling), false, `${at}: ${redacted.slice(0, 300)}`);
        assertStringIncludes(redacted, " end");
      }
    });
  }

  test("leaves nothing of a known value with blanks behind a cut, wherever it is", () => {
    const redactor = makeRedactor({ redact: none, env: {}, secrets: [canary] });
    for (let at = 1; at < canary.length - 3; at++) {
      const tail = `${canary.slice(at)} and more`;
      const { text } = capText("some words ".repeat(1000) + canary.slice(0, at) + tail, tail.length * 2);
      assertEquals(/stap|batt|taple/.test(redactText(redactor, text)), false, redactText(redactor, text));
    }
  });

  test("reaches every text of a value, and leaves blocks that go back verbatim alone", () => {
    const secret = `ghp_${a(36)}`;
    const opaque = { type: "opaque", value: { signature: secret } };
    assertEquals(redactValue(plain, { args: { list: [secret, 1, null, true] }, opaque }), {
      args: { list: ["[redacted:github-token]", 1, null, true] },
      opaque,
    });
  });
});
