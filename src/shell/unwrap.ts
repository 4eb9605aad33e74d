// The commands inside a command: what env, xargs, `sh -c`, eval, `find -exec` and their kin run.
import { programName, subcommandIndex } from "../core/program_options.ts";
import { riskyUses } from "../core/risky_options.ts";
import { allowances } from "./effort.ts";
import { hiddenCommands } from "./hidden_commands.ts";
import { anyWords, quoted, type Shape } from "./words.ts";
import { command, type Inner, joined, readOption, scanOptions, type Start } from "./wrapper_options.ts";
import { changers, namers, shells, wrappers, type WrapperSpec } from "./wrapper_table.ts";

export type Wrapped = {
  readonly inner: readonly Inner[];
  /** Why an allow rule must name the command. */
  readonly why?: string;
  /** No allow rule can name it. */
  readonly hidden?: true;
  /** It runs what it reads from its input. */
  readonly readsCommands?: true;
  /** What it runs of a text that it reads. */
  readonly reads?: (input: string) => readonly Inner[];
  /** The shell may stand in another folder afterwards. */
  readonly moves?: true;
};

// What a command prints into a pipe, and what it is itself, both need it.
const kept = new WeakMap<readonly Shape[], Wrapped>();

/** Looks into one simple command. `words` holds the program and its arguments; there is at least one. */
export function unwrap(words: readonly Shape[]): Wrapped {
  const known = kept.get(words);
  if (known !== undefined) return known;
  const found = lookInto(words);
  kept.set(words, found);
  return found;
}

function lookInto(words: readonly Shape[]): Wrapped {
  const [first] = words;
  if (first === undefined) return { inner: [] };
  if (first.blur !== undefined) return { inner: afterUnknownProgram(words), moves: true };
  const program = programName(first.text);
  const found = unwrapWords(program, words);
  const { inner, why = found.why, reads } = hiddenCommands(program, words);
  return {
    ...found,
    inner: [...found.inner, ...inner],
    ...(why === undefined ? {} : { why: found.why ?? why }),
    ...(reads === undefined ? {} : { reads }),
  };
}

function unwrapWords(program: string, words: readonly Shape[]): Wrapped {
  const special = unwrapBuiltin(program, words);
  if (special !== undefined) return special;
  if (shells.has(program)) return unwrapShell(program, words);
  const spec = Object.hasOwn(wrappers, program) ? wrappers[program] : undefined;
  const found = spec === undefined ? undefined : unwrapSpec(program, spec, words);
  const options = optionCommands(program, words);
  if (found !== undefined) return { ...found, inner: [...found.inner, ...options] };
  if (/^ld(-linux.*|-musl.*|)\.so/.test(program)) {
    return { inner: [command(words.slice(1))], why: `${quoted(program)} runs another program` };
  }
  return { inner: options };
}

// `$X rm y` is `rm y` when the variable is empty or names a wrapper, and `eval$X y` is `eval y`.
function afterUnknownProgram(words: readonly Shape[]): readonly Inner[] {
  const [first, ...others] = words;
  const known = first?.blur?.pieces.join("") ?? "";
  const emptied = known === "" || first?.blur?.glob === true
    ? []
    : [command([{ text: known, path: known }, ...others])];
  if (first?.blur?.many !== true || others.length === 0) return emptied;
  return [command(others), ...emptied];
}

function unwrapBuiltin(program: string, words: readonly Shape[]): Wrapped | undefined {
  const args = words.slice(1);
  if (program === "command" && /^-[pvV]*[vV]/.test(args[0]?.text ?? "")) return { inner: [] };
  if (program === "cd" || program === "pushd" || program === "popd") return { inner: [], moves: true };
  if (!changers.has(program)) {
    if (program === "printf" && args[0]?.text.startsWith("-v") === true) {
      return { ...(subscripts(args) ?? { inner: [] }), why: "`printf -v` sets a variable" };
    }
    return namers.has(program) ? subscripts(args) : undefined;
  }
  const why = `${quoted(program)} changes what later commands do`;
  switch (program) {
    case "eval":
      return { inner: args.length === 0 ? [] : [joined(args)], why: "`eval` runs a text", moves: true };
    case "source":
    case ".":
      return {
        inner: [],
        why: `${quoted(program)} runs a file in this shell`,
        readsCommands: true,
        moves: true,
      };
    case "trap": {
      const action = args.find((a) => a.text !== "--");
      const script = action === undefined || /^-/.test(action.text) ? [] : [joined([action])];
      return { inner: script, why: "`trap` runs a text later", moves: true };
    }
    case "alias": {
      const texts = args.flatMap((a) => a.text.includes("=") ? [a.text.slice(a.text.indexOf("=") + 1)] : []);
      return { inner: texts.map((text) => ({ kind: "script", text })), why };
    }
    case "set":
      if (
        args.every((a) =>
          a.blur === undefined && /^([-+][euxo]+|pipefail|errexit|nounset|xtrace)$/.test(a.text)
        )
      ) return { inner: [] };
      return { inner: [], why };
    case "read":
    case "mapfile":
    case "readarray":
    case "getopts":
      return subscripts(args) ??
        (args.every((a) => !setsEnvironment(a.text)) ? { inner: [] } : { inner: [], why });
    default:
      return subscripts(args) ?? { inner: [], why };
  }
}

/** Whether a variable of this name may be one that programs look at. */
export function setsEnvironment(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) &&
    (/[A-Z]{2}|_/.test(name) && /[A-Z]/.test(name) || /_proxy$/i.test(name));
}

// `test -v 'a[$(cmd)]'` computes the subscript, and with it runs the command, although the word is quoted.
function subscripts(args: readonly Shape[]): Wrapped | undefined {
  const texts = args.filter((a) => hasSubscriptCommand(a.text)).map((a) => a.text);
  if (texts.length === 0) return undefined;
  return {
    inner: texts.map((text) => ({ kind: "script", text: `: "${text}"` })),
    why: `the subscript in ${quoted(texts[0] ?? "")} may run a command`,
    hidden: true,
  };
}

/** Whether a word holds a subscript that would run a command when it is computed. */
export function hasSubscriptCommand(text: string): boolean {
  const open = text.indexOf("[");
  return open >= 0 && /\$\(|`/.test(text.slice(open));
}

function unwrapShell(program: string, words: readonly Shape[]): Wrapped {
  const why = `${quoted(program)} runs a shell text`;
  let i = 1, takesText = false;
  for (; i < words.length; i++) {
    const word = words[i];
    if (word === undefined) break;
    if (word.blur !== undefined) {
      // After `-c` it is the text itself, before it may be an option that makes any later word the text.
      if (takesText) break;
      return { inner: words.slice(i).map((w) => joined([w])), why, readsCommands: true };
    }
    if (!/^[-+]./.test(word.text)) break;
    if (word.text === "--") {
      i++;
      break;
    }
    if (word.text.startsWith("--")) {
      if (/^--(rcfile|init-file)$/.test(word.text)) i++;
      continue;
    }
    if (word.text.includes("c") && word.text.startsWith("-")) takesText = true;
    i += [...word.text.slice(1)].filter((c) => c === "o" || c === "O").length;
  }
  if (words[i]?.text === "-") i++;
  const operand = words[i];
  if (!takesText) {
    const fromInput = operand === undefined || /^\/dev\/(stdin|fd\/0)$/.test(operand.text) ||
      words.slice(1, i).some((w) => /^-[a-zA-Z]*s/.test(w.text));
    return fromInput
      ? { inner: [], why: `${quoted(program)} runs what it reads`, readsCommands: true }
      : { inner: [] };
  }
  if (operand === undefined) return { inner: [], why };
  const inner: Inner[] = [joined([operand])];
  // `sh -c '"$@"' _ rm x` runs its arguments.
  if (/\$\{?[@*0-9!]/.test(operand.text)) {
    for (const from of [i + 1, i + 2]) if (from < words.length) inner.push(command(words.slice(from)));
  }
  return { inner, why };
}

function unwrapSpec(program: string, spec: WrapperSpec, words: readonly Shape[]): Wrapped | undefined {
  const argv = words.map((w) => w.text);
  let from = 1;
  if (spec.subs !== undefined) {
    from = subcommandIndex(argv) + 1;
    if (!spec.subs.includes(argv[from - 1] ?? "")) return undefined;
  }
  const scan = scanOptions(spec, words, from);
  const inner = [...scan.scripts];
  for (const start of scan.starts) inner.push(...innerOf(program, spec, words, start, scan.placeholder));
  const why = `${quoted(program)} runs another command`;
  const moves = program === "command" || program === "builtin" ? { moves: true as const } : {};
  return { inner, ...(spec.quiet === true ? {} : { why }), ...moves };
}

function innerOf(
  program: string,
  spec: WrapperSpec,
  words: readonly Shape[],
  start: Start,
  placeholder: string,
): readonly Inner[] {
  let tail = words.slice(start.at);
  if (program === "parallel") {
    const cut = tail.findIndex((w) => /^:::[:+]*$/.test(w.text));
    const inputs = cut < 0 ? [] : tail.slice(cut + 1);
    if (cut >= 0) tail = tail.slice(0, cut);
    if (tail.length === 0) return inputs.map((w) => joined([w]));
  }
  const [head] = tail;
  if (head === undefined) return [];
  // `flock FILE -c TEXT`
  const late = spec.script === undefined || !head.text.startsWith("-")
    ? undefined
    : readOption(spec, head.text);
  if (late?.script === true) {
    return late.value !== undefined
      ? [{ kind: "script", text: late.value }]
      : tail[1] === undefined
      ? []
      : [joined([tail[1]])];
  }
  if (spec.adds === true) {
    const filled = tail.map((w) => w.text.includes(placeholder) ? fill(w, placeholder) : w);
    return [command([...filled, anyWords], start.assignments)];
  }
  return [spec.joined === true ? joined(tail) : command(tail, start.assignments)];
}

function fill(word: Shape, placeholder: string): Shape {
  return { ...word, blur: { pieces: word.text.split(placeholder), many: false } };
}

// What options of otherwise harmless programs run: `find -exec`, `tar --to-command`, `git -c alias.x=!…`.
function optionCommands(program: string, words: readonly Shape[]): readonly Inner[] {
  if (program === "find") return findCommands(words);
  if (program === "fd" || program === "fdfind") {
    const at = words.findIndex((w) => /^(-[a-zA-Z0-9]*[xX]|--exec(-batch)?)$/.test(w.text));
    return at < 0 ? [] : [findCommand([...words, anyWords], at + 1)];
  }
  const argv = words.map((w) => w.text);
  return riskyUses(argv).flatMap((use): readonly Inner[] => {
    if (use.kind !== "runs" || use.value === undefined || words[use.at]?.blur !== undefined) return [];
    if (program === "git" && (use.option === "-c" || use.option === "--config")) {
      return configCommand(use.value);
    }
    if (/^-(f|-file|-config|-git-dir|-include)/.test(use.option)) return [];
    // Git hands the words behind a verb on as they are, or joins them for a shell.
    if (program === "git" && !use.option.startsWith("-") && words.length > use.at + 2) {
      return [{ kind: "script", text: use.value }, command(words.slice(use.at + 1))];
    }
    const setting = use.option === "-o" && /^(ssh|scp|sftp)$/.test(program) ? /^\w+\s*[=\s]\s*/ : /^exec=/;
    return [{ kind: "script", text: use.value.replace(setting, "") }];
  });
}

// Each may hold the next ones, so that together they can be far longer than the text: what is over the allowance is
// left out here, and the text is refused for it.
function findCommands(words: readonly Shape[]): readonly Inner[] {
  const found: Inner[] = [];
  let taken = 0;
  for (const [i, word] of words.entries()) {
    if (!/^-(exec|ok)(dir)?$/.test(word.text) || taken > allowances.words) continue;
    const inner = findCommand(words, i + 1);
    found.push(inner);
    taken += inner.words.length;
  }
  return found;
}

function findCommand(words: readonly Shape[], from: number): Extract<Inner, { kind: "command" }> {
  let end = from;
  while (end < words.length && !endsFound(words, end)) end++;
  const tail = words.slice(from, end);
  const many = words[end]?.text === "+";
  return command(tail.map((w) => {
    if (!w.text.includes("{") || w.blur !== undefined) return w;
    const pieces = w.text.split(/\{[./]{0,2}\}/);
    return pieces.length === 1 ? w : { ...w, blur: { pieces, many: many && w.text === "{}" } };
  }));
}

function endsFound(words: readonly Shape[], at: number): boolean {
  return words[at]?.text === ";" || (words[at]?.text === "+" && words[at - 1]?.text === "{}");
}

/** Whether git runs a program from the setting of this name. */
export function runsFromSetting(key: string): boolean {
  return configPrograms.test(key);
}

const configPrograms =
  /^(alias\..*|core\.(pager|editor|sshcommand|fsmonitor|askpass|gitproxy|hookspath|alternaterefscommand)|sequence\.editor|diff\.external|diff\..*\.(command|textconv)|merge\..*\.driver|filter\..*|credential.*\.helper|(diff|merge|gui)tool\..*|pager\..*|gpg\..*(program|command)|interactive\.difffilter|uploadpack\..*|remote\..*\.(uploadpack|receivepack|vcs|url|pushurl)|url\..*|browser\..*|web\.browser|instaweb\..*|man\..*|sendemail\..*(cmd|server)|trailer\..*\.(cmd|command)|tar\..*\.command|imap\.tunnel|hook\..*\.command|submodule\..*\.update|init\.templatedir)$/i;

function configCommand(setting: string): readonly Inner[] {
  const equals = setting.indexOf("=");
  if (equals < 0 || !runsFromSetting(setting.slice(0, equals))) return [];
  const value = setting.slice(equals + 1);
  if (/^alias\./i.test(setting)) {
    return value.startsWith("!")
      ? [{ kind: "script", text: value.slice(1) }]
      : [{ kind: "script", text: `git ${value}` }];
  }
  return [{ kind: "script", text: value.replace(/^(!|ext::)/, "") }];
}

/** What a command is sure to print, when it is echo or printf with known words; undefined otherwise. */
export function literalOutput(words: readonly Shape[]): string | undefined {
  const program = words[0]?.text;
  if ((program !== "echo" && program !== "printf") || words.some((w) => w.blur !== undefined)) {
    return undefined;
  }
  const args = words.slice(1).map((w) => w.text).filter((t, i) =>
    !(program === "echo" && i === 0 && /^-[neE]+$/.test(t))
  );
  return args.join(program === "printf" ? "\n" : " ").replace(/\\n/g, "\n");
}
