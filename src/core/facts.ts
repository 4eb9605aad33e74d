// What is known of one tool call when it is decided: computed before, by the shell, from what will really run.
import type { Risk } from "./decision.ts";
import type { Args } from "./message.ts";

export type Mode = "interactive" | "unattended";

/** One simple command of a shell text. */
export type Part = {
  /** Words after unquoting; empty when the program is not known. */
  readonly argv: readonly string[];
  /** As written, for people. */
  readonly text: string;
  /** Assignment prefixes as written, such as `TZ=UTC`. */
  readonly assignments: readonly string[];
  /** Allow rules cover only `top`; deny, ask and gate patterns look at `inner` too. */
  readonly level: "top" | "inner";
  /** Why no allow rule may cover it; undefined when every word is known. */
  readonly notUnderstood?: string;
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

/** One host that a call talks to, redirect hops included. */
export type HostFact = { readonly written: string; readonly host: string; readonly private: boolean };

/**
 * The units that are judged one by one; the strictest decides the call. An `operand` (a path operand or input
 * redirection of a shell command) meets deny and ask rules and protection only.
 */
export type Subject =
  | { readonly kind: "call" }
  | { readonly kind: "part"; readonly part: Part }
  | { readonly kind: "path"; readonly tool: string; readonly path: PathFact; readonly operand: boolean }
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
  switch (subject.kind) {
    case "call":
      return undefined;
    case "part":
      return subject.part.text;
    case "path":
      return subject.path.resolved ?? subject.path.written;
    case "host":
      return subject.host.host;
  }
}
