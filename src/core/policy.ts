// The compiled policy: all layers, already checked; what the loop and the engine read, and nothing else.
import type { SandboxSettings } from "./box.ts";
import type { Effect, LayerName, Risk } from "./decision.ts";
import type { Matchers, PathPattern, Rule } from "./rule.ts";
import type { McpServer } from "./mcp.ts";
import type { Json } from "./message.ts";
import type { Prices } from "./price.ts";
import type { Position } from "./problem.ts";
import type { Pattern } from "./text.ts";

export type DefaultEffects = { readonly [R in Risk]?: { readonly effect: Effect; readonly at: Position } };

export type Layer = {
  readonly name: LayerName;
  readonly rules: readonly Rule[];
  readonly defaults: DefaultEffects;
  /** What a project's allow rules may replace the default for. */
  readonly delegates: readonly Matchers[];
};

/** `before` patterns are refused until the evidence, and the verdict if one is wanted, is there. */
export type Gate = {
  readonly id: string;
  readonly layer: LayerName;
  readonly at: Position;
  readonly before: readonly Rule[];
  /** It holds back the end of a turn, which is sent back this often. */
  readonly finish?: { readonly retries: number };
  readonly evidence: readonly Rule[];
  readonly skill?: string;
  readonly verdict?: readonly string[];
  /** Only a fork of the skill gives the verdict. */
  readonly by?: "fork";
  /** A gated call that went through does not use up what it stood on. */
  readonly reuse?: true;
};

export type ForcedSkill = {
  readonly skill: string;
  readonly layer: LayerName;
  readonly at: Position;
  /** Where its name is written. */
  readonly nameAt: Position;
  readonly arguments: string;
  /** The lowest tier that may provide it, in the place of what the layer says. */
  readonly tier?: SkillTier;
  /** Whether its allowed_tools bound the session. */
  readonly bounding: boolean;
  /** Loaded at session start; otherwise by the gate of this id, at its first refusal. */
  readonly when: { readonly at: "session" } | { readonly at: "gate"; readonly gate: string };
};

/** The skills that are in force from the first request of a session on. */
export function sessionForced(settings: Pick<SkillSettings, "forced">): readonly ForcedSkill[] {
  return settings.forced.filter((f) => f.when.at === "session");
}

/** The entry that makes this gate, where there is one. */
export function gateEntry(
  policy: { readonly skills: Pick<SkillSettings, "forced"> },
  id: string,
): ForcedSkill | undefined {
  return policy.skills.forced.find((f) => f.when.at === "gate" && f.when.gate === id);
}

export type SkillTrigger = {
  readonly skill: string;
  readonly layer: LayerName | "skill";
  readonly pattern: Pattern;
  /** Where the pattern is written, when a policy file holds it. */
  readonly at?: Position;
};

export type Limits = {
  readonly iterations: number;
  readonly toolCalls: number;
  readonly wallTimeMs: number;
  readonly sameCall: number;
  /** Per session, its forks included; cache reads count a tenth. */
  readonly tokens?: number;
  /** Per session, its forks included. */
  readonly costUsd?: number;
};

export type ModelSettings = {
  readonly provider: "anthropic" | "script";
  readonly name: string;
  readonly baseUrl?: string;
  readonly apiKey: KeySource;
  readonly headers: { readonly [name: string]: string };
  readonly request: { readonly [key: string]: Json };
  readonly maxOutputTokens: number;
  readonly contextTokens: number;
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly retries: number;
  readonly script?: string;
  readonly prices?: Prices;
  /** Models that may be chosen, by the names that stand for them. */
  readonly choices?: { readonly [name: string]: ModelChoice };
  /** The policy's own model, where another one was chosen. */
  readonly own?: ModelChoice;
};
export type ModelChoice = {
  /** Exact id. */
  readonly name: string;
  readonly prices?: Prices;
  /** Absent: as the policy's own model. */
  readonly contextTokens?: number;
};
export type KeySource =
  | { readonly env: string }
  | { readonly file: string }
  | { readonly command: readonly string[] };

export type SkillSettings = {
  readonly sources: readonly SkillSource[];
  readonly scope: "turn" | "session";
  readonly forced: readonly ForcedSkill[];
  readonly triggers: readonly SkillTrigger[];
  readonly disabled: readonly Disabled[];
  readonly modelChoice: boolean;
  readonly undeclaredTools: "reject" | "read_only" | "unbounded";
  readonly combineBounds: "intersection" | "union";
  readonly listingTokens: number;
  readonly activeTokens: number;
  /** At most one of each skill. */
  readonly pins: readonly Pin[];
  /** A skill that does not ship with Writ and has no pin is refused. */
  readonly requirePins: boolean;
  readonly secrets: readonly SkillSecret[];
  /** The box in which a skill's command tools run, where it is not the default one. */
  readonly boxes: readonly { readonly skill: string; readonly box: string; readonly at: Position }[];
};
/** `at`: where the glob is written. */
export type Disabled = { readonly glob: string; readonly layer: LayerName; readonly at?: Position };
/** The skill of this name must have this hash of its whole folder: `sha256:` and 64 hex digits. */
export type Pin = {
  readonly skill: string;
  readonly hash: string;
  readonly layer: LayerName;
  readonly at: Position;
};
/** A variable of the environment of a skill's command tools, and of nothing else. */
export type SkillSecret = {
  readonly skill: string;
  readonly variable: string;
  readonly source: KeySource;
  readonly at: Position;
};
export type SkillTier = "builtin" | "machine" | "user" | "project";
export type SkillSource =
  | { readonly kind: "tier"; readonly tier: SkillTier }
  | { readonly kind: "path"; readonly path: string; readonly tier: SkillTier; readonly at: Position };

export type Policy = {
  readonly name?: string;
  /** SHA-256 over the files that made it. */
  readonly revision: string;
  readonly files: readonly { readonly layer: LayerName; readonly path: string }[];
  /** Real path of the workspace root. */
  readonly root: string;
  readonly model: ModelSettings;
  readonly limits: Limits;
  readonly skills: SkillSettings;
  /** From the most to the least trusted. */
  readonly layers: readonly Layer[];
  readonly gates: readonly Gate[];
  readonly protect: readonly (PathPattern & { readonly shown: string })[];
  readonly instructions: readonly string[];
  readonly trust: "trusted" | "ask" | "untrusted";
  readonly sandbox: SandboxSettings;
  readonly shellEnv: readonly string[];
  readonly tools: {
    readonly enabled: readonly string[];
    readonly shell: { readonly timeoutMs: number; readonly maxTimeoutMs: number; readonly maxOutput: number };
  };
  /** In the order of their names. */
  readonly mcpServers: readonly McpServer[];
  readonly askTimeoutMs: number;
  readonly redact: {
    readonly builtin: boolean;
    readonly env: readonly string[];
    readonly patterns: readonly Pattern[];
  };
  readonly auditDir?: string;
  readonly audit: AuditSettings;
  readonly server: ServerSettings;
};

/** What `writ serve` opens, and to whom. Paths are absolute. */
export type ServerSettings = {
  /** `unix:PATH` or `ADDRESS:PORT`; absent: the socket in the state folder. */
  readonly listen?: string;
  /** Absent: the token in the state folder, made at the first start. */
  readonly tokenFile?: string;
  /** Whether an address that other machines reach may be listened at. */
  readonly allowRemote: boolean;
  /** `Host` headers that are answered beside those of the address itself. */
  readonly hosts: readonly string[];
  /** Web origins whose pages may call, as a browser writes them. */
  readonly origins: readonly string[];
  readonly inspector: boolean;
  readonly drainGraceMs: number;
  /** How many sessions are held open at once. */
  readonly maxSessions: number;
  readonly maxConcurrentTurns: number;
  readonly idleUnloadMs: number;
  /** Folders, or globs of folders, in which a session may work. */
  readonly workspaces: readonly string[];
  /** Policy files that stand in the user layer's place, by name. */
  readonly profiles: { readonly [name: string]: string };
};

export type AuditSettings = {
  /** Days after its last event from which a log may be pruned. */
  readonly keepDays?: number;
  /** A file that gets one line for every turn that ends. */
  readonly heads?: string;
  /** Signs what a log had come to at the end of a turn. */
  readonly key?: KeySource;
};

/** What each layer falls back to when no layer votes. */
export const embeddedDefaults: Readonly<Record<Risk, Effect>> = {
  read: "allow",
  write: "ask",
  execute: "ask",
  network: "ask",
  destructive: "ask",
};
