// What is known of one tool call when it is decided: computed before, by the shell, from what will really run.
import type { Risk } from "./decision.ts";
import type { Args } from "./message.ts";

export type Mode = "interactive" | "unattended";

/**
 * A word that is known only in pieces: the texts before, between and after what is unknown. `many`: it may become no
 * word or several. `glob`: it stands for file names.
 */
export type Blur = {
  readonly at: number;
  readonly pieces: readonly string[];
  readonly many: boolean;
  readonly glob?: true;
};

/** One simple command of a shell text. */
export type Part = {
  /** Words after unquoting, program first; a word that `blurs` names stands as written. Empty: no program is started. */
  readonly argv: readonly string[];
  /** The words whose value is not known. */
  readonly blurs?: readonly Blur[];
  /** As written, for people. */
  readonly text: string;
  /** Assignment prefixes, such as `TZ=UTC`, unquoted when their value is known. */
  readonly assignments: readonly string[];
  /**
   * Allow rules cover only `top`; deny, ask and gate patterns look at `inner` too. `guessed`: a program of which nothing is
   * known may run these words; only patterns of commands that restrict speak of them.
   */
  readonly level: "top" | "inner" | "guessed";
  /** Of guessed words: the program that may run them, as written. */
  readonly mayRun?: string;
  /** The command may start at any of the words. */
  readonly anyStart?: true;
  /** Why an allow rule does not cover it as a matter of course; undefined when there is no reason. */
  readonly notUnderstood?: string;
  /** In spite of `notUnderstood` every word is known: an allow rule that says these words covers it. */
  readonly nameable?: true;
  /** The exit status of the text is not this command's: it runs in the background, is negated, or is one of several. */
  readonly statusHidden?: true;
};

/** One file or folder that a call touches. Paths are absolute and normalised. */
export type PathFact = {
  readonly written: string;
  /** The written path made absolute, links not followed. */
  readonly absolute: string;
  /** Where it leads; undefined when it cannot be resolved. */
  readonly resolved?: string;
  readonly inWorkspace: boolean;
  /** The protect entry that covers it. */
  readonly protectedBy?: string;
};

/** Absolute paths below a folder that is read or changed with all that it holds; `cut`: there are more. */
export type Below = { readonly paths: readonly string[]; readonly cut: boolean };

/** One host that a call talks to, redirect hops included. */
export type HostFact = {
  readonly written: string;
  readonly host: string;
  readonly private: boolean;
  /** The private address that a name led to. */
  readonly leadsTo?: string;
};

/**
 * The units that are judged one by one; the strictest decides the call. An `operand` (a path operand or input
 * redirection of a shell command) meets deny and ask rules and protection only.
 */
export type Subject =
  | { readonly kind: "call" }
  | {
    readonly kind: "part";
    readonly part: Part;
    /** Of a call that is not `shell` itself and runs this command: the tool whose rules restrict it beside the call's own. */
    readonly tool?: "shell";
  }
  | {
    readonly kind: "path";
    readonly tool: string;
    readonly path: PathFact;
    readonly operand: boolean;
    readonly below?: Below;
  }
  | { readonly kind: "host"; readonly host: HostFact };

export type Facts = {
  readonly tool: string;
  readonly args: Args;
  readonly risk: Risk;
  readonly subjects: readonly [Subject, ...Subject[]];
  /** `default` unless the call or a rule names one of the policy's boxes. */
  readonly box: string;
  /** `skill:<name>`, in activation order; set by the engine, never by the model. */
  readonly sourcedBy: readonly string[];
  readonly mode: Mode;
  /** Each is a deny vote. */
  readonly errors: readonly { readonly code: string; readonly message: string }[];
};

/** How a subject is named in causes; undefined for the call as a whole. */
export function showSubject(subject: Subject): string | undefined {
  if (subject.kind === "part") return showPart(subject.part);
  if (subject.kind === "path") return subject.path.resolved ?? subject.path.written;
  return subject.kind === "host" ? subject.host.host : undefined;
}

function showPart({ mayRun, text }: Part): string {
  return mayRun === undefined ? text : `\`${mayRun}\` may run its words \`${text}\``;
}
