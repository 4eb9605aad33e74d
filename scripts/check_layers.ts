// Who may import whom: the table of ARCHITECTURE.md, checked on every import line. Prints offenders and exits 1.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import process from "node:process";

type Rule = {
  readonly own: readonly string[];
  readonly types?: readonly string[];
  readonly outside: readonly string[];
};

/** `outside`: npm packages and `node:` modules, by name or prefix. `types`: layers of which only types may be imported. */
const table: { readonly [layer: string]: Rule } = {
  core: { own: [], outside: [] },
  disk: { own: [], outside: ["node:"] },
  load: { own: ["core", "disk"], outside: ["yaml", "valibot", "re2js", "node:"] },
  agent: { own: ["core"], outside: [] },
  provider: { own: ["core", "agent", "load"], outside: ["@anthropic-ai/sdk", "valibot", "node:"] },
  shell: { own: ["core"], outside: ["unbash"] },
  sandbox: { own: ["core"], outside: ["node:", "bun:ffi"] },
  tools: {
    own: ["core", "disk", "shell", "sandbox"],
    types: ["agent"],
    outside: ["node:", "re2js", "ignore", "diff", "htmlparser2", "@cfworker/json-schema"],
  },
  mcp: { own: ["core", "sandbox"], types: ["agent"], outside: ["@modelcontextprotocol/client"] },
  store: { own: ["core", "disk", "agent"], outside: ["node:"] },
  runtime: { own: [], types: ["agent", "core"], outside: ["node:"] },
  session: {
    own: ["core", "load", "agent", "provider", "shell", "sandbox", "tools", "mcp", "store", "runtime"],
    outside: ["node:"],
  },
  server: { own: ["core", "load", "agent", "store", "runtime", "session"], outside: ["node:"] },
  http: {
    own: ["core", "disk", "load"],
    types: ["server"],
    outside: ["node:", "hono", "valibot", "@valibot/to-json-schema"],
  },
  cli: {
    own: [
      "core",
      "load",
      "agent",
      "provider",
      "tools",
      "store",
      "runtime",
      "shell",
      "sandbox",
      "mcp",
      "session",
      "server",
      "http",
    ],
    outside: ["node:", "commander", "picocolors", "valibot"],
  },
  main: { own: ["cli", "sandbox"], outside: ["node:process"] },
};
/** In core these would be I/O, time or chance; the type checker alone does not catch them. */
const impure =
  /\b(?:Date|Math\.random|process|console|fetch|globalThis|setTimeout|setInterval|performance|crypto)\b(?!\s*:)|\bawait\b|\basync\b/;
const importLine =
  /(?:^|\n)\s*(?:import|export)\s+(type\s)?[^;"']*?from\s+["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/g;

const root = normalize(join(dirname(new URL(import.meta.url).pathname), ".."));
const src = join(root, "src");
const offences: string[] = [];
const edges = new Map<string, Set<string>>();

for (const file of sourceFiles(src)) {
  const text = readFileSync(file, "utf8");
  const layer = layerOf(file);
  const rule = table[layer];
  if (rule === undefined) {
    offences.push(`${show(file)}: the folder is not in the layer table`);
    continue;
  }
  for (const match of text.matchAll(importLine)) {
    checkImport(file, layer, rule, match[2] ?? match[3] ?? "", match[1] !== undefined, match[0]);
  }
  if (layer === "core") checkPurity(file, text);
}
for (const [from, targets] of edges) {
  for (const to of targets) {
    if (from < to && edges.get(to)?.has(from)) offences.push(`src/${from} and src/${to} import each other`);
  }
}
for (const offence of offences) console.error(offence);
console.log(offences.length === 0 ? "layers: ok" : `layers: ${offences.length} offences`);
process.exitCode = offences.length === 0 ? 0 : 1;

function checkImport(
  file: string,
  layer: string,
  rule: Rule,
  target: string,
  typeOnly: boolean,
  statement: string,
): void {
  if (!target.startsWith(".")) {
    const allowed = rule.outside.some((o) =>
      target === o || target.startsWith(`${o}/`) || (o === "node:" && target.startsWith("node:"))
    );
    if (!allowed) offences.push(`${show(file)}: ${layer} may not import \`${target}\``);
    return;
  }
  const path = normalize(join(dirname(file), target));
  if (!path.startsWith(src)) {
    if (!path.endsWith("package.json")) {
      offences.push(`${show(file)}: imports \`${target}\` from outside src`);
    }
    return;
  }
  const other = layerOf(path);
  if (other === layer) return;
  if (!typeOnly && !isInlineTypeOnly(statement)) {
    if (!edges.has(layer)) edges.set(layer, new Set());
    edges.get(layer)?.add(other);
  }
  if (rule.own.includes(other)) return;
  if (rule.types?.includes(other) && (typeOnly || isInlineTypeOnly(statement))) return;
  offences.push(`${show(file)}: ${layer} may not import ${other} (\`${target}\`)`);
}

function isInlineTypeOnly(statement: string): boolean {
  const names = /\{([^}]*)\}/.exec(statement)?.[1];
  return names !== undefined &&
    names.split(",").every((n) => n.trim() === "" || n.trim().startsWith("type "));
}

function checkPurity(file: string, text: string): void {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/.*$/gm, "").replace(
    /"(?:[^"\\\n]|\\.)*"|`[^`]*`/g,
    '""',
  );
  code.split("\n").forEach((line, index) => {
    const found = impure.exec(line);
    if (found !== null) {
      offences.push(`${show(file)}: core is pure, found \`${found[0]}\` (near code line ${index + 1})`);
    }
  });
}

function layerOf(file: string): string {
  const [first = ""] = relative(src, file).split("/");
  return first.endsWith(".ts") ? first.replace(/\.ts$/, "") : first;
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sourceFiles(path);
    return /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

function show(file: string): string {
  return relative(root, file);
}
