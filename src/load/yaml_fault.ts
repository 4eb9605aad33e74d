// What is wrong with a text that is no YAML, for whoever wrote it, from what the parser says.
import { escapeLine } from "../core/text.ts";
import type { Problem } from "../core/problem.ts";

type Said = Pick<Problem, "message" | "expected" | "hint">;

/** `code` and `message` are the parser's. Its own words stay where nothing better is known. */
export function yamlFault(code: string, message: string): Said {
  const [first = message] = message.split("\n");
  const [, closing] = /^Flow .* end with a ([\]}])/.exec(first) ?? [];
  if (closing !== undefined) {
    return {
      message: `a \`${closing === "}" ? "{" : "["}\` is not closed before this`,
      expected: `\`${closing}\``,
      hint: "every line up to it must stand further in than the key that it belongs to",
    };
  }
  const [, quote] = /^Missing closing (["'])/.exec(first) ?? [];
  if (quote !== undefined) return { message: "a text in quotes is not closed", expected: `\`${quote}\`` };
  const [, odd] = /^Unexpected .*: "(.+)"$/.exec(first) ?? [];
  if (odd !== undefined) {
    const closes = /^[\]}]/.test(odd);
    const hint = closes ? "remove it, or write before it what it closes" : structure;
    return { message: `\`${escapeLine(odd)}\` does not belong here`, hint };
  }
  switch (code) {
    case "TAB_AS_INDENT":
      return { message: "a tab stands before the text of a line", expected: "blanks" };
    case "BLOCK_AS_IMPLICIT_KEY":
    case "MULTILINE_IMPLICIT_KEY":
      return {
        message: "a key stands within the value of another key",
        hint: "put quotes around a text that holds `: `, and write keys below a key in lines of their own",
      };
    case "MISSING_CHAR":
      return { message: "a word stands where a key belongs", expected: "`key: value`", hint: structure };
    case "BAD_INDENT":
      return { message: "this line starts in another column than those beside it", hint: structure };
    case "BAD_DQ_ESCAPE":
      return {
        message: `\`${escapeLine(first.replace(/^.* /, ""))}\` stands for nothing within double quotes`,
        hint: "write `\\\\` for the character, or use single quotes",
      };
    case "BAD_SCALAR_START":
      return {
        message: `a text without quotes starts with \`${escapeLine(first.slice(-1))}\``,
        hint: "put quotes around it",
      };
    case "UNEXPECTED_TOKEN":
      return { message: "what stands here belongs to nothing before it", hint: structure };
    default:
      return { message: first };
  }
}

const structure = "begin the entries of one list, and the keys of one mapping, in the same column";
