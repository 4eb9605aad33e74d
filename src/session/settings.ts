// Options and machine → the policy in force, with the question of trust asked where somebody can answer it.
import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { inspectOffline } from "../agent/inspect.ts";
import { unavailable } from "../core/catalog.ts";
import { isOperand } from "../core/covering.ts";
import type { Policy } from "../core/policy.ts";
import type { Loaded } from "../core/problem.ts";
import { matchesSubject, type Rule } from "../core/rule.ts";
import { wildcard } from "../core/text.ts";
import { unknownNames } from "../core/unknown_names.ts";
import { loadPolicy } from "../load/load_policy.ts";
import type { Surroundings } from "../load/locate.ts";
import type { RuleExample } from "../load/policy_rules.ts";
import type { Origin } from "../load/policy_settings.ts";
import type { TrustAnswer, WorkspaceContent } from "../load/trust.ts";
import { builtinTools } from "../tools/registry.ts";
import { mainArgument } from "../core/tool_names.ts";
import { placeOf } from "./agent_parts.ts";
import { loadCatalog, mayLackSkills } from "./catalog.ts";
import type { Host } from "./host.ts";
import { fault } from "./fault.ts";
import { withChosenModel } from "./model.ts";
import { version } from "./version.ts";

export type Settings = {
  readonly policy: Policy;
  readonly origin: readonly Origin[];
  /** The `match` and `no_match` of its rules. */
  readonly examples: readonly RuleExample[];
  readonly trusted: boolean;
  /** Present when the workspace is trusted for what it was when somebody said so: nothing else of it counts. */
  readonly trustedContent?: WorkspaceContent;
  readonly surroundings: Surroundings;
  /** Real path of the current folder. */
  readonly cwd: string;
  /** What stands in the place of the user's own policy files. */
  readonly replacedBy?: "--policy" | "WRIT_POLICY";
};

/** Which policy is wanted, and where; paths are relative to the host's folder. */
export type PolicyChoice = {
  readonly policy?: readonly string[];
  readonly trust?: boolean;
  readonly untrusted?: boolean;
  readonly directory?: string;
  /** One of the model's choices, in the place of the policy's own. */
  readonly model?: string | undefined;
};

/** What is worth saying of how they came about, a line each. */
export type ReadSettings = Settings & { readonly notices: readonly string[] };

/** `askTrust` is called only when there is a question; what it throws goes through. */
export async function readSettings(
  host: Host,
  options: PolicyChoice,
  askTrust?: (root: string, content: WorkspaceContent) => Promise<TrustAnswer>,
): Promise<Loaded<ReadSettings>> {
  const cwd = resolve(host.cwd, options.directory ?? ".");
  if (!existsSync(cwd) || !statSync(cwd).isDirectory()) {
    return fault("no-workspace", `\`${cwd}\` is no folder`, "give an existing one with -C");
  }
  if (options.trust === true && options.untrusted === true) {
    return fault("usage", "`--trust` and `--untrusted` exclude each other", "give one of them");
  }
  const surroundings: Surroundings = {
    env: host.env,
    platform: host.platform,
    cwd,
    home: host.home,
    ...(host.machineFolder === undefined ? {} : { machineFolder: host.machineFolder }),
  };
  const loaded = await loadPolicy({
    at: surroundings,
    version,
    policies: (options.policy ?? []).map((file) => resolve(host.cwd, file)),
    ...(options.trust === true ? { trustFlag: "trusted" as const } : {}),
    ...(options.untrusted === true ? { trustFlag: "untrusted" as const } : {}),
    ...(askTrust === undefined ? {} : { askTrust }),
    further: (policy, trust) => {
      const found = { policy, surroundings, trusted: trust === "trusted" };
      const loaded = loadCatalog(found);
      return [
        ...unavailable(loaded.catalog, policy),
        ...(mayLackSkills(found) ? [] : unknownNames(policy, loaded.catalog)),
      ];
    },
    matchesExample: (policy) => (rule, example) => matchesExample(policy, surroundings, rule, example),
  });
  if (!loaded.ok) return loaded;
  const { policy, origin, examples, trust, notices, content } = loaded.value;
  const byAnswer = trust === "trusted" && policy.trust === "ask" && options.trust !== true;
  const settings: Settings = {
    policy,
    origin,
    examples,
    trusted: trust === "trusted",
    ...(byAnswer ? { trustedContent: content } : {}),
    surroundings,
    cwd,
    ...replacedBy(host, options),
  };
  const chosen = withChosenModel(settings, options.model);
  return chosen.ok ? { ...chosen, value: { ...chosen.value, notices }, problems: loaded.problems } : chosen;
}

function replacedBy(host: Host, options: PolicyChoice): Pick<Settings, "replacedBy"> {
  if ((options.policy ?? []).length > 0) return { replacedBy: "--policy" };
  return host.env["WRIT_POLICY"] === undefined ? {} : { replacedBy: "WRIT_POLICY" };
}

// An example of an allow rule must be covered whole; of a rule that restricts, any part is enough.
function matchesExample(policy: Policy, surroundings: Surroundings, rule: Rule, example: string): boolean {
  const place = placeOf({ policy, surroundings });
  return builtinTools.some((tool) => {
    const name = mainArgument(tool.name);
    if (name === undefined || !rule.tools.some((glob) => wildcard(glob, tool.name))) return false;
    const facts = inspectOffline(tool, { [name]: example }, {
      place,
      mode: rule.mode ?? "interactive",
      sourcedBy: rule.sourcedBy ?? [],
    });
    const matches = (subject: (typeof facts.subjects)[number]) =>
      matchesSubject(rule, facts, subject, rule.effect === "allow" ? "allow" : "restrict", policy.root);
    const judged = facts.subjects.filter((s) => !isOperand(s));
    return rule.effect === "allow" ? judged.every(matches) : facts.subjects.some(matches);
  });
}
