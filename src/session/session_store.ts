// Where the sessions of these settings are recorded: the store, what signs its heads, and where every turn's end is told.
import { join } from "node:path";
import { isWithin } from "../core/path.ts";
import type { Policy } from "../core/policy.ts";
import type { Loaded } from "../core/problem.ts";
import { sessionsFolder, type Surroundings } from "../load/locate.ts";
import { describeSource, readSecret } from "../load/secret.ts";
import { run } from "../sandbox/subprocess.ts";
import { fileStore } from "../store/file_store.ts";
import { type Sign, signer } from "../store/head_file.ts";
import { appendHead } from "../store/heads_file.ts";
import type { Anchor } from "../store/session_log.ts";
import type { Store } from "../store/store.ts";
import { fault } from "./fault.ts";
import { lockOptions } from "./file_lock.ts";

export type SessionStore = {
  /** One folder a session. */
  readonly dir: string;
  readonly store: Store;
  /** Told of every turn that ended. */
  readonly anchor?: Anchor;
  /** What signs, as it was read: to be redacted. */
  readonly key?: string;
};

type Settings = { readonly policy: Policy; readonly surroundings: Surroundings; readonly trusted: boolean };

/** Reads the key that signs, if the policy names one. A Problem means that nothing may run. */
export async function openStore({ policy, surroundings, trusted }: Settings): Promise<Loaded<SessionStore>> {
  const dir = sessionsFolder(surroundings, policy.auditDir);
  const { heads, key: source } = policy.audit;
  const key = source === undefined ? undefined : await readAuditKey(source, surroundings.env);
  if (key?.ok === false) return key;
  if (heads !== undefined && !trusted && isWithin(heads, policy.root)) {
    return fault(
      "heads-in-workspace",
      `\`audit.heads\` lies in the workspace, which is not trusted: \`${heads}\``,
      "name a file outside of it: what ships the lines must not depend on what is worked on",
    );
  }
  const sign = key === undefined ? undefined : signer(key.value);
  const store = fileStore({
    dir,
    ...await lockOptions(),
    ...(sign === undefined ? {} : { sign }),
  });
  return {
    ok: true,
    problems: [],
    value: {
      dir,
      store,
      ...(heads === undefined ? {} : { anchor: anchorTo(heads, sign) }),
      ...(key === undefined ? {} : { key: key.value }),
    },
  };
}

/** Short keys are guessed. */
const shortestKey = 16;

/** The key of `audit.key`, without white space around it. */
export async function readAuditKey(
  source: NonNullable<Policy["audit"]["key"]>,
  env: Surroundings["env"],
): Promise<Loaded<string>> {
  const named = `\`audit.key\`: ${describeSource(source)}`;
  const read = await readSecret(source, { env, run });
  if (!read.ok) return fault("no-audit-key", `${named} ${read.found}`);
  const value = read.text.trim();
  if (value.length >= shortestKey) return { ok: true, value, problems: [] };
  return fault(
    "no-audit-key",
    `${named} holds ${value.length} characters, expected at least ${shortestKey}`,
    "make one with `openssl rand -hex 32`",
  );
}

/** The folder of a session's own files. */
export function sessionFolder(at: Pick<SessionStore, "dir">, id: string): string {
  return join(at.dir, id);
}

function anchorTo(path: string, sign: Sign | undefined): Anchor {
  return (head) => appendHead(path, sign === undefined ? head : { ...head, mac: sign(head) });
}
