// What keeps sessions, as a type: files now, a data base for fleets later. Everything above goes through it, and every driver
// passes test/store/conformance.ts.
import type { Event } from "../core/event.ts";

/** At once, where the driver can. Callers that must know await it. */
export type Soon<T> = T | Promise<T>;

/** An event and the bytes that are kept of it: one line, newline included, never made anew from the event. */
export type Sealed = { readonly event: Event; readonly line: Uint8Array };

export type Appended =
  | { readonly kind: "appended"; readonly seq: number }
  /** Somebody was faster: the log ends elsewhere. Nothing was written. */
  | { readonly kind: "conflict"; readonly lastSeq: number }
  /** The claim is no longer the newest, or is given back. Nothing was written. */
  | { readonly kind: "fenced"; readonly epoch: number };

/** The right to append, until it is released or a later claim has a higher epoch. */
export type Claim = {
  readonly epoch: number;
  /** All that is recorded, checked; empty for a new session. */
  readonly events: readonly Event[];
  readonly recovered?: Recovered;
};

/** What a crash left at the end of a log was kept aside and cut off. */
export type Recovered = {
  readonly bytes: number;
  readonly savedAs: string;
  /** Events that were known to be recorded and are gone; absent: none. */
  readonly lost?: number;
};

/** Everything may fail with LogFailure: `no_session`, `session_busy`, `log_damaged`, `log_unwritable`. */
export type Store = {
  /** Makes a session and claims it. */
  create(id: string): Promise<Claim>;
  /** Takes a session that nobody holds; `session_busy` says who does. A log that does not hold is refused, never cut. */
  claim(id: string): Promise<Claim>;
  /** Whether the claim still is the newest; where claims run out, it lasts anew from now. */
  renew(id: string, epoch: number): Promise<boolean>;
  /** Gives the claim back; never rejects, and does nothing for a claim that is not the newest. */
  release(id: string, epoch: number): Promise<void>;
  /** Removes a claimed session and all that belongs to it. */
  remove(id: string, epoch: number): Promise<void>;
  /**
   * All of the events or none, behind `expectedSeq`. Appends take effect in the order of the calls, also when an earlier one
   * has not been answered. A failed one may be tried again.
   */
  append(id: string, expectedSeq: number, epoch: number, events: readonly Sealed[]): Soon<Appended>;
  /** What was appended survives a loss of power from here on. */
  sync(id: string, epoch: number): Soon<void>;
  /** The events behind seq `after`, at most `limit`, whoever holds the session. */
  read(id: string, after: number, limit: number): Promise<readonly Event[]>;
  /** The events behind seq `after` as they come, each once and in order, until `signal` aborts; then it ends. */
  tail(id: string, after: number, signal: AbortSignal): AsyncIterable<Event>;
};
