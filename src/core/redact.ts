// Secrets leave a text before it is recorded: the log, the model, the terminal and HTTP see the same redacted text.
import type { Pattern } from "./text.ts";

export type Redactor = {
  /** Exact texts, longest first, and what stands in their place. */
  readonly values: readonly { readonly value: string; readonly as: string }[];
  readonly shapes: readonly SecretShape[];
  readonly patterns: readonly Pattern[];
};
export type SecretShape = {
  readonly kind: string;
  /** Texts of which every match holds one: without any of them the pattern need not be tried. */
  readonly marks: readonly string[];
  readonly pattern: Pattern;
};

/** How a placeholder begins; a file write that holds one is refused, since it would destroy what it stands for. */
export const placeholderMark = "[redacted:";

export function placeholder(kind: string): string {
  return `${placeholderMark}${kind}]`;
}

/** Shapes of well-known credentials, in RE2 syntax. */
export const secretShapes: readonly {
  readonly kind: string;
  readonly marks: readonly string[];
  readonly source: string;
}[] = [
  { kind: "anthropic-key", marks: ["sk-ant-"], source: "sk-ant-[A-Za-z0-9_-]{16,}" },
  { kind: "openai-key", marks: ["sk-"], source: "\\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}" },
  {
    kind: "github-token",
    marks: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
    source: "gh[pousr]_[A-Za-z0-9]{36,}",
  },
  { kind: "github-token", marks: ["github_pat_"], source: "github_pat_[A-Za-z0-9_]{50,}" },
  {
    kind: "gitlab-token",
    marks: ["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"],
    source: "gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,}",
  },
  { kind: "slack-token", marks: ["xox"], source: "xox[abeoprs]-[A-Za-z0-9-]{10,}" },
  { kind: "slack-token", marks: ["xapp-"], source: "xapp-[0-9]-[A-Za-z0-9-]{10,}" },
  {
    kind: "slack-webhook",
    marks: ["hooks.slack.com"],
    source: "hooks\\.slack\\.com/services/[A-Za-z0-9/]{20,}",
  },
  { kind: "aws-key-id", marks: ["AKIA", "ASIA"], source: "\\bA(?:KI|SI)A[A-Z0-9]{16}\\b" },
  { kind: "google-key", marks: ["AIza"], source: "AIza[A-Za-z0-9_-]{35}" },
  { kind: "google-token", marks: ["ya29."], source: "ya29\\.[A-Za-z0-9_-]{20,}" },
  { kind: "npm-token", marks: ["npm_"], source: "npm_[A-Za-z0-9]{36}" },
  { kind: "pypi-token", marks: ["pypi-"], source: "pypi-[A-Za-z0-9_-]{50,}" },
  { kind: "stripe-key", marks: ["k_live_", "k_test_"], source: "\\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}" },
  { kind: "sendgrid-key", marks: ["SG."], source: "\\bSG\\.[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]{16,}" },
  { kind: "huggingface-token", marks: ["hf_"], source: "\\bhf_[A-Za-z0-9]{30,}" },
  { kind: "digitalocean-token", marks: ["_v1_"], source: "do[opr]_v1_[a-f0-9]{64}" },
  { kind: "docker-token", marks: ["dckr_pat_"], source: "dckr_pat_[A-Za-z0-9_-]{20,}" },
  { kind: "vault-token", marks: ["hvs."], source: "\\bhvs\\.[A-Za-z0-9_-]{24,}" },
  {
    kind: "jwt",
    marks: [".eyJ"],
    source: "\\beyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}",
  },
  {
    kind: "private-key",
    marks: ["PRIVATE KEY-----"],
    source: "-----BEGIN [A-Z ]*PRIVATE KEY-----[\\s\\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\\z)",
  },
  { kind: "url-password", marks: ["://"], source: "\\b[a-z][a-z0-9+.-]*://[^\\s/:@]+:[^\\s/@]{3,}@" },
];

/** Also makes the text well formed: half a surrogate pair is no text that every reader of the log could take. */
export function redactText(redactor: Redactor, text: string): string {
  let result = text.isWellFormed() ? text : text.toWellFormed();
  for (const { value, as } of redactor.values) {
    if (result.includes(value)) result = result.replaceAll(value, () => as);
  }
  for (const { kind, marks, pattern } of redactor.shapes) {
    if (marks.some((mark) => result.includes(mark))) {
      result = replacePattern(result, pattern, placeholder(kind));
    }
  }
  for (const pattern of redactor.patterns) result = replacePattern(result, pattern, placeholder("policy"));
  return result;
}

function replacePattern(text: string, pattern: Pattern, as: string): string {
  let rest = text;
  let done = "";
  for (;;) {
    const span = pattern.find(rest);
    if (span === undefined || span[1] === span[0]) return done + rest;
    done += rest.slice(0, span[0]) + as;
    rest = rest.slice(span[1]);
  }
}

/**
 * How much of a text that is still growing can be redacted and shown: what is held back may be the beginning of
 * something that is secret as a whole. The last unbroken run of characters is held back, and a private key from its
 * first line on.
 */
export function settledLength(text: string): number {
  const key = text.lastIndexOf("-----BEGIN ");
  const end = key < 0 ? null : /-----END [A-Z ]*-----/.exec(text.slice(key));
  if (key >= 0 && end === null) return key;
  const keyEnd = end === null ? 0 : key + end.index + end[0].length;
  const run = /\S*$/.exec(text)?.[0].length ?? 0;
  return Math.max(keyEnd, text.length - Math.min(run, longestToken));
}
const longestToken = 1024;

/** Redacts every string of a JSON-like value, names of members too. An `opaque` block goes back to its provider verbatim and is left alone. */
export function redactValue<T>(redactor: Redactor, value: T): T {
  if (typeof value === "string") return redactText(redactor, value) as T;
  if (Array.isArray(value)) return value.map((item) => redactValue(redactor, item)) as T;
  if (typeof value !== "object" || value === null) return value;
  if ((value as { type?: unknown }).type === "opaque") return value;
  return Object.fromEntries(
    Object.entries(value).map(([k, v]) => [redactText(redactor, k), redactValue(redactor, v)]),
  ) as T;
}
