// Outcomes, made and handed on.
import type { Json } from "../core/message.ts";
import { type Problem, showProblem } from "../core/problem.ts";
import type { Caller, Outcome, Refusal, RefusalCode, Role } from "./host.ts";

export function value<T>(value: T): Outcome<T> {
  return { ok: true, value };
}

export function refuse(
  code: RefusalCode,
  detail: string,
  more: Pick<Refusal, "members" | "retryAfter"> = {},
): { readonly ok: false; readonly refusal: Refusal } {
  return { ok: false, refusal: { code, detail, ...more } };
}

/** Undefined where the caller has the role. */
export function lacksRole(caller: Caller, role: Role): ReturnType<typeof refuse> | undefined {
  if (caller.roles.includes(role)) return undefined;
  return refuse("forbidden", `\`${caller.name}\` has not the role \`${role}\`; use a token that has it`, {
    members: { needRole: role },
  });
}

export function policyInvalid(problems: readonly Problem[]): ReturnType<typeof refuse> {
  const [first] = problems;
  const detail = first === undefined ? "the policy cannot be loaded" : showProblem(first);
  return refuse("policy-invalid", detail, { members: { errors: plain(problems) } });
}

/** A value as JSON has it: without what is undefined. */
export function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
