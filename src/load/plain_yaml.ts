// The few forms of YAML in which nearly every front matter is written, read by hand. A start with a thousand skills spends
// its time here: the YAML library needs fifty times as long. Whatever is not certainly one of these forms is left to it.
import { parseYaml, type YamlDocument, type YamlPath } from "./yaml.ts";

type PlainValue = string | boolean | readonly string[] | { readonly [key: string]: PlainValue };
type Line = { readonly indent: number; readonly text: string };

/**
 * Maps, lists of texts, and one-line texts, as the YAML library reads them; undefined when the text holds anything else, be
 * it right or wrong.
 */
export function parsePlainYaml(text: string, file: string): YamlDocument | undefined {
  // Tabs, comments and control characters are for the library.
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff#]/.test(text)) return undefined;
  const lines: Line[] = [];
  for (const raw of text.split("\n")) {
    const line = raw.trimEnd();
    if (line === "") continue;
    const indent = raw.length - raw.trimStart().length;
    lines.push({ indent, text: line.slice(indent) });
  }
  const reader = { lines, next: 0 };
  const value = readMap(reader, 0);
  if (value === undefined || reader.next < lines.length) return undefined;
  let parsed: YamlDocument | undefined;
  const slow = () => {
    if (parsed !== undefined) return parsed;
    const loaded = parseYaml(text, file, text.length * 3);
    if (!loaded.ok) throw new Error(`front matter read by hand is not YAML: ${file}`);
    return parsed = loaded.value;
  };
  return {
    value,
    at: (path) => slow().at(path),
    keyAt: (path) => slow().keyAt(path),
    scalar(path) {
      const found = follow(value, path);
      return typeof found === "object" || found === undefined
        ? undefined
        : { source: String(found), cut: false };
    },
  };
}

function follow(value: PlainValue, path: YamlPath): PlainValue | undefined {
  let here: PlainValue | undefined = value;
  for (const step of path) {
    if (typeof here !== "object") return undefined;
    here = (here as { readonly [key: string | number]: PlainValue })[step];
  }
  return here;
}

type Reader = { readonly lines: readonly Line[]; next: number };

const entry = /^([A-Za-z_][A-Za-z0-9_-]*):(?: +(.+))?$/;
const reserved = /^(?:__proto__|null|Null|NULL|true|True|TRUE|false|False|FALSE)$/;

function readMap(reader: Reader, indent: number): { readonly [key: string]: PlainValue } | undefined {
  const map: { [key: string]: PlainValue } = {};
  for (let line = reader.lines[reader.next]; line?.indent === indent; line = reader.lines[reader.next]) {
    const [, key, written] = entry.exec(line.text) ?? [];
    if (key === undefined || reserved.test(key) || Object.hasOwn(map, key)) return undefined;
    reader.next++;
    const value = written === undefined ? readNested(reader, indent) : readValue(written);
    if (value === undefined) return undefined;
    map[key] = value;
  }
  // A deeper line would go on with the text before it.
  const after = reader.lines[reader.next];
  return after !== undefined && after.indent > indent ? undefined : map;
}

function readNested(reader: Reader, indent: number): PlainValue | undefined {
  const line = reader.lines[reader.next];
  if (line === undefined || line.indent < indent) return undefined;
  if (line.text.startsWith("- ")) return readList(reader, line.indent);
  return line.indent > indent ? readMap(reader, line.indent) : undefined;
}

function readList(reader: Reader, indent: number): readonly string[] | undefined {
  const items: string[] = [];
  for (let line = reader.lines[reader.next]; line?.indent === indent; line = reader.lines[reader.next]) {
    if (!line.text.startsWith("- ")) break;
    const item = readValue(line.text.slice(2).trimStart());
    if (typeof item !== "string") return undefined;
    items.push(item);
    reader.next++;
  }
  const after = reader.lines[reader.next];
  return after !== undefined && after.indent > indent ? undefined : items;
}

const plain = /^[A-Za-z\u00c0-\u024f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af](?!.*:(?: |$))/;
const release = /^\d+\.\d+\.\d+$/;
const quoted = /^(?:"([^"\\]*)"|'([^']*)')$/;
const flow = /^\[ *([A-Za-z_][\w.-]*(?: *, *[A-Za-z_][\w.-]*)*) *\]$/;

function readValue(written: string): PlainValue | undefined {
  if (written === "true" || written === "false") return written === "true";
  if (reserved.test(written)) return undefined;
  if (plain.test(written) || release.test(written)) return written;
  const text = quoted.exec(written);
  if (text !== null) return text[1] ?? text[2];
  const items = flow.exec(written)?.[1]?.split(/ *, */);
  return items === undefined || items.some((item) => reserved.test(item)) ? undefined : items;
}
