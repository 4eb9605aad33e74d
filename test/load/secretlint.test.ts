// Another program's opinion of what is a secret: what secretlint finds in a text, it finds no more once the text is redacted.
import { creator } from "@secretlint/secretlint-rule-preset-recommend";
import { lintSource } from "@secretlint/core";
import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { redactText } from "../../src/core/redact.ts";
import { makeRedactor } from "../../src/load/redactor.ts";

const redactor = makeRedactor({ redact: { builtin: true, env: [], patterns: [] }, env: {}, secrets: [] });
const letters =
  "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAbCdEfGhIjKlMnOpQrStUvWxYz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const r = (n: number) => letters.repeat(2).slice(0, n);

// By rule; made up here.
const texts: readonly (readonly [rule: string, text: string])[] = [
  ["anthropic", `sk-ant-api03-${r(93)}AA`],
  ["aws", `AWS_SECRET_ACCESS_KEY = ${r(40)}`],
  ["basicauth", "https://user:pa55word@example.com/x"],
  ["database-connection-string", "postgres://u:s3cretpw@db.example.com:5432/x"],
  ["database-connection-string", "mongodb+srv://u:s3cretpw@c.example.mongodb.net/x"],
  ["databricks", `dapi${"0a1b2c3d".repeat(4)}`],
  ["docker", `dckr_pat_${r(27)}`],
  ["figma", `figd_${r(40)}`],
  ["github", `ghp_${r(36)}`],
  ["github", `github_pat_${r(22)}_${r(59)}`],
  ["gitlab", `glpat-${r(20)}`],
  ["grafana", `glsa_${r(32)}_0a1b2c3d`],
  ["groq", `gsk_${r(52)}`],
  ["hashicorp-vault", `hvs.${r(95)}`],
  ["linear", `lin_api_${r(40)}`],
  ["npm", `//registry.npmjs.org/:_authToken=npm_${r(36)}`],
  ["openai", `sk-${r(20)}T3BlbkFJ${r(20)}`],
  ["openai", `sk-proj-${r(58)}T3BlbkFJ${r(58)}`],
  ["sendgrid", `SG.${r(22)}.${r(43)}`],
  ["shopify", `shpat_${"0a1b2c3d".repeat(4)}`],
  ["slack", `xoxb-123456789012-123456789012-${r(24)}`],
  ["slack", `https://hooks.slack.com/services/T12345678/B12345678/${r(24)}`],
  ["vercel", `vcp_${r(24)}`],
];

async function findings(content: string): Promise<readonly string[]> {
  const { messages } = await lintSource({
    source: { content, filePath: "/x/a.txt", ext: ".txt", contentType: "text" },
    options: { config: { rules: [{ id: creator.meta.id, rule: creator, options: {} }] } },
  });
  return messages.map((m) => m.ruleId.replace(/^.*secretlint-rule-/, ""));
}

for (const [rule, text] of texts) {
  test(`secretlint finds ${rule} in ${text.slice(0, 12)}…, and not once it is redacted`, async () => {
    assertEquals([...new Set(await findings(text))], [rule]);
    assertEquals(await findings(redactText(redactor, `before ${text} after`)), []);
  });
}
