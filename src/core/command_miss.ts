// The first word, option or other thing that keeps a command pattern from covering one simple command.
import { type CommandPattern, matchesCommand } from "./command.ts";
import type { Part } from "./facts.ts";
import type { Miss } from "./near_miss.ts";
import { programName, subcommandIndex } from "./program_options.ts";
import { riskyUses } from "./risky_options.ts";

/** Undefined when the pattern matches. Progress is below 1, and 0 when not even the program is the same. */
export function commandMiss(
  pattern: CommandPattern,
  part: Part,
  reach: "allow" | "restrict",
): Miss | undefined {
  if (matchesCommand(pattern, part, reach)) return undefined;
  return reach === "allow" ? allowMiss(pattern, part) : restrictMiss(pattern, part);
}

function allowMiss(pattern: CommandPattern, part: Part): Miss {
  const { words, rest } = pattern;
  const { argv } = part;
  let same = 0;
  while (same < words.length && words[same] === argv[same]) same++;
  if (same < words.length) return wordMiss(pattern, part, same, argv[same], same);
  if (!rest && argv.length > words.length) return endMiss(pattern, argv[words.length]);
  return coverMiss(pattern, part);
}

function wordMiss(
  { words }: CommandPattern,
  part: Part,
  same: number,
  has: string | undefined,
  at: number,
): Miss {
  const wanted = words[same] ?? "";
  const number = `word ${same + 1} is \`${wanted}\``;
  const progress = same / (words.length + 1);
  if (part.blurs?.some((b) => b.at === at) === true) {
    return {
      missed: "unknown",
      why: `${number}; what \`${has}\` becomes is only known when it runs`,
      progress,
    };
  }
  if (has === undefined) return { missed: "word", why: `${number}, the call ends before it`, progress };
  if (same > 0 || programName(has) !== programName(wanted)) {
    return { missed: "word", why: `${number}, the call has \`${has}\``, progress };
  }
  return {
    missed: "word",
    why: `${number}, the call runs \`${has}\`: an allow rule names a program as it is written`,
    progress: 0.5,
  };
}

function endMiss({ words }: CommandPattern, next: string | undefined): Miss {
  const why = next === undefined
    ? "the call is not understood as far as that"
    : `the rule ends after word ${words.length}, the call goes on with \`${next}\``;
  return { missed: "word", why, progress: 0.9 };
}

// The words are those of the rule; what else an allow rule must say does not fit.
function coverMiss(pattern: CommandPattern, part: Part): Miss {
  if (part.level !== "top") {
    return {
      missed: "inside",
      why: "it runs inside another command; an allow rule covers only what the text itself names",
      progress: 0.92,
    };
  }
  const risky = riskyUses(part.argv, pattern.risky).find((use) => use.at >= pattern.words.length);
  if (risky !== undefined) {
    return {
      missed: "option",
      why:
        `\`*\` does not cover the option \`${risky.option}\` (\`${
          part.argv[risky.at] ?? ""
        }\`), since with it the ` +
        `program ${risky.kind === "runs" ? "runs another one" : "writes"}; a rule must name it`,
      progress: 0.98,
    };
  }
  const assignment = assignmentMiss(pattern, part);
  if (assignment !== undefined) return { missed: "assignment", why: assignment, progress: 0.97 };
  const why = part.notUnderstood === undefined
    ? "a word of it is only known when it runs"
    : `${part.notUnderstood}; no allow rule covers that`;
  return { missed: "unknown", why, progress: 0.95 };
}

function assignmentMiss({ assignments }: CommandPattern, part: Part): string | undefined {
  const extra = part.assignments.find((a) => !assignments.includes(a));
  if (extra !== undefined) return `the call sets \`${extra}\`, which the rule does not name`;
  const missing = assignments.find((a) => !part.assignments.includes(a));
  return missing === undefined ? undefined : `the rule names \`${missing}\`, which the call does not set`;
}

// As rules that restrict see through many spellings, what they do reach is found by asking for less and less.
function restrictMiss(pattern: CommandPattern, part: Part): Miss {
  const { words } = pattern;
  const reaches = (count: number) =>
    matchesCommand(
      { ...pattern, assignments: [], words: words.slice(0, count), rest: true },
      part,
      "restrict",
    );
  let same = words.length;
  // Without words it reaches everything but what is guessed.
  while (same > 0 && !reaches(same)) same--;
  if (same === 0) return wordMiss(pattern, part, 0, part.argv[0], 0);
  const shift = Math.max(0, subcommandIndex(part.argv) - 1);
  if (same < words.length) return wordMiss(pattern, part, same, part.argv[same + shift], same + shift);
  const next = part.argv[words.length + shift];
  if (!pattern.rest && next !== undefined) return endMiss(pattern, next);
  const assignment = pattern.assignments.find((a) => !part.assignments.includes(a));
  return assignment === undefined ? endMiss(pattern, undefined) : {
    missed: "assignment",
    why: `the rule names \`${assignment}\`, which the call does not set`,
    progress: 0.97,
  };
}
