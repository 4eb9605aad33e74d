// `writ session verify`: whether the record holds, and who speaks for it.
import { resolve } from "node:path";
import { LogFailure } from "../../agent/ports.ts";
import { exitCodes } from "../../core/outcome.ts";
import { plural } from "../../core/plural.ts";
import { showProblems } from "../../core/problem.ts";
import { checkChain } from "../../store/chain.ts";
import { forksOf } from "../../store/fork_links.ts";
import { signer } from "../../store/head_file.ts";
import { readHeads } from "../../store/heads_file.ts";
import { findLog, listSessions, logPath, readLog } from "../../store/session_files.ts";
import { type Fault, type Verdict, verifySession, type Witness } from "../../store/verify.ts";
import type { Context } from "../command.ts";
import { toJsonLine } from "../json_line.ts";
import { readAuditKey } from "../../session/session_store.ts";
import type { DirOptions, Site } from "./session.ts";

type VerifyOptions = DirOptions & {
  readonly heads?: string;
  readonly key?: string;
  readonly anchored?: boolean;
};

export async function verify(
  context: Context,
  site: Site,
  id: string | undefined,
  options: VerifyOptions,
): Promise<number> {
  const { output } = context;
  const witness = await witnessOf(context, site, options);
  const verdicts = logsOf(site.dir, id).map((log) => verifySession(site.dir, log, witness));
  const missing = id === undefined ? gone(verdicts, witness) : [];
  if (options.json === true) {
    output.result(toJsonLine({ sessions: verdicts, ...(missing.length === 0 ? {} : { missing }) }));
  } else {
    for (const verdict of verdicts) output.result(output.safe(describe(verdict)));
    for (const name of missing) output.result(output.safe(`${name}: gone; the file of heads names it\n`));
  }
  if (verdicts.length === 0) output.note(`no sessions in ${site.dir}`);
  const enough = (v: Verdict) => options.anchored === true ? v.result === "anchored" : v.result !== "damaged";
  // A session may have been cleared away; who asks for anchors wants to know.
  return verdicts.every(enough) && (missing.length === 0 || options.anchored !== true)
    ? exitCodes.done
    : exitCodes.audit;
}

async function witnessOf(context: Context, site: Site, options: VerifyOptions): Promise<Witness> {
  const { cwd, env } = context.host;
  const heads = options.heads === undefined ? site.audit.heads : resolve(cwd, options.heads);
  const source = options.key === undefined ? site.audit.key : { file: resolve(cwd, options.key) };
  const key = source === undefined ? undefined : await readAuditKey(source, env);
  if (key?.ok === false) throw new LogFailure("no_key", showProblems(key.problems).join("; "));
  return {
    ...(heads === undefined ? {} : { heads: readHeads(heads) }),
    ...(key === undefined ? {} : { sign: signer(key.value) }),
  };
}

function logsOf(
  dir: string,
  id: string | undefined,
): readonly { readonly id: string; readonly path: string }[] {
  if (id === undefined) return listSessions(dir).map((s) => ({ id: s.id, path: s.path }));
  const path = logPath(dir, id);
  const forks = forksIn(path).flatMap((fork) => {
    const log = findLog(dir, fork);
    // One that is not there shows in the links of the session.
    return log === undefined ? [] : [{ id: fork, path: log }];
  });
  return [{ id, path }, ...forks];
}

function forksIn(path: string): readonly string[] {
  try {
    return forksOf(checkChain(readLog(path)).events);
  } catch (error) {
    if (error instanceof LogFailure) return [];
    throw error;
  }
}

function gone(verdicts: readonly Verdict[], { heads }: Witness): readonly string[] {
  const there = new Set(verdicts.map((v) => v.id));
  return [...heads?.keys() ?? []].filter((id) => !there.has(id)).sort();
}

function describe({ id, result, events, head, anchoredBy, faults }: Verdict): string {
  const by = anchoredBy.length === 0 ? "" : ` (${anchoredBy.join(", ")})`;
  const [first, ...others] = faults.map(showFault);
  return [
    `${id}: ${result}${by}, ${plural(events, "event")}, head ${head?.slice(0, 16) ?? "-"}${
      first === undefined ? "" : `; ${first}`
    }\n`,
    ...others.map((other) => `  ${other}\n`),
  ].join("");
}

function showFault({ line, message }: Fault): string {
  return line === undefined ? message : `line ${line}: ${message}`;
}
