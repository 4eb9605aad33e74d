// HTML as plain text with its headings, lists and links. Reads tags one after the other and builds no tree, so that neither
// depth nor disorder of a page costs more than its length.
import { Tokenizer } from "htmlparser2";

export type HtmlText = { readonly title: string; readonly text: string };

/**
 * Headings as `# text`, list items as `- text` or `1. text`, links as `text (address)` with the address made absolute
 * against `base` (or the page's own `<base>`), cells of a row as `a | b`, images by their alternative text. Scripts,
 * styles, templates, comments and drawings are left out. Time and memory grow with the length alone.
 */
export function htmlText(html: string, base: string): HtmlText {
  const page = startPage(base);
  let tag = "";
  let attribute = "";
  let value = "";
  let attributes = new Map<string, string>();
  const tokenizer = new Tokenizer({ decodeEntities: true }, {
    ontext: (start, end) => page.write(html.slice(start, end)),
    ontextentity: (code) => page.write(String.fromCodePoint(code)),
    onopentagname(start, end) {
      tag = html.slice(start, end).toLowerCase();
      attributes = new Map();
    },
    onattribname(start, end) {
      attribute = html.slice(start, end).toLowerCase();
      value = "";
    },
    onattribdata: (start, end) => void (value += html.slice(start, end)),
    onattribentity: (code) => void (value += String.fromCodePoint(code)),
    onattribend() {
      if (wantedAttributes.has(attribute) && !attributes.has(attribute)) attributes.set(attribute, value);
    },
    onopentagend: () => page.open(tag, attributes),
    onselfclosingtag() {
      page.open(tag, attributes);
      if (page.drawing()) page.close(tag);
    },
    onclosetag: (start, end) => page.close(html.slice(start, end).toLowerCase()),
    isInForeignContext: () => page.drawing(),
    oncdata: nothing,
    oncomment: nothing,
    ondeclaration: nothing,
    onprocessinginstruction: nothing,
    onend: nothing,
  });
  tokenizer.write(html);
  tokenizer.end();
  return page.finish();
}

function nothing(): void {}

const wantedAttributes = new Set(["href", "alt", "start"]);
/** Nothing in these is text of the page. */
const skipped = new Set(["script", "style", "template", "svg", "iframe", "noembed", "noframes"]);
/** Line breaks around an element: one ends the line, two leave an empty line. */
const breaks: ReadonlyMap<string, number> = new Map([
  ...names("p h1 h2 h3 h4 h5 h6 ul ol dl table pre blockquote hr figure", 2),
  ...names("div section article header footer main nav aside body form fieldset legend details summary", 1),
  ...names("address figcaption caption tr dt dd li option hgroup center title textarea button", 1),
]);

function names(list: string, count: number): [string, number][] {
  return list.split(" ").map((name) => [name, count]);
}

type Page = {
  open(tag: string, attributes: ReadonlyMap<string, string>): void;
  close(tag: string): void;
  write(text: string): void;
  /** Whether what is read now belongs to a drawing, where other rules of syntax hold. */
  drawing(): boolean;
  finish(): HtmlText;
};

function startPage(address: string): Page {
  const out = startWriter();
  const lists = startLists();
  let base = address;
  let skip: { readonly tag: string; depth: number } | undefined;
  let title: string[] | undefined;
  let titles = "";
  let link: { readonly href: string; readonly from: number } | undefined;
  let cells = 0;
  let addresses = 0;

  const endLink = () => {
    const note = link === undefined ? "" : linkNote(link.href, base, out.since(link.from));
    addresses += note.length;
    if (addresses <= mostAddresses) out.note(note);
    link = undefined;
  };
  const endTitle = () => {
    if (title !== undefined) titles ||= title.join("").replace(/\s+/g, " ").trim();
    title = undefined;
  };
  const openInline = (tag: string, attributes: ReadonlyMap<string, string>) => {
    const href = attributes.get("href");
    if (tag === "a") {
      endLink();
      if (href !== undefined) link = { href, from: out.position() };
    } else if (tag === "base") base = href === undefined ? base : absolute(href, address) ?? base;
    else if (tag === "img" && (attributes.get("alt") ?? "").trim() !== "") {
      out.text(`[image: ${attributes.get("alt")}]`);
    } else if (tag === "br") out.newLine();
    else if ((tag === "td" || tag === "th") && cells++ > 0) out.text(" | ");
  };
  return {
    open(tag, attributes) {
      if (skip !== undefined) {
        if (skip.tag === tag) skip.depth++;
        return;
      }
      if (skipped.has(tag)) skip = { tag, depth: 1 };
      else if (tag === "title") title = [];
      const around = breaks.get(tag);
      if (around === undefined) return openInline(tag, attributes);
      out.block(lists.depth() > 0 ? 1 : around);
      if (tag === "tr") cells = 0;
      else if (tag === "pre") out.preformatted(1);
      else if (tag === "ul" || tag === "ol") out.indent(lists.begin(tag, attributes.get("start")));
      else if (tag === "li") out.mark(lists.marker(), "new");
      else if (/^h[1-6]$/.test(tag)) out.mark(`${"#".repeat(Number(tag[1]))} `, "added");
    },
    close(tag) {
      if (skip !== undefined) {
        if (skip.tag === tag && --skip.depth === 0) skip = undefined;
        return;
      }
      if (tag === "a") endLink();
      else if (tag === "title") endTitle();
      const around = breaks.get(tag);
      if (around === undefined) return;
      if (tag === "ul" || tag === "ol") out.indent(lists.end());
      out.block(lists.depth() > 0 ? 1 : around);
      if (tag === "pre") out.preformatted(-1);
      else if (tag === "li" || /^h[1-6]$/.test(tag)) out.mark("", "new");
    },
    write(text) {
      if (skip !== undefined) return;
      if (title === undefined) out.text(text);
      else title.push(text);
    },
    drawing: () => skip?.tag === "svg",
    finish() {
      endLink();
      endTitle();
      return { title: titles, text: out.finish() };
    },
  };
}

/** The lists that are open, the innermost last; each `begin` and `end` gives the new indentation. */
function startLists() {
  const open: { readonly ordered: boolean; next: number }[] = [];
  const indentation = () => "  ".repeat(Math.min(open.length, 10));
  return {
    depth: () => open.length,
    begin(tag: string, start: string | undefined): string {
      const first = Number.parseInt(start ?? "1", 10);
      open.push({ ordered: tag === "ol", next: Number.isSafeInteger(first) ? first : 1 });
      return indentation();
    },
    end(): string {
      open.pop();
      return indentation();
    },
    marker(): string {
      const list = open.at(-1);
      return list?.ordered === true ? `${list.next++}. ` : "- ";
    },
  };
}

const longestAddress = 1000;
/** Characters of all addresses together: a short link against a long base would make a long text of a short page. */
const mostAddresses = 2_000_000;

function linkNote(href: string, base: string, text: string): string {
  const shown = text.trim();
  if (shown === "" || href.trim().startsWith("#")) return "";
  const address = absolute(href, base);
  return address === undefined || address === shown ? "" : ` (${address})`;
}

// A link that a reader could not follow, or that carries data of its own, is no address.
function absolute(href: string, base: string): string | undefined {
  if (!URL.canParse(href, base)) return undefined;
  const { protocol, href: address } = new URL(href, base);
  const kept = protocol === "http:" || protocol === "https:" || protocol === "mailto:";
  return kept && address.length <= longestAddress ? address : undefined;
}

/** Text in its final form: runs of blanks are one, breaks are as many as the widest that was asked for. */
function startWriter() {
  const parts: string[] = [];
  let pendingBreaks = 0;
  let pendingSpace = false;
  let fresh = true;
  let mark = "";
  let indent = "";
  let preformatted = 0;

  // Breaks, indentation and marker come with the first text after them, so that empty elements leave no trace.
  const put = (text: string) => {
    if (pendingBreaks > 0 && parts.length > 0) {
      const ended = parts.at(-1)?.endsWith("\n") === true ? 1 : 0;
      parts.push("\n".repeat(Math.max(0, pendingBreaks - ended)));
      fresh = true;
    }
    if (fresh) parts.push(mark === "" ? indent : indent.slice(2) + mark);
    else if (mark !== "") parts.push(mark);
    else if (pendingSpace) parts.push(" ");
    pendingBreaks = 0;
    pendingSpace = false;
    fresh = false;
    mark = "";
    parts.push(text);
  };
  return {
    text(raw: string) {
      if (preformatted > 0) {
        if (raw !== "") put(raw);
        return;
      }
      const text = raw.replace(/[ \t\n\r\f\u00a0]+/g, " ");
      const from = text.startsWith(" ") ? 1 : 0;
      const end = text.length - (text.length > 1 && text.endsWith(" ") ? 1 : 0);
      if (from === 1 && pendingBreaks === 0 && !fresh) pendingSpace = true;
      if (from >= end) return;
      put(text.slice(from, end));
      pendingSpace = end < text.length;
    },
    block(count: number) {
      pendingBreaks = Math.max(pendingBreaks, count);
      pendingSpace = false;
    },
    newLine() {
      pendingBreaks = Math.min(2, pendingBreaks + 1);
      pendingSpace = false;
    },
    mark(text: string, how: "new" | "added") {
      mark = how === "new" || mark.length > 40 ? text : mark + text;
    },
    indent: (text: string) => void (indent = text),
    preformatted: (step: number) => void (preformatted = Math.max(0, preformatted + step)),
    position: () => parts.length,
    since: (position: number) => parts.slice(position).join(""),
    /** Stands right behind the last text, whatever is to come. */
    note(text: string) {
      if (text !== "") parts.push(text);
    },
    finish: () => parts.join("").split("\n").map((line) => line.trimEnd()).join("\n").trim(),
  };
}
