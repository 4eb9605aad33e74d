// SKILL.md → what its front matter says. Tolerant where the public ecosystem is loose, closed where a bound is damaged.
import { type FrontMatter, type FrontMatterFault, parseBlock, splitFrontMatter } from "./front_matter.ts";
import { readFlag, readToolBound, readToolList } from "./skill_bounds.ts";
import { readTrigger } from "./skill_trigger.ts";
import type { YamlDocument } from "./yaml.ts";
import type { Position } from "../core/problem.ts";
import type { SkillMeta } from "../core/skill.ts";
import { dropHidden, escapeLine } from "../core/text.ts";

export type SkillWarning = {
  readonly code: string;
  readonly message: string;
  /** Where places were asked for. */
  readonly at?: Position;
};

export type SkillFile =
  | {
    readonly ok: true;
    readonly meta: SkillMeta;
    readonly warnings: readonly SkillWarning[];
    /** Offset into the text, in UTF-16 units, where the body begins. */
    readonly bodyStart: number;
  }
  | (FrontMatterFault & {
    /** What else is wrong with it, and what is merely odd. */
    readonly further?: readonly FrontMatterFault[];
    readonly warnings?: readonly SkillWarning[];
  });

/** The fields of a block, found under any spelling of their names. */
export type Fields = {
  readonly document: YamlDocument;
  /** Spellings of `name` that the block holds, the exact one first; upper case, blanks, `-` and `_` do not count. */
  spellings(name: string): readonly string[];
  value(key: string): unknown;
};

/**
 * Reads a SKILL.md, or the beginning of one that reaches beyond its front matter to the first byte that is not blank.
 * Refuses what could not be read as its author meant it; everything else loads, with warnings whose codes are stable.
 * `split` is its front matter, when it is known already. Places of warnings are worked out only for `places`: that costs time.
 */
export function parseSkillFile(
  text: string,
  from: { readonly file: string; readonly folderName: string; readonly places?: true },
  split: FrontMatter | FrontMatterFault = splitFrontMatter(text, from.file),
): SkillFile {
  if (!split.ok) return split;
  const block = parseBlock(split, from.file);
  if (!block.ok) return block;
  const content = block.document.value;
  if (content !== null && (typeof content !== "object" || Array.isArray(content))) {
    return refuse(
      "frontmatter-not-map",
      "the front matter is not a list of `key: value` lines",
      top(from.file),
      {
        hint: "write `name:` and `description:` lines",
      },
    );
  }
  const fields = fieldsOf(block.document);
  const warnings: SkillWarning[] = [];
  const warn: Warn = (code, message, key) => {
    if (warnings.some((w) => w.code === code && w.message === message)) return;
    const place = () => key === undefined ? top(from.file) : fields.document.at([key]);
    warnings.push({ code, message, ...(from.places === true ? { at: place() } : {}) });
  };
  if (block.repaired) {
    warn("yaml-repaired", "the front matter is not valid YAML; values were put in quotes to read it");
  }
  const read = readMeta(fields, from, warn);
  const faults = [...read.faults];
  if (text.slice(split.bodyStart).trim() === "") {
    faults.push(refuse("body-empty", "there is nothing after the front matter", top(from.file), {
      hint: "write the instructions below the closing `---` line",
    }));
  }
  const [first, ...further] = faults;
  if (first !== undefined) return { ...first, further, warnings };
  return { ok: true, meta: read.meta, warnings, bodyStart: split.bodyStart };
}

/** `key` is the field that the warning is about, as it is spelled. */
export type Warn = (code: string, message: string, key?: string) => void;

function readMeta(
  fields: Fields,
  from: { readonly file: string; readonly folderName: string },
  warn: Warn,
): { readonly faults: readonly FrontMatterFault[]; readonly meta: SkillMeta } {
  const texts = (["description", "name"] as const).map((field) => readText(fields, field, from.file, warn));
  const faults = texts.filter((text) => typeof text !== "string");
  const [description = "", name = ""] = texts.map((text) => typeof text === "string" ? text : "");
  const unsafe = checkName(name, fields, from.file);
  if (unsafe !== undefined) faults.push(unsafe);
  if (name !== "") warnOfName(name, from.folderName, warn, fields.spellings("name")[0]);
  warnOfDescription(description, warn, fields.spellings("description")[0]);
  warnOfOptionalFields(fields, warn);
  for (const [field, text] of [["name", name], ["description", description]] as const) {
    if (hidesCharacters(text)) {
      warn(
        "hidden-characters",
        `\`${escapeLine(text.slice(0, 80))}\` holds characters that cannot be seen`,
        fields.spellings(field)[0],
      );
    }
  }
  const allowedTools = readToolBound(fields, warn);
  const version = readVersion(fields);
  const meta: SkillMeta = {
    name,
    description,
    ...(version === undefined ? {} : { version }),
    ...(allowedTools === undefined ? {} : { allowedTools }),
    ...readTrigger(fields, warn),
    requires: readToolList(fields, allowedTools !== undefined, warn),
    ...readMode(fields, warn),
    modelInvocable: !readFlag(fields, "disable-model-invocation", "closed-when-true", warn),
    userInvocable: readFlag(fields, "user-invocable", "closed-when-false", warn),
  };
  return { faults, meta };
}

// `context: fork` is how another agent writes it.
function readMode(fields: Fields, warn: Warn): Pick<SkillMeta, "mode" | "history" | "model"> {
  const mode = fields.value("mode");
  if (mode !== undefined && mode !== null && mode !== "inline" && mode !== "fork") {
    warn("mode-unknown", "`mode` is neither `inline` nor `fork`; the skill runs inline");
  }
  const written = fields.value("history");
  const history = histories.find((h) => h === written);
  if (written !== undefined && written !== null && history === undefined) {
    warn("history-unknown", "`history` is none of `none`, `summary`, `full`; a fork sees nothing before it");
  }
  const model = fields.value("model");
  return {
    mode: mode === "fork" || (mode === undefined && fields.value("context") === "fork") ? "fork" : "inline",
    ...(history === undefined ? {} : { history }),
    ...(typeof model === "string" && model.trim() !== "" ? { model: model.trim() } : {}),
  };
}

const histories = ["none", "summary", "full"] as const;

function fieldsOf(document: YamlDocument): Fields {
  const content = (document.value ?? {}) as Readonly<Record<string, unknown>>;
  const keys = Object.keys(content);
  // Nearly every key is written as it should be.
  const odd = keys.filter((key) => !spelled.has(key));
  return {
    document,
    spellings(name) {
      const exact = Object.hasOwn(content, name) ? [name] : [];
      if (odd.length === 0) return exact;
      const wanted = bareKey(name);
      return [...exact, ...odd.filter((key) => key !== name && bareKey(key) === wanted)];
    },
    value: (key) => Object.hasOwn(content, key) ? content[key] : undefined,
  };
}

const spelled = new Set([
  "name",
  "description",
  "version",
  "license",
  "metadata",
  "allowed-tools",
  "disable-model-invocation",
  "user-invocable",
]);

function bareKey(key: string): string {
  return key.toLowerCase().replace(/[-_ ]/g, "");
}

// `name` and `description`: text, or one value that is turned to text as it is spelled.
function readText(
  fields: Fields,
  field: "name" | "description",
  file: string,
  warn: Warn,
): string | FrontMatterFault {
  const [key = field] = fields.spellings(field);
  const value = fields.value(key);
  // Positions are worked out only for what is wrong.
  const place = () => (value === undefined ? top(file) : fields.document.at([key]));
  if (typeof value === "object" && value !== null) {
    return refuse(`${field}-type`, `\`${field}\` is a ${Array.isArray(value) ? "list" : "map"}`, place(), {
      hint: `write \`${field}\` as one text`,
    });
  }
  const scalar = fields.document.scalar([key]);
  const text =
    (typeof value === "string" ? value : value === undefined || value === null ? "" : scalar?.source ?? "")
      .trim();
  if (text === "") {
    return refuse(
      `${field}-missing`,
      `the front matter has no \`${field}\``,
      place(),
      {
        hint: field === "name"
          ? "add a line such as `name: my-skill`"
          : "add a line such as `description: what it does, and when to use it`",
      },
    );
  }
  if (typeof value !== "string") {
    warn(`${field}-coerced`, `\`${field}\` is ${typeof value}; it is read as the text \`${text}\``, key);
  }
  // A comment after a name is a comment; after prose it may be the rest of a sentence.
  if (scalar?.cut === true && field === "description") {
    warn("comment-in-value", `\`${field}\` was cut at \` #\`; put the value in quotes to keep the rest`, key);
  }
  if (key !== field) warn("field-alias", `\`${key}\` is read as \`${field}\``, key);
  return field === "name" ? text.normalize("NFC") : text;
}

// A name is shown, compared and typed by people, and never used as a path; what could act as one does not load at all.
function checkName(name: string, fields: Fields, file: string): FrontMatterFault | undefined {
  // deno-lint-ignore no-control-regex
  if (!/[/\\\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(name) && name !== "." && name !== "..") {
    return undefined;
  }
  const [key] = fields.spellings("name");
  return refuse(
    "name-unsafe",
    `the name \`${escapeLine(name.slice(0, 80))}\` holds a path separator or a control character`,
    key === undefined ? top(file) : fields.document.at([key]),
    { hint: "use lower-case letters, digits and single hyphens" },
  );
}

function warnOfName(name: string, folderName: string, warn: Warn, key: string | undefined): void {
  if (name.normalize("NFKC") !== folderName.normalize("NFKC")) {
    warn("name-dir-mismatch", `the name \`${name}\` differs from its folder \`${folderName}\``, key);
  }
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) {
    warn(
      "name-invalid",
      `the name \`${name}\` is not made of lower-case letters, digits and single hyphens`,
      key,
    );
  }
  const length = over(name, 64);
  if (length !== undefined) {
    warn("name-too-long", `the name has ${length} characters; at most 64 are expected`, key);
  }
}

/** Number of characters, if it is over the limit; a character has one or two units. */
function over(text: string, limit: number): number | undefined {
  if (text.length <= limit) return undefined;
  const length = [...text].length;
  return length > limit ? length : undefined;
}

// Closing tags, and tags that hosts put around their own text. Tags such as <file> or <name> are ordinary in descriptions.
const hostTags =
  "system(?:[-_](?:reminder|prompt|message))?|assistant|human|developer|skills?|(?:available|active)[-_]skills?|" +
  "instructions?|tool[-_](?:calls?|use|results?|response)|function[-_](?:calls?|results?)|invoke|" +
  "user[-_](?:instructions|message|query)|environment[-_](?:context|details)|(?:local[-_])?command[-_](?:name|message|args|stdout)";
const hostMarkup = new RegExp(
  `<\\s*/\\s*[a-z][\\w:.-]*\\s*>|<\\|[\\w-]+\\|>|<\\s*(?:antml:[\\w-]+|${hostTags})(?:\\s[^<>]*)?/?>`,
  "i",
);

function warnOfDescription(description: string, warn: Warn, key: string | undefined): void {
  const length = over(description, 1024);
  if (length !== undefined) {
    warn("description-too-long", `the description has ${length} characters; at most 1024 are expected`, key);
  }
  const tag = description.includes("<") ? hostMarkup.exec(description)?.[0] : undefined;
  if (tag !== undefined) {
    warn("description-markup", `the description holds the tag \`${escapeLine(tag.slice(0, 40))}\``, key);
  }
}

// Joiners are part of emoji and of several scripts; a black flag carries the tag characters of a region.
const visible =
  /(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})|(?<=(?![\p{Script=Latin}\p{Script=Han}])[\p{L}\p{M}])[\u200c\u200d](?=[\p{L}\p{M}])|\u{1f3f4}[\u{e0020}-\u{e007f}]+/gu;

export function hidesCharacters(text: string): boolean {
  if (dropHidden(text) === text) return false;
  const rest = text.replace(visible, "");
  return dropHidden(rest) !== rest;
}

function warnOfOptionalFields(fields: Fields, warn: Warn): void {
  const compatibility = fields.value("compatibility");
  if (compatibility !== undefined && compatibility !== null) {
    if (typeof compatibility !== "string") {
      warn("compatibility-type", "`compatibility` is not text", "compatibility");
    } else if (over(compatibility, 500) !== undefined) {
      warn("compatibility-too-long", "`compatibility` has more than 500 characters", "compatibility");
    }
    const scalar = fields.document.scalar(["compatibility"]);
    if (scalar?.cut === true) {
      warn("comment-in-value", "`compatibility` was cut at ` #`", "compatibility");
    }
  }
  const metadata = fields.value("metadata");
  if (
    metadata !== undefined && metadata !== null && (typeof metadata !== "object" || Array.isArray(metadata))
  ) {
    warn("metadata-type", "`metadata` is not a map", "metadata");
  }
}

function readVersion(fields: Fields): string | undefined {
  const source = fields.document.scalar(["version"])?.source.trim();
  return source === undefined || source === "" || fields.value("version") === null ? undefined : source;
}

function top(file: string): Position {
  return { file, line: 1, col: 1 };
}

function refuse(
  reason: string,
  message: string,
  at: Position,
  more: { readonly hint: string },
): FrontMatterFault {
  return { ok: false, reason, message, hint: more.hint, at };
}
