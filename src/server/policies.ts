// The policy of each session, read anew for every turn, and that of the host itself, which only a reload exchanges.
import { resolve } from "node:path";
import { isError, type Loaded, type Problem, showProblem } from "../core/problem.ts";
import { canonicalJson } from "../core/text.ts";
import type { Host } from "../session/host.ts";
import { type PolicyChoice, readSettings, type Settings } from "../session/settings.ts";
import type { PolicyStatus } from "./host.ts";
import { plain } from "./outcome.ts";

export type Policies = {
  /** The host's own, as it was loaded last. */
  own(): Settings;
  /** As files and workspace are now, for a profile or the host's own choice. */
  read(profile: string | undefined, cwd: string): Promise<Loaded<Settings>>;
  status(): PolicyStatus;
  /** Problems leave the old one in force. Keys that have another value, in order. */
  reload(): Promise<Loaded<{ readonly previous: string; readonly changed: readonly string[] }>>;
};

/** Problems mean that there is no policy to begin with. */
export async function openPolicies(machine: Host, choice: PolicyChoice): Promise<Loaded<Policies>> {
  const first = await readSettings(machine, choice);
  if (!first.ok) return first;
  let own: Settings = first.value;
  let activatedAt = new Date().toISOString();
  let failed: { readonly at: string; readonly errors: readonly Problem[] } | undefined;
  return {
    ok: true,
    problems: first.problems,
    value: {
      own: () => own,
      async read(profile, cwd) {
        const file = profile === undefined ? undefined : own.policy.server.profiles[profile];
        if (profile !== undefined && file === undefined) return { ok: false, problems: [noProfile(profile)] };
        const { directory: _, ...rest } = choice;
        return await readSettings(
          { ...machine, cwd },
          file === undefined ? absolute(rest, machine) : {
            ...rest,
            policy: [file],
          },
        );
      },
      status: () => ({
        revision: own.policy.revision,
        activatedAt,
        sources: own.policy.files.map(({ layer, path }) => ({ layer, path })),
        ...(failed === undefined ? {} : { lastError: failed }),
      }),
      async reload() {
        const next = await readSettings(machine, choice);
        if (!next.ok) {
          failed = { at: new Date().toISOString(), errors: next.problems.filter(isError) };
          return next;
        }
        const before = own;
        own = next.value;
        failed = undefined;
        activatedAt = new Date().toISOString();
        const value = { previous: before.policy.revision, changed: changedKeys(before, own) };
        return { ok: true, value, problems: next.problems };
      },
    },
  };
}

// Files of the command line are named from where the host was started, not from a session's folder.
function absolute(choice: PolicyChoice, { cwd }: Host): PolicyChoice {
  const { policy } = choice;
  return policy === undefined ? choice : { ...choice, policy: policy.map((file) => resolve(cwd, file)) };
}

function noProfile(name: string): Problem {
  return {
    code: "no-profile",
    severity: "error",
    message: `\`server.profiles\` has no \`${name}\` any more`,
    hint: "put it back, or begin a session with another one",
  };
}

function changedKeys(before: Settings, now: Settings): readonly string[] {
  const valuesOf = ({ origin }: Settings) =>
    new Map(origin.map(({ key, value }) => [key, canonicalJson(plain(value ?? null))]));
  const [old, next] = [valuesOf(before), valuesOf(now)];
  const keys = new Set([...old.keys(), ...next.keys()]);
  return [...keys].filter((key) => old.get(key) !== next.get(key)).sort();
}

/** A line for whoever runs the server. */
export function problemLine(problems: readonly Problem[]): string {
  return problems.filter(isError).map(showProblem).join("; ");
}
