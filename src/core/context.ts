// The next model request, from the session's state: stable system text, then the transcript as messages.
// The same state gives the same bytes, and a longer transcript only appends.
import { corrected, estimateTokens } from "./budget.ts";
import { entryTokens } from "./compaction.ts";
import { type Tokens, totalTokens } from "./event.ts";
import type { CallBlock, Message, ModelRequest, ResultBlock, TextBlock, ToolDefinition } from "./message.ts";
import type { SessionState } from "./session.ts";
import type { Entry } from "./transcript.ts";
import { canonicalJson, escapeFence, keepOpen } from "./text.ts";

/** The stable part: fixed from one request to the next, so that providers keep it. */
export type StableText = {
  readonly identity: string;
  readonly instructions: readonly { readonly path: string; readonly text: string }[];
  /** `# Available Skills …`; empty when the model may not choose. */
  readonly catalog: string;
  /** Estimated tokens that these texts would have more, had nothing been left out of them. */
  readonly cut?: { readonly instructions?: number; readonly catalog?: number };
};

export type ContextInput = {
  readonly state: SessionState;
  readonly stable: StableText;
  readonly tools: readonly ToolDefinition[];
  readonly model: string;
  readonly maxOutputTokens: number;
};
export type ContextReport = {
  readonly skills: readonly string[];
  readonly instructions: readonly string[];
  /** Estimated, corrected by what the provider counted before. */
  readonly tokens: Tokens;
  readonly total: number;
  /** What is not in the request, by bucket; empty when nothing was cut. */
  readonly cut: Partial<Tokens>;
};

export function buildContext(
  input: ContextInput,
): { readonly request: ModelRequest; readonly report: ContextReport } {
  const { state, stable, tools } = input;
  const forced = state.active.filter((s) => s.forced);
  const instructions = stable.instructions.map((i) =>
    `<instructions file="${escapeFence(i.path).replace(/"/g, "&quot;")}">\n${
      keepOpen(i.text, ["instructions"])
    }\n</instructions>`
  );
  const system = [stable.identity, stable.catalog, ...instructions, ...forced.map((s) => s.body)]
    .filter((text) => text !== "").join("\n\n");
  const live = state.transcript.filter((e) => e.kind === "skill" && e.live);
  const estimate: Tokens = {
    system: estimateTokens(stable.identity),
    instructions: sum(instructions.map(estimateTokens)),
    tools: sum(
      tools.map((t) => estimateTokens(`${t.name} ${t.description} ${canonicalJson(t.inputSchema)}`)),
    ),
    catalog: estimateTokens(stable.catalog),
    skills: sum([...forced.map((s) => estimateTokens(s.body)), ...live.map(entryTokens)]),
    transcript: sum(state.transcript.filter((e) => e.kind !== "skill" || !e.live).map(entryTokens)),
  };
  const tokens = mapTokens(estimate, (n) => corrected(n, state.calibration));
  const cut = { ...stable.cut, transcript: state.compacted };
  return {
    request: {
      model: input.model,
      maxOutputTokens: input.maxOutputTokens,
      system,
      tools,
      messages: toMessages(state.transcript),
    },
    report: {
      skills: state.active.map((s) => s.name),
      instructions: stable.instructions.map((i) => i.path),
      tokens,
      total: totalTokens(tokens),
      cut: Object.fromEntries(Object.entries(cut).filter(([, n]) => n > 0)),
    },
  };
}

function mapTokens(tokens: Tokens, map: (n: number) => number): Tokens {
  const { system, instructions, tools, catalog, skills, transcript } = tokens;
  return {
    system: map(system),
    instructions: map(instructions),
    tools: map(tools),
    catalog: map(catalog),
    skills: map(skills),
    transcript: map(transcript),
  };
}

/**
 * Entries between two assistant messages become one user message: results first, in call order, then texts in the
 * order in which they became true.
 */
export function toMessages(transcript: readonly Entry[]): readonly Message[] {
  const messages: Message[] = [];
  let calls: readonly CallBlock[] = [];
  let group: Entry[] = [];
  const flush = () => {
    if (group.length === 0) return;
    messages.push({ role: "user", content: userBlocks(group, calls) });
    group = [];
  };
  for (const entry of transcript) {
    if (entry.kind !== "assistant") {
      group.push(entry);
      continue;
    }
    flush();
    messages.push({ role: "assistant", content: entry.content });
    calls = entry.content.filter((b) => b.type === "tool_use");
  }
  flush();
  return messages;
}

function userBlocks(
  group: readonly Entry[],
  calls: readonly CallBlock[],
): readonly (TextBlock | ResultBlock)[] {
  const results = group.flatMap((e): ResultBlock[] =>
    e.kind === "result" ? [{ type: "tool_result", call: e.call, ok: e.ok, content: e.content }] : []
  );
  const order = new Map(calls.map((c, index) => [c.id, index]));
  results.sort((a, b) => (order.get(a.call) ?? 0) - (order.get(b.call) ?? 0));
  const texts = group.flatMap((e): TextBlock[] =>
    e.kind === "result" || e.kind === "assistant" || e.text === "" ? [] : [{ type: "text", text: e.text }]
  );
  return [...results, ...texts];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}
