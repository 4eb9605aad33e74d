// Commands that builtins, editors, debuggers, database clients and little languages run although nothing on their command
// line says so: a text among their arguments, or what they read and put together.
import { awkUses, sedUses } from "../core/script_risk.ts";
import { subcommandIndex } from "../core/program_options.ts";
import { awkTexts, callTexts, exTexts, makeTexts, sedReplacements, sqlTexts } from "./command_texts.ts";
import { anyWords, quoted, type Shape, unknownMark } from "./words.ts";
import { command, type Inner, joined } from "./wrapper_options.ts";

export type Hidden = {
  readonly inner: readonly Inner[];
  /** Why an allow rule must name the command. */
  readonly why?: string;
  /** What it runs of a text that it reads. */
  readonly reads?: (input: string) => readonly Inner[];
};

const nothing: Hidden = { inner: [] };

/** What the command runs besides what wrappers and options say; `words` holds the program first. */
export function hiddenCommands(program: string, words: readonly Shape[]): Hidden {
  const args = words.slice(1);
  if (/(^|-)(gcc|g\+\+|cc|c\+\+|cpp|gfortran|clang|clang\+\+)(-[\d.]+)?$/.test(program)) {
    return compiler(args);
  }
  if (program === "git") return gitCommands(words);
  const own = Object.hasOwn(table, program) ? table[program] : undefined;
  return own === undefined ? nothing : own(args, program);
}

/** Whether the arguments of the program are read for what it would run. */
export function isRead(program: string): boolean {
  const own = Object.hasOwn(table, program) ? table[program] : undefined;
  return own !== undefined && own !== language && own !== looseBehindVerb;
}

type Reading = (args: readonly Shape[], program: string) => Hidden;

function script(text: string): Inner {
  return { kind: "script", text };
}

function scripts(texts: readonly string[]): readonly Inner[] {
  return texts.filter((t) => t.trim() !== "").map(script);
}

/** What is sure to run, and besides it whatever the program makes up. */
function open(program: string, inner: readonly Inner[], reads?: Hidden["reads"]): Hidden {
  return {
    inner: [...inner, command([anyWords])],
    why: `${quoted(program)} runs what it reads or puts together`,
    ...(reads === undefined ? {} : { reads }),
  };
}

/** The values of a short option, bundled and glued ones included; `valued` are all letters that take one. */
function values(args: readonly Shape[], letter: string, valued: string, long?: string): readonly Shape[] {
  const found: Shape[] = [];
  for (let i = 0; i < args.length; i++) {
    const word = args[i];
    const text = word?.text ?? "";
    if (word === undefined || !/^-./.test(text)) continue;
    if (text.startsWith("--")) {
      const [name = "", ...value] = text.split("=");
      if (long === undefined || name.length < 4 || !long.startsWith(name)) continue;
      const next = value.length > 0 ? { ...word, text: value.join("=") } : args[++i];
      if (next !== undefined) found.push(next);
      continue;
    }
    const at = [...text].findIndex((c, k) => k > 0 && (c === letter || valued.includes(c)));
    if (at < 0) continue;
    const glued = text.slice(at + 1);
    const value = glued === "" ? args[++i] : { ...word, text: glued };
    if (text[at] === letter && value !== undefined) found.push(value);
  }
  return found;
}

function texts(shapes: readonly Shape[]): readonly string[] {
  return shapes.map((s) => s.blur?.pieces.join(unknownMark) ?? s.text);
}

function readsInput(args: readonly Shape[], options: RegExp): boolean {
  return args.some((a, i) => {
    const [, glued] = options.exec(a.text) ?? [undefined, undefined];
    if (glued === undefined) return false;
    const value = glued === "" ? args[i + 1]?.text ?? "" : glued;
    return /^(-|\/dev\/stdin|\/dev\/fd\/0|\/proc\/self\/fd\/0)$/.test(value);
  });
}

// ---- builtins ---------------------------------------------------------------------------------------------------------

const jobs: Reading = (args) => {
  const end = args.findIndex((a) => !/^-./.test(a.text) || a.text === "--" || a.blur !== undefined);
  const options = end < 0 ? args : args.slice(0, end + (args[end]?.blur === undefined ? 0 : 1));
  if (!options.some((o) => o.text.includes("x") || o.blur !== undefined)) return nothing;
  const from = args[end]?.text === "--" ? end + 1 : end;
  return { inner: end < 0 ? [] : [command(args.slice(from))], why: "`jobs -x` runs another command" };
};

const callback: Reading = (args, program) => {
  const found = texts(values(args, "C", "dnOsuCc")).map((t) => `${t} ${unknownMark}`);
  return found.length === 0 ? nothing : { inner: scripts(found), why: `${quoted(program)} runs a text` };
};

const completion: Reading = (args) => {
  const valued = "AFCWGXPSo";
  return {
    inner: [
      ...scripts(["C", "F"].flatMap((l) => texts(values(args, l, valued))).map((t) => `${t} ${unknownMark}`)),
      ...scripts(texts(values(args, "W", valued)).map((t) => `: "${t}"`)),
    ],
  };
};

const history: Reading = (args) => {
  if (args.every((a) => /^[0-9]+$/.test(a.text))) return nothing;
  const added = args.findIndex((a) => /^-[a-z]*s/.test(a.text));
  return {
    inner: added < 0 ? [] : [joined(args.slice(added + 1))],
    why: "`history` changes what `fc` runs, and may write a file",
  };
};

const fc: Reading = (args) =>
  args.some((a) => /^-[a-z]*l/.test(a.text))
    ? nothing
    : open("fc", scripts(texts(values(args, "e", "e")).map((t) => `${t} ${unknownMark}`)));

const alias: Reading = (args) => ({
  inner: args.flatMap((a) => {
    const value = a.text.slice(a.text.indexOf("=") + 1);
    return a.text.includes("=") && value.trim() !== "" ? [script(`${value} ${unknownMark}`)] : [];
  }),
});

const hash: Reading = (args) => ({ inner: values(args, "p", "p").map((p) => command([p, anyWords])) });

const enable: Reading = (args) => args.some((a) => /^-[a-z]*f/.test(a.text)) ? open("enable", []) : nothing;

const bind: Reading = (args) => ({
  inner: scripts(texts(values(args, "x", "mqufrx")).map((t) => t.slice(t.indexOf(":") + 1))),
});

// ---- programs ---------------------------------------------------------------------------------------------------------

const editor: Reading = (args, program) => {
  const lines = [
    ...texts(values(args, "c", "cSuUTwWp", "--cmd")),
    ...args.filter((a) => a.text.startsWith("+")).map((a) => a.text.slice(1)),
  ].filter((t) => !/^[0-9]*$/.test(t));
  const reads = (input: string) => scripts(exTexts(input));
  const batch = program === "ex" || args.some((a) => /^-([a-zA-Z]*[esES]|S.*)$/.test(a.text));
  if (lines.length === 0 && !batch) return { inner: [], reads };
  return open(program, scripts(lines.flatMap(exTexts)), reads);
};

const lineEditor: Reading = (_, program) => open(program, [], (input) => scripts(exTexts(input)));

const emacs: Reading = (args, program) => {
  const code = args.filter((a) =>
    /^-|^\(/.test(a.text) && /^--?(eval|execute|f$|funcall|l$|load|script|batch)|^\(/.test(a.text)
  );
  return code.length === 0 ? nothing : open(program, scripts(args.flatMap((a) => callTexts(a.text))));
};

const debuggerOf: Reading = (args, program) => {
  const from = args.findIndex((a) => /^(--?args|--)$/.test(a.text));
  const programAt = args.findIndex((a) => !a.text.startsWith("-"));
  const debugged = from >= 0
    ? [command(args.slice(from + 1))]
    : args.filter((_, i) => i >= programAt && programAt >= 0).slice(0, 4).map((a) => command([a, anyWords]));
  const said = args.flatMap((a) => {
    const line = /^--?(?:ex|iex|eval-command|o|one-line)=(.*)/s.exec(a.text)?.[1] ?? a.text;
    const [, run] = /^\s*(?:shell|!|pipe|\||make|platform shell)\s*(.*)/s.exec(line) ?? [];
    return run === undefined ? callTexts(line) : [run];
  });
  const reads = (input: string) =>
    scripts(input.split("\n").map((l) => l.replace(/^\s*(shell|!|pipe|\||platform shell)\s*/, "")));
  return open(program, [...debugged, ...scripts(said)], reads);
};

const database: Reading = (args, program) => {
  const found = args.flatMap((a) => sqlTexts(program, a.text));
  const reads = (input: string) => scripts(sqlTexts(program, input).flatMap((t) => t ?? []));
  const known = found.flatMap((t) => t ?? []);
  const given = program === "sqlite3"
    ? args.filter((a) => !a.text.startsWith("-")).length > 1
    : args.some((a) => /^-[a-zA-Z]*[celf]|^--(command|execute|list|file)|^\\/.test(a.text));
  const asks = args.some((a) => /^--?(version|help|V)$/.test(a.text));
  if (asks || (given && found.length === 0)) return { inner: [], reads };
  return open(program, scripts(known), reads);
};

const make: Reading = (args, program) => {
  const code = texts(values(args, "E", "CIjlOoWfE", "--eval"));
  const assigned = args.flatMap((a) => /^[A-Za-z_][\w.]*[:?+]?=(.*)/s.exec(a.text)?.[1] ?? []);
  const shell = args.flatMap((a) => /^SHELL[:?+]?=(.*)/s.exec(a.text)?.[1] ?? []);
  const inner = [
    ...scripts(code.flatMap(makeTexts)),
    ...scripts(assigned.flatMap(makeTexts)),
    ...scripts(assigned.filter((v) => /\s/.test(v)).map((v) => `${v} ${unknownMark}`)),
    ...scripts(shell.map((v) => `${v} ${unknownMark}`)),
  ];
  const reads = (input: string) => scripts(makeTexts(input));
  const fromInput = readsInput(args, /^(?:-[a-zA-Z]*f|--(?:make)?file=?|--makefile=?)(.*)$/);
  if (fromInput || code.length > 0 || assigned.some((v) => v.includes("$("))) {
    return open(program, inner, fromInput ? reads : undefined);
  }
  return { inner };
};

function compiler(args: readonly Shape[]): Hidden {
  const at = args.findIndex((a) => a.text === "-wrapper");
  const wrapper = args[at + 1];
  const inner = at < 0 || wrapper === undefined
    ? []
    : [command([...wrapper.text.split(",").map((text): Shape => ({ text, path: text })), anyWords])];
  const runs = at >= 0 || args.some((a) => /^-(fplugin|specs|B|no-integrated-cpp)/.test(a.text));
  return runs
    ? { inner: [...inner, command([anyWords])], why: "the compiler would run another program" }
    : nothing;
}

const packages: Reading = (args, program) => {
  const settings = texts(values(args, "o", "oct", "--option"));
  const hooks = [
    ...settings.filter((s) =>
      /invoke|pkgs|command|::run|external|solver|method|autodetect|dir::|pager/i.test(s)
    ),
    ...texts(values(args, "c", "oct", "--config-file")).map(() => ""),
  ];
  if (hooks.length === 0) return nothing;
  return open(program, scripts(hooks.map((s) => s.slice(s.indexOf("=") + 1))));
};

const dpkg: Reading = (args, program) => {
  const hooks = args.flatMap((a) =>
    /^--(?:pre-invoke|post-invoke|status-logger)=(.*)/s.exec(a.text)?.[1] ?? []
  );
  return hooks.length === 0 ? nothing : open(program, scripts(hooks));
};

const sed: Reading = (args, program) => {
  const argv = [program, ...args.map((a) => a.text)];
  const inner = scripts(args.flatMap((a) => sedReplacements(a.text)));
  const reads = (input: string) => {
    const uses = sedUses([program, "-e", input]).filter((u) => u.kind === "runs");
    return [...scripts(uses.map((u) => u.value ?? "")), ...scripts(sedReplacements(input))];
  };
  if (readsInput(args, /^(?:-[a-zA-Z]*f|--file=?)(.*)$/)) return open(program, [], reads);
  const blind = sedUses(argv).some((u) => u.kind === "runs" && (u.value ?? "") === "");
  return blind ? open(program, inner) : nothing;
};

const awk: Reading = (args, program) => {
  const argv = [program, ...args.map((a) => a.text)];
  const reads = (input: string) => scripts(awkUses([program, input]).length === 0 ? [] : awkTexts(input));
  if (readsInput(args, /^(?:-[a-zA-Z]*[fEi]|--(?:file|exec|include)=?)(.*)$/)) {
    return open(program, [], reads);
  }
  const runs = awkUses(argv).filter((u) => u.kind === "runs");
  if (runs.length === 0) return nothing;
  const program_ = runs.map((u) => argv[u.at] ?? "");
  const set = texts(values(args, "v", "vFefilE", "--assign")).map((t) => t.slice(t.indexOf("=") + 1));
  const inner = scripts([...new Set(program_)].flatMap(awkTexts).concat(set));
  const plain = program_.every((p) =>
    /^[^|@]*\bsystem\s*\(\s*"[^"\\]*"\s*\)[^|@]*$/.test(p) && p.split(/\bsystem\b/).length === 2 ||
    !/\bsystem\b|@/.test(p) && /^[^|]*(\|\s*"[^"\\]*"|"[^"\\]*"\s*\|\s*getline)[^|]*$/.test(p)
  );
  return plain ? nothing : open(program, inner);
};

/** What code looks like that starts a program. */
export const calls = /system|exec|spawn|popen|subprocess|`|qx|\bopen\b|\brun\b|check_|shell|\bfork\b|%x/i;

// What code can do is not followed; a call that runs a program is seen, and the texts in it are looked at.
const language: Reading = (args, program) => {
  const code = args.filter((_, i) =>
    /^(-[a-zA-Z]*[ceErp]|--eval|--execute|--print|eval)$/.test(args[i - 1]?.text ?? "")
  )
    .concat(args.filter((a) => /^-[ceEr]./.test(a.text))).filter((a) => calls.test(a.text));
  const reads = (input: string) =>
    calls.test(input) ? [command([anyWords]), ...scripts(callTexts(input))] : [];
  if (code.length === 0) return { inner: [], reads };
  return open(program, scripts(code.flatMap((a) => callTexts(a.text))), reads);
};

const expect: Reading = (args, program) => {
  const run = (text: string) =>
    [...text.matchAll(/(?:^\s*|[\n;{\[][^\S\n]*)(?:spawn|exec|system)\s+(?:-noecho\s+)?([^\n;}\]]*)/g)].map((
      m,
    ) => m[1] ?? "");
  const code = texts(values(args, "c", "cDf"));
  const reads = (input: string) => scripts(run(input));
  const fromInput = args.length === 0 || args.some((a) => a.text === "-");
  return code.length === 0 && !fromInput ? nothing : open(program, scripts(code.flatMap(run)), reads);
};

const mostStarts = 8;

/** Every place at which a command may start, and every word that may be a text. */
const loose: Reading = (args, program) => {
  if (args.length === 0 || /^(ls|list-.*|has.*|info|-V|-ls|--version)$/.test(args[0]?.text ?? "")) {
    return nothing;
  }
  const starts = args.slice(0, mostStarts).map((_, i) => command(args.slice(i)));
  return {
    inner: [...starts, ...args.filter((a) => /\s/.test(a.text)).map((a) => joined([a]))],
    why: `${quoted(program)} may run another command`,
  };
};

const looseBehindVerb: Reading = (args, program) =>
  args.some((a) => /^(exec|run|shell|develop|enter|environment|--|-c|--command)$/.test(a.text))
    ? loose(args, program)
    : nothing;

const eachText: Reading = (args, program) => ({
  inner: args.filter((a) => !a.text.startsWith("-")).map((a) => joined([a])),
  why: `${quoted(program)} runs shell texts`,
});

const later: Reading = (_, program) => ({
  inner: [],
  why: `${quoted(program)} runs a text later`,
  reads: (input) => scripts([input]),
});

const crontab: Reading = (args) => ({
  inner: [],
  ...(args.some((a) => a.text === "-l") ? {} : { why: "`crontab` runs texts later" }),
  reads: (input) => scripts(input.split("\n").map((l) => l.replace(/^\s*(@\w+|(\S+\s+){5})/, ""))),
});

const capsh: Reading = (args) => {
  const from = args.findIndex((a) => /^(--|==|--shell=.*)$/.test(a.text));
  if (from < 0) return nothing;
  const bash: Shape = { text: "bash", path: "bash" };
  return { inner: [command([bash, ...args.slice(from + 1)])], why: "`capsh` runs a shell" };
};

const textOption = (letter: string, valued: string, long: string): Reading => (args, program) => {
  const found = values(args, letter, valued, long).map((v) => joined([v]));
  return found.length === 0 ? nothing : { inner: found, why: `${quoted(program)} runs a shell text` };
};

function gitCommands(words: readonly Shape[]): Hidden {
  const argv = words.map((w) => w.text);
  const at = subcommandIndex(argv);
  const rest = words.slice(at + 1);
  const inner: Inner[] = scripts(rest.flatMap((w) => /^ext::(.*)/s.exec(w.text)?.[1] ?? [])).slice();
  const git: Shape = { text: "git", path: "git" };
  const sub = argv[at] ?? "";
  if (sub === "for-each-repo") {
    // Options may take the next word or not.
    const from = rest.findIndex((w) => !w.text.startsWith("-"));
    for (const start of [from, from + 1]) if (from >= 0) inner.push(command([git, ...rest.slice(start)]));
  }
  if (sub === "submodule" || sub === "submodule--helper") {
    const each = rest.findIndex((w) => w.text === "foreach");
    const skipped = rest.slice(each + 1).findIndex((w) => !w.text.startsWith("-"));
    // Right behind the subcommand it is found as a risky option.
    if (each >= 0 && skipped >= 0 && (sub !== "submodule" || each + skipped > 0)) {
      inner.push(joined(rest.slice(each + 1 + skipped)));
    }
  }
  if (sub === "config") {
    const [key, value] = rest.filter((w) => !w.text.startsWith("-") && !/^(set|add)$/.test(w.text));
    if (key !== undefined && value !== undefined) inner.push(...setCommand(key.text, value.text));
  }
  const reads = sub === "shell" || sub === "fast-import" ? { why: "`git` runs what it reads" } : {};
  const elsewhere = words.slice(1, at).some((w) => /^--exec-path=|^include(if)?\./i.test(w.text));
  return elsewhere ? open("git", inner) : { inner, ...reads };
}

// A setting from which git runs a program.
function setCommand(key: string, value: string): readonly Inner[] {
  if (/^alias\./i.test(key)) return [script(value.startsWith("!") ? value.slice(1) : `git ${value}`)];
  const runs =
    /(pager|editor|command|program|helper|driver|textconv|hookspath|fsmonitor|askpass|cmd|process|clean|smudge|path|proxy)$/i;
  return runs.test(key) ? [script(`${value.replace(/^!/, "")} ${unknownMark}`)] : [];
}

function named(names: string, reading: Reading): readonly (readonly [string, Reading])[] {
  return names.split(" ").map((name) => [name, reading]);
}

const table: Readonly<Record<string, Reading>> = Object.fromEntries([
  ...named("jobs", jobs),
  ...named("mapfile readarray", callback),
  ...named("compgen complete", completion),
  ...named("history", history),
  ...named("fc", fc),
  ...named("alias", alias),
  ...named("hash", hash),
  ...named("enable", enable),
  ...named("bind", bind),
  ...named("vim vi view ex nvim vimdiff rvim rview gvim gview nvi elvis vile", editor),
  ...named("ed red", lineEditor),
  ...named("emacs emacsclient", emacs),
  ...named("less more most", (args, program) => {
    const lines = args.filter((a) => /^\+.*[!|]/s.test(a.text));
    return lines.length === 0 ? nothing : open(program, scripts(lines.flatMap((a) => exTexts(a.text))));
  }),
  ...named("gdb lldb", debuggerOf),
  ...named("sqlite3 sqlite psql mysql mariadb", database),
  ...named("make gmake bmake", make),
  ...named("apt apt-get apt-cache apt-config aptitude apt-ftparchive", packages),
  ...named("dpkg dpkg-deb dpkg-buildpackage", dpkg),
  ...named("sed gsed", sed),
  ...named("awk gawk mawk nawk original-awk", awk),
  ...named(
    "python python2 python3 pypy pypy3 perl ruby node nodejs php lua luajit deno bun tclsh wish guile osascript groovy elixir erl scala r rscript julia gnuplot octave pwsh powershell",
    language,
  ),
  ...named("expect", expect),
  ...named(
    "tmux screen byobu zellij dtach abduco setarch start-stop-daemon daemonize daemon xterm uxterm rxvt urxvt lxterminal konsole " +
      "gnome-terminal mate-terminal xfce4-terminal alacritty kitty terminator foot x-terminal-emulator systemd-nspawn watchexec " +
      "nodemon reflex",
    loose,
  ),
  ...named(
    "ip machinectl distrobox toolbox flatpak-spawn lxc nix guix conda mamba micromamba",
    looseBehindVerb,
  ),
  ...named("pee mispipe concurrently start-server-and-test", eachText),
  ...named("at batch", later),
  ...named("crontab", crontab),
  ...named("capsh", capsh),
  ...named("runuser", textOption("c", "cugGsw", "--command")),
  ...named("nix-shell", textOption("c", "cpiI", "--run")),
  ...named("vagrant", textOption("c", "c", "--command")),
]);

/** What runs because a variable is set: pagers, editors, helpers, prompts. */
export function assignedCommands(assignment: string): readonly Inner[] {
  const [, name = "", value = ""] = /^([A-Za-z_]\w*)\+?=(.*)$/s.exec(assignment) ?? [];
  if (/^PS[0-4]$/.test(name)) return [script(`: "${value}"`)];
  const runs =
    /COMMAND|PAGER|^GIT_CONFIG_VALUE_|EDITOR$|VISUAL$|SHELL$|BROWSER$|^LESS(OPEN|CLOSE)$|RSH$|^GIT_SSH|ASKPASS$|WRAPPER$|_CMD$|EXTERNAL_DIFF$|^MAKEFLAGS$|PROXY_COMMAND$|^(CC|CXX|LD)$/;
  if (!runs.test(name) || value.trim() === "") return [];
  return scripts(name === "MAKEFLAGS" ? makeTexts(value) : [`${value.replace(/^\|/, "")} ${unknownMark}`]);
}
