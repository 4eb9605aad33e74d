// An ask and its answer: by an answer that was kept, by whoever can be asked, or by nobody in time.
import type { Agent } from "./agent.ts";
import { defaultBox, showBox } from "../core/box.ts";
import type { Standing } from "../core/decide.ts";
import { reasonOf, type Verdict } from "../core/decision.ts";
import type { Answer } from "../core/event.ts";
import type { Facts } from "../core/facts.ts";
import { coveringGrant, type Grant, grantFor } from "../core/grant.ts";
import { type GrantRule, grantRules, rulesAnswer, showGrantRule } from "../core/grant_rule.ts";
import type { ToolCall } from "../core/message.ts";
import { canonicalJson } from "../core/text.ts";

export type Asked = {
  readonly call: ToolCall;
  readonly facts: Facts;
  readonly standing: Standing;
  readonly verdict: Verdict;
  readonly preview: string | undefined;
  /** The facts as they are now: looked at again when somebody has said yes. */
  again(): Promise<Facts>;
};
export type Resolved = { readonly allow: boolean; readonly reason: string; readonly answer?: Answer };
export type Waiting = {
  readonly signal: AbortSignal;
  /** Time spent in `work` does not count against the turn's wall time. */
  waiting<T>(work: () => Promise<T>): Promise<T>;
};

/** What comes of a decision: allow and deny stand, an ask is answered. Throws when `signal` aborts. */
export async function answerFor(agent: Agent, turn: Waiting, asked: Asked): Promise<Resolved> {
  const { facts, verdict } = asked;
  const reason = reasonOf(verdict);
  if (verdict.effect !== "ask") return { allow: verdict.effect === "allow", reason };
  const once = asksAlways(agent, verdict);
  const kept = once ? undefined : coveringGrant(agent.grants, facts)?.rule ?? keptRule(agent, asked);
  if (kept !== undefined) return { allow: true, reason, answer: { by: "grant", rule: kept } };
  const grant = once ? undefined : grantFor(facts);
  const rules = grant === undefined ? undefined : lastingRules(agent, asked);
  const { allow, answer } = await turn.waiting(() => askWithin(agent, turn, asked, grant, rules));
  if (!allow) {
    return { allow, reason: answer.reason === undefined ? reason : `${reason}; ${answer.reason}`, answer };
  }
  if (canonicalJson(factsKey(await asked.again())) !== canonicalJson(factsKey(facts))) {
    return {
      allow: false,
      reason: "what the call would touch changed while it was being approved",
      answer: { by: "changed" },
    };
  }
  const lasting = answer.scope === "always" && rules !== undefined
    ? await keep(agent, rules, answer)
    : answer;
  if (lasting.scope === "session" && grant !== undefined) agent.grants.push(grant);
  return { allow, reason, answer: lasting };
}

// Until the policy is read again, what was added to it answers in its stead.
function keptRule(agent: Agent, { facts, standing }: Asked): string | undefined {
  const kept = agent.keeper?.kept ?? [];
  if (kept.length === 0 || !rulesAnswer(agent.policy.layers, facts, standing, kept)) return undefined;
  const texts = kept.map(showGrantRule);
  const own = (grantRules(facts) ?? []).map(showGrantRule).filter((text) => texts.includes(text));
  return (own.length > 0 ? own : texts).join(", ");
}

// Rules are offered for good only where they would do what they are offered for.
function lastingRules(agent: Agent, { facts, standing }: Asked): readonly GrantRule[] | undefined {
  if (agent.keeper === undefined || agent.keeper.refused !== undefined) return undefined;
  const rules = grantRules(facts);
  return rules !== undefined && rulesAnswer(agent.policy.layers, facts, standing, rules) ? rules : undefined;
}

// What could not be kept for good is kept for the session: that much was said yes to.
async function keep(agent: Agent, rules: readonly GrantRule[], answer: Answer): Promise<Answer> {
  const kept = await agent.keeper?.keep(rules);
  if (kept?.ok === true) return answer;
  return {
    ...answer,
    scope: "session",
    reason: `not kept for good: ${kept?.message ?? "there is no place for it"}`,
  };
}

async function askWithin(
  agent: Agent,
  turn: Waiting,
  asked: Asked,
  grant: Grant | undefined,
  rules: readonly GrantRule[] | undefined,
) {
  const limit = new AbortController();
  const cancel = agent.clock.after(agent.policy.askTimeoutMs, () => limit.abort());
  const refused = agent.keeper?.refused;
  try {
    return await agent.approver.ask({
      call: asked.call,
      facts: asked.facts,
      verdict: asked.verdict,
      ...boxOpened(agent, asked.facts.box),
      ...(asked.preview === undefined ? {} : { preview: asked.preview }),
      ...(grant === undefined ? {} : { grant: grant.rule }),
      ...(rules === undefined ? {} : { always: rules.map(showGrantRule).join(", ") }),
      ...(grant === undefined || refused === undefined ? {} : { notAlways: refused }),
    }, AbortSignal.any([turn.signal, limit.signal]));
  } catch (error) {
    if (!limit.signal.aborted || turn.signal.aborted) throw error;
    const reason = `nobody answered within ${
      Math.round(agent.policy.askTimeoutMs / 1000)
    } s (permissions.ask_timeout)`;
    return { allow: false, answer: { by: "timeout", reason } as const };
  } finally {
    cancel();
  }
}

function boxOpened({ place }: Agent, name: string): { readonly box?: string } {
  const box = name === defaultBox ? undefined : place.boxes?.find((b) => b.name === name);
  return box === undefined ? {} : { box: showBox(box) };
}

/** Whether one of the rules that ask says that no kept answer answers it. */
export function asksAlways(agent: Agent, verdict: Verdict): boolean {
  const asking = verdict.causes.flatMap((c) => c.by === "rule" && c.effect === "ask" ? [c.rule] : []);
  return agent.policy.layers.some((l) => l.rules.some((r) => r.always === true && asking.includes(r.id)));
}

function factsKey(facts: Facts) {
  return {
    risk: facts.risk,
    box: facts.box,
    subjects: facts.subjects as unknown as null,
    errors: facts.errors.length,
  };
}
