// The two servers of the runtimes behind one function. What they differ in is here and nowhere else.
import process from "node:process";
import { type Address, withOwnSocket } from "./address.ts";

export type Handler = (request: Request) => Promise<Response>;

export type Listening = {
  /** The port that is listened at; 0 of a unix socket. */
  readonly port: number;
  /** Ends all connections, those that are in use too. */
  stop(): Promise<void>;
};

/** Listens at once. `handler` never rejects. Throws what the runtime throws when the address cannot be had. */
export function listen(address: Address, handler: Handler): Listening {
  return withOwnSocket(
    address,
    () => process.versions["bun"] !== undefined ? listenBun(address, handler) : listenDeno(address, handler),
  );
}

type BunServer = { readonly port?: number; stop(closeAll: boolean): Promise<void> };
type BunRuntime = { serve(options: { readonly [name: string]: unknown }): BunServer };

function listenBun(address: Address, handler: Handler): Listening {
  const { Bun } = globalThis as unknown as { readonly Bun: BunRuntime };
  const server = Bun.serve({
    ...(address.kind === "unix" ? { unix: address.path } : { hostname: address.address, port: address.port }),
    fetch: handler,
    // A stream may be silent for longer than the ten seconds after which Bun ends it otherwise.
    idleTimeout: 0,
    development: false,
  });
  return { port: server.port ?? 0, stop: () => server.stop(true) };
}

type DenoServer = {
  readonly addr: { readonly port?: number };
  readonly finished: Promise<void>;
};
type DenoRuntime = { serve(options: { readonly [name: string]: unknown }, handler: Handler): DenoServer };

function listenDeno(address: Address, handler: Handler): Listening {
  const { Deno } = globalThis as unknown as { readonly Deno: DenoRuntime };
  const end = new AbortController();
  const server = Deno.serve({
    ...(address.kind === "unix"
      ? { transport: "unix", path: address.path }
      : { hostname: address.address, port: address.port }),
    signal: end.signal,
    onListen: () => {},
  }, handler);
  return {
    port: server.addr.port ?? 0,
    stop: () => {
      end.abort();
      return server.finished;
    },
  };
}
