// Secrets leave a text before it is recorded: the log, the model, the terminal and HTTP see the same redacted text.
import { cutMarks, type Pattern } from "./text.ts";

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
  { kind: "vault-token", marks: ["hvs.", "hvb."], source: "\\bhv[sb]\\.[A-Za-z0-9_-]{24,}" },
  {
    kind: "aws-secret-key",
    marks: ["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey"],
    source: "(?i)secret_?access_?key[\"']?\\s*[:=]\\s*[\"']?[A-Za-z0-9/+]{40}",
  },
  { kind: "azure-key", marks: ["AccountKey="], source: "AccountKey=[A-Za-z0-9+/]{60,}={0,2}" },
  { kind: "atlassian-token", marks: ["ATATT3"], source: "ATATT3[A-Za-z0-9_=-]{60,}" },
  { kind: "age-key", marks: ["AGE-SECRET-KEY-1"], source: "AGE-SECRET-KEY-1[A-Z0-9]{40,}" },
  { kind: "grafana-token", marks: ["glsa_", "glc_"], source: "\\bgl(?:sa|c)_[A-Za-z0-9+/=_]{30,}" },
  { kind: "databricks-token", marks: ["dapi"], source: "\\bdapi[a-f0-9]{32}" },
  { kind: "shopify-token", marks: ["shp"], source: "\\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}" },
  { kind: "telegram-token", marks: [":AA"], source: "\\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}" },
  { kind: "postman-key", marks: ["PMAK-"], source: "PMAK-[a-f0-9]{24}-[a-f0-9]{34}" },
  { kind: "linear-key", marks: ["lin_api_"], source: "lin_api_[A-Za-z0-9]{40}" },
  { kind: "groq-key", marks: ["gsk_"], source: "\\bgsk_[A-Za-z0-9]{40,}" },
  {
    kind: "vercel-token",
    marks: ["vcp_", "vci_", "vca_", "vcr_", "vck_"],
    source: "\\bvc[piark]_[A-Za-z0-9]{24,}",
  },
  { kind: "figma-token", marks: ["figd_"], source: "\\bfigd_[A-Za-z0-9_-]{30,}" },
  { kind: "notion-token", marks: ["ntn_"], source: "\\bntn_[A-Za-z0-9]{40,}" },
  { kind: "1password-token", marks: ["ops_eyJ"], source: "\\bops_eyJ[A-Za-z0-9+/=_-]{100,}" },
  { kind: "tailscale-key", marks: ["tskey-"], source: "\\btskey-[a-z]+-[A-Za-z0-9-]{16,}" },
  { kind: "pulumi-token", marks: ["pul-"], source: "\\bpul-[a-f0-9]{40}" },
  { kind: "npm-token", marks: ["_authToken"], source: "_authToken\\s*=\\s*[A-Za-z0-9_+/=-]{16,}" },
  {
    kind: "authorization",
    marks: ["uthorization", "UTHORIZATION"],
    source: "(?i)authorization[\"']?\\s*[:=]\\s*[\"']?(?:bearer|basic|token)\\s+[A-Za-z0-9+/=._~-]{12,}",
  },
  {
    kind: "netrc-password",
    marks: ["password"],
    source: "\\b(?:machine\\s+\\S+|default)\\s+login\\s+\\S+\\s+password\\s+\\S+",
  },
  {
    kind: "jwt",
    marks: [".eyJ"],
    source: "\\beyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}",
  },
  {
    kind: "private-key",
    marks: ["PRIVATE KEY"],
    source:
      "-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\\s\\S]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\\z)",
  },
  { kind: "url-password", marks: ["://"], source: "\\b[a-z][a-z0-9+.-]*://[^\\s/:@]+:[^\\s/@]{3,}@" },
];

/**
 * Also makes the text well formed: half a surrogate pair is no text that every reader of the log could take. Where a text was
 * cut (core/text.ts), what is left of a secret on either side is taken out as well, as far as it can be told.
 */
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
  return redactCuts(redactor, result);
}

/** Fewer characters of a known secret say nothing of it, and stand by chance in other texts. */
const tellingPart = 4;

function redactCuts(redactor: Redactor, text: string): string {
  const parts = text.split(cutMarks);
  if (parts.length === 1) return text;
  // Every second part is a mark.
  return parts.map((part, i) => {
    if (i % 2 === 1) return part;
    const ended = i + 1 < parts.length ? redactBeforeCut(redactor, part) : part;
    return i > 0 ? redactAfterCut(redactor, ended) : ended;
  }).join("");
}

function redactBeforeCut(redactor: Redactor, text: string): string {
  for (const { value, as } of redactor.values) {
    const length = overlap(text, value);
    if (length >= tellingPart) return text.slice(0, text.length - length) + as;
  }
  // A token that began before the cut and is longer than what the cut took away of it.
  const run = runStart(text);
  for (const { kind, marks } of redactor.shapes) {
    const at = Math.max(...marks.filter((m) => tokenMark.test(m)).map((mark) => text.lastIndexOf(mark)));
    if (at >= run && text.length - at > shortestToken) {
      return `${text.slice(0, run)}${placeholder(kind)}`;
    }
  }
  return text;
}

function redactAfterCut(redactor: Redactor, text: string): string {
  for (const { value, as } of redactor.values) {
    const length = overlap(value, text);
    if (length >= tellingPart) return as + text.slice(length);
  }
  return text;
}

const tokenMark = /^[\w.-]{4,}$/;
const shortestToken = 16;

/** How many characters at the end of `left` are the beginning of `right`. */
function overlap(left: string, right: string): number {
  for (let length = Math.min(left.length, right.length); length > 0; length--) {
    if (left.endsWith(right.slice(0, length))) return length;
  }
  return 0;
}

function runStart(text: string): number {
  let start = text.length;
  while (start > 0 && !/\s/.test(text.charAt(start - 1))) start--;
  return start;
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
 * something that is secret as a whole. Held back are the last unbroken run of characters, a private key from its first line
 * on, what may become a value that is known, and, where the policy has patterns, the last line. A caller that cannot wait for
 * ever takes more; then what it took is redacted as if it were whole.
 */
export function settledLength(redactor: Pick<Redactor, "values" | "patterns">, text: string): number {
  const key = text.lastIndexOf("-----BEGIN ");
  const end = key < 0 ? null : /-----END [A-Z ]*-----/.exec(text.slice(key));
  if (key >= 0 && end === null) return key;
  const keyEnd = end === null ? 0 : key + end.index + end[0].length;
  let settled = tokenStart(text);
  if (redactor.patterns.length > 0) settled = Math.min(settled, text.lastIndexOf("\n") + 1);
  for (const { value } of redactor.values) {
    // Of other values, what is there of one is within the last run.
    if (beyondToken.test(value)) settled = Math.min(settled, text.length - overlap(text, value));
  }
  return Math.max(keyEnd, settled);
}

const beyondToken = /[^\x21-\x7e]/;

// The shapes of tokens are of ASCII alone: text of a script that puts no blanks between its words goes on, unless it may be
// an address, whose password is of any characters.
function tokenStart(text: string): number {
  const run = runStart(text);
  if (text.indexOf("://", run) >= 0) return run;
  let start = text.length;
  while (start > run && !beyondToken.test(text.charAt(start - 1))) start--;
  return start;
}

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
