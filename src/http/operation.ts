// What an endpoint is, as a value: its row in the table is all that routing, checks and the API document know of it.
import type * as v from "valibot";
import type { Caller, Role, SessionHost } from "../server/host.ts";
import type { Occurrence, ProblemCode } from "./problem.ts";
import type { Streams } from "./streams.ts";
import type { Credential } from "./tokens.ts";

/** What every handler has to work with. */
export type Service = {
  readonly host: SessionHost;
  readonly streams: Streams;
  readonly version: string;
  /** New for every process. */
  readonly instance: string;
  readonly runtime: string;
  /** The API document, made when it is asked for first. */
  document(): Promise<unknown>;
  /** Begins to go down and returns at once; `graceMs` absent: as the policy says. */
  goDown(graceMs?: number): void;
};

/** One request, already admitted and checked against its schemas. */
export type Call<P, Q, B> = {
  readonly service: Service;
  readonly caller: Caller;
  readonly credential: Credential;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly headers: Headers;
  readonly requestId: string;
  /** As `Idempotency-Key` and the hash of the body; absent where no key was sent. */
  readonly idempotency?: { readonly key: string; readonly bodyHash: string; readonly scope: string };
};

/** Any schema of an object of texts, as paths and queries are. */
export type TextSchema = v.GenericSchema<{ readonly [name: string]: string | undefined }, unknown>;
type Out<S> = S extends v.GenericSchema ? v.InferOutput<S> : undefined;

/** `schema` of a JSON body; other bodies have a media type and are described in words alone. */
export type AnswerShape = {
  readonly about: string;
  readonly schema?: v.GenericSchema;
  readonly media?: readonly string[];
  readonly headers?: { readonly [name: string]: string };
};

/** A value becomes JSON; a Response goes out as it is; an occurrence is a refusal. */
export type Answer =
  | {
    readonly status: number;
    readonly value: unknown;
    readonly headers?: { readonly [name: string]: string };
  }
  | { readonly refused: Occurrence }
  | Response;

export type Operation = {
  /** Of the API document and of the client made from it. */
  readonly id: string;
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** `:name` stands for one segment. */
  readonly path: string;
  readonly summary: string;
  /** Absent: no token is asked for. */
  readonly role?: Role;
  readonly params?: TextSchema;
  readonly query?: TextSchema;
  readonly body?: v.GenericSchema;
  /** Of these beside `Authorization` and `X-Request-Id`. */
  readonly headers?:
    readonly ("Idempotency-Key" | "If-Match" | "If-None-Match" | "Prefer" | "Last-Event-ID")[];
  readonly answers: { readonly [status: number]: AnswerShape };
  /** Codes that this operation itself answers; those of the checks before it are added in the document. */
  readonly problems: readonly ProblemCode[];
  /** It starts work, so it is refused once the server goes down. */
  readonly startsWork?: true;
  /** Requests a second of one token; absent: not counted. */
  readonly rate?: number;
  run(call: Call<unknown, unknown, unknown>): Promise<Answer> | Answer;
};

type Typed<P, Q, B> = Omit<Operation, "params" | "query" | "body" | "run"> & {
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  run(call: Call<Out<P>, Out<Q>, Out<B>>): Promise<Answer> | Answer;
};

/** A row of the table, with the types of what its handler is called with taken from its schemas. */
export function operation<
  P extends TextSchema | undefined = undefined,
  Q extends TextSchema | undefined = undefined,
  B extends v.GenericSchema | undefined = undefined,
>(row: Typed<P, Q, B>): Operation {
  // The schemas are what the handler's arguments were checked with: app.ts runs them first.
  return row as unknown as Operation;
}

/** Requests a second that every operation with a body may be sent by one token. */
export const postRate = 20;
