// What a server sent → text that a model can read: its type, its character set, and HTML without the tags.
import { plural } from "../core/plural.ts";
import { binaryKind } from "./file_text.ts";
import { htmlText } from "./html_text.ts";

export type Sent = {
  /** The `Content-Type` header; may be empty. */
  readonly contentType: string;
  readonly body: Uint8Array<ArrayBuffer>;
  /** The body is only the beginning of what there is. */
  readonly cut: boolean;
  /** Where it comes from; links are made absolute against it. */
  readonly url: string;
};

export type PageText =
  | {
    readonly ok: true;
    /** In lower case, without parameters. */
    readonly type: string;
    /** Of an HTML page; else empty. */
    readonly title: string;
    readonly text: string;
    readonly notes: readonly string[];
  }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** Text, HTML, JSON, XML and their kin; everything else is refused with its type and size. */
export function pageText(sent: Sent): PageText {
  const declared = typeOf(sent.contentType);
  const encoding = encodingOf(sent, declared);
  const kind = encoding.wide ? undefined : binaryKind(sent.body);
  const type = declared === "" ? guessedType(sent.body) : declared;
  if (!isTextual(type) || kind !== undefined) {
    const size = `${sent.cut ? "more than " : ""}${plural(sent.body.length, "byte")}`;
    return {
      ok: false,
      code: "not_text",
      message: `it is no text: ${type}${
        kind === undefined ? "" : ` (${kind})`
      }, ${size}; expected text, HTML, JSON or XML`,
    };
  }
  const { text, note } = decode(sent, encoding.label);
  const notes = note === undefined ? [] : [note];
  if (type !== "text/html" && type !== "application/xhtml+xml") {
    return { ok: true, type, title: "", text: clean(text), notes };
  }
  const page = htmlText(text, sent.url);
  return { ok: true, type, title: clean(page.title), text: clean(page.text), notes };
}

function typeOf(header: string): string {
  return (header.split(";")[0] ?? "").trim().toLowerCase();
}

function isTextual(type: string): boolean {
  return type.startsWith("text/") || /^[^/]+\/(?:[^/]+\+)?(?:json|xml|yaml)$/.test(type) ||
    ["application/javascript", "application/x-javascript", "application/x-ndjson", "application/x-yaml"]
      .includes(
        type,
      );
}

function guessedType(body: Uint8Array<ArrayBuffer>): string {
  return /^\s*<(?:!doctype\s+html|html|head|body)\b/i.test(latin1(body, 512)) ? "text/html" : "text/plain";
}

type Encoding = { readonly label: string | undefined; readonly wide: boolean };

// A byte order mark knows best, then the header, then what the text says of itself.
function encodingOf({ body, contentType }: Sent, type: string): Encoding {
  if (body[0] === 0xff && body[1] === 0xfe) return { label: "utf-16le", wide: true };
  if (body[0] === 0xfe && body[1] === 0xff) return { label: "utf-16be", wide: true };
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return { label: "utf-8", wide: false };
  const named = /;\s*charset\s*=\s*["']?([^\s;"']+)/i.exec(contentType)?.[1];
  if (named !== undefined) return { label: named, wide: /^utf-?16/i.test(named) };
  if (!/html|xml/.test(type) && type !== "") return { label: undefined, wide: false };
  const start = latin1(body, 1024);
  const inside = /<meta\s[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)/i.exec(start)?.[1] ??
    /^<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)/i.exec(start)?.[1];
  // A text in which this could be read byte by byte has no wide characters.
  return { label: inside !== undefined && /^utf-?16/i.test(inside) ? "utf-8" : inside, wide: false };
}

function latin1(body: Uint8Array<ArrayBuffer>, length: number): string {
  return new TextDecoder("windows-1252").decode(body.subarray(0, length));
}

function decode(sent: Sent, label: string | undefined): { readonly text: string; readonly note?: string } {
  // With `stream`, a character that the cut has split is left out.
  const read = (name: string, fatal: boolean) =>
    new TextDecoder(name, { fatal }).decode(sent.body, { stream: sent.cut });
  if (label !== undefined) {
    try {
      return { text: read(label, false) };
    } catch {
      const name = label.slice(0, 40);
      return {
        text: read("utf-8", false),
        note: `the character set \`${name}\` is not known; read as UTF-8`,
      };
    }
  }
  try {
    return { text: read("utf-8", true) };
  } catch {
    return { text: read("windows-1252", false), note: "no character set is named; read as windows-1252" };
  }
}

// Control characters do nothing for a reader, and letters of the tag block are words that only a machine sees.
const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufeff]|\udb40[\udc00-\udc7f]/g;

function clean(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(unseen, "");
}
