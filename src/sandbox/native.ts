// System calls that no runtime offers: the C library's syscall(2) and execve(2), in Bun and in Deno.
// The one file that speaks to a runtime by its own name, since neither offers these under `node:`.
import process from "node:process";

export type Native = {
  /** The result; negative: the call failed. Arguments are numbers or memory that lives until the call returns. */
  syscall(number: number, ...args: readonly (number | Uint8Array)[]): number;
  /** Where the memory lies, for a structure that points to it; the caller keeps it alive. */
  address(memory: Uint8Array): bigint;
  /** Becomes another program; returns only when that failed. */
  execve(path: string, argv: readonly string[], env: readonly string[]): number;
};

const syscallArguments = 6;

/** Throws where no C library can be opened. */
export async function openNative(): Promise<Native> {
  const { call, address } = await openLibrary();
  const encoder = new TextEncoder();
  const cString = (text: string) => encoder.encode(`${text}\0`);
  const cList = (strings: readonly Uint8Array[]) => {
    const pointers = new BigUint64Array(strings.length + 1);
    for (const [index, text] of strings.entries()) pointers[index] = address(text);
    return new Uint8Array(pointers.buffer);
  };
  return {
    address,
    syscall(number, ...args) {
      const words = args.map((a) => (typeof a === "number" ? BigInt(a) : address(a)));
      while (words.length < syscallArguments) words.push(0n);
      return Number(call.syscall(BigInt(number), words));
    },
    execve(path, argv, env) {
      // Held here, so that nothing is collected before the call.
      const memory = { path: cString(path), argv: argv.map(cString), env: env.map(cString) };
      const lists = { argv: cList(memory.argv), env: cList(memory.env) };
      return call.execve(address(memory.path), address(lists.argv), address(lists.env));
    },
  };
}

/**
 * Has every file that this process was started with, save its three streams, closed in the programs that it starts. Bun does
 * so by itself; Deno hands them on.
 */
export async function keepInheritedFiles(): Promise<void> {
  if (process.versions["bun"] !== undefined) return;
  const closeRange = 436;
  const onExec = 4;
  (await openNative()).syscall(closeRange, 3, 0xffffffff, onExec);
}

type Library = {
  readonly call: {
    syscall(number: bigint, args: readonly bigint[]): bigint;
    execve(path: bigint, argv: bigint, env: bigint): number;
  };
  address(memory: Uint8Array): bigint;
};

// glibc, then musl.
const libraries = [
  "libc.so.6",
  `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`,
  "libc.so",
];

async function openLibrary(): Promise<Library> {
  const failures: string[] = [];
  for (const name of libraries) {
    try {
      return process.versions["bun"] === undefined ? openByDeno(name) : await openByBun(name);
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(`no C library can be opened (${failures.join("; ")})`);
}

async function openByBun(name: string): Promise<Library> {
  const { dlopen, FFIType, ptr } = await import("bun:ffi");
  const long = FFIType.i64;
  const { symbols } = dlopen(name, {
    syscall: { args: [long, long, long, long, long, long, long], returns: long },
    execve: { args: [long, long, long], returns: FFIType.i32 },
  });
  return {
    call: {
      syscall: (number, [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n]) =>
        BigInt(symbols.syscall(number, a, b, c, d, e, f)),
      execve: (path, argv, env) => Number(symbols.execve(path, argv, env)),
    },
    // An empty array has no address; nobody reads from it.
    address: (memory) => memory.length === 0 ? 0n : BigInt(ptr(memory)),
  };
}

type DenoFfi = {
  dlopen(name: string, symbols: object): {
    readonly symbols: { readonly [name: string]: (...args: readonly bigint[]) => bigint | number };
  };
  readonly UnsafePointer: { of(memory: Uint8Array): unknown; value(pointer: unknown): bigint };
};

function openByDeno(name: string): Library {
  const deno = (globalThis as { readonly Deno?: DenoFfi }).Deno;
  if (deno === undefined) throw new Error("this runtime opens no libraries");
  const { symbols } = deno.dlopen(name, {
    syscall: { parameters: Array(7).fill("i64"), result: "i64" },
    execve: { parameters: Array(3).fill("i64"), result: "i32" },
  });
  const { syscall, execve } = symbols;
  if (syscall === undefined || execve === undefined) throw new Error("it lacks syscall or execve");
  return {
    call: {
      syscall: (number, [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n]) =>
        BigInt(syscall(number, a, b, c, d, e, f)),
      execve: (path, argv, env) => Number(execve(path, argv, env)),
    },
    address: (memory) => BigInt(deno.UnsafePointer.value(deno.UnsafePointer.of(memory))),
  };
}
