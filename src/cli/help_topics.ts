// The topics of `writ help`, embedded as text: one line each.
import context from "./help/context.md" with { type: "text" };
import decisions from "./help/decisions.md" with { type: "text" };
import errors from "./help/errors.md" with { type: "text" };
import events from "./help/events.md" with { type: "text" };
import exitCodes from "./help/exit-codes.md" with { type: "text" };
import gates from "./help/gates.md" with { type: "text" };
import http from "./help/http.md" with { type: "text" };
import mcp from "./help/mcp.md" with { type: "text" };
import policy from "./help/policy.md" with { type: "text" };
import sandbox from "./help/sandbox.md" with { type: "text" };
import scripts from "./help/scripts.md" with { type: "text" };
import sessions from "./help/sessions.md" with { type: "text" };
import skills from "./help/skills.md" with { type: "text" };
import tools from "./help/tools.md" with { type: "text" };

export const helpTopics: readonly {
  readonly name: string;
  readonly summary: string;
  readonly text: string;
}[] = [
  { name: "policy", summary: "policy files: where they are, how layers combine, every key", text: policy },
  { name: "decisions", summary: "who votes on a call, rules and their patterns", text: decisions },
  { name: "tools", summary: "every tool, its arguments, its risk, what a rule's specifier is", text: tools },
  { name: "skills", summary: "packages, triggers, bounds", text: skills },
  { name: "gates", summary: "actions that wait for evidence and a verdict", text: gates },
  { name: "mcp", summary: "servers of tools: how they are reached, listed and judged", text: mcp },
  { name: "http", summary: "`writ serve`: sessions, events and approvals over HTTP", text: http },
  { name: "sandbox", summary: "what confines a command, and what does not", text: sandbox },
  {
    name: "context",
    summary: "what a model is sent, and what gives way when there is no room",
    text: context,
  },
  { name: "events", summary: "the session log and its events", text: events },
  {
    name: "sessions",
    summary: "the record on disk: crashes, damage, checks, anchors, removal",
    text: sessions,
  },
  { name: "scripts", summary: "replies from a file instead of a model", text: scripts },
  { name: "errors", summary: "what each code of a fault or a failed call means", text: errors },
  { name: "exit-codes", summary: "what the exit codes mean", text: exitCodes },
];
