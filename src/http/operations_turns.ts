// Operations on turns. Submitting, watching and steering are requests of their own: nothing that a connection does changes a turn.
import * as v from "valibot";
import type { TurnView } from "../server/host.ts";
import { answer, answerDone, replayedHeader, sessionPath } from "./answer.ts";
import { type Answer, type Call, type Operation, operation, postRate } from "./operation.ts";
import { formatOf, stream } from "./operations_events.ts";
import { numberText, sessionParams, turnParams, turnSchema } from "./schemas.ts";
import { hasEnded, sourceOfTurn } from "./turn_source.ts";

/** Seconds that a request may be made to wait. */
const longestWait = 60;

const most = (about: string) =>
  v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(1), v.description(about)));

const turnRequest = v.strictObject({
  input: v.pipe(v.string(), v.description("what the user says")),
  skill: v.exactOptional(v.strictObject({
    name: v.pipe(v.string(), v.minLength(1), v.description("loaded first, as `/skill NAME` does")),
    arguments: v.exactOptional(v.string()),
  })),
  model: v.exactOptional(v.pipe(v.string(), v.minLength(1), v.description("one of `model.choices`"))),
  limits: v.exactOptional(v.pipe(
    v.strictObject({
      iterations: most("requests to the model"),
      toolCalls: most("tool calls"),
      seconds: most("wall time"),
      outputTokens: most("of one reply"),
    }),
    v.description("count where they are stricter than the policy's"),
  )),
  onBusy: v.exactOptional(v.pipe(
    v.picklist(["reject", "queue", "interrupt"]),
    v.description("while another turn runs; default `reject`"),
  )),
  onAsk: v.exactOptional(v.pipe(
    v.picklist(["wait", "deny", "fail"]),
    v.description("what a question does; default `wait`, until `permissions.ask_timeout` is over"),
  )),
  cancelOnDisconnect: v.exactOptional(v.pipe(
    v.boolean(),
    v.description("cancel the turn when this request's stream is closed; default false"),
  )),
});

export const turnOperations: readonly Operation[] = [
  operation({
    id: "submitTurn",
    method: "POST",
    path: "/v1/sessions/:session/turns",
    summary:
      "have the agent answer; `Prefer: wait=SECONDS` waits for the end, `Accept: text/event-stream` shows it",
    role: "run",
    params: sessionParams,
    headers: ["Idempotency-Key", "Prefer"],
    body: turnRequest,
    answers: {
      200: {
        about: "the turn that has ended, or its events as a stream",
        schema: turnSchema,
        media: ["text/event-stream", "application/x-ndjson"],
      },
      202: {
        about: "it was taken",
        schema: v.object({ turn: turnSchema }),
        headers: { Location: "path of the turn", Link: "its events, `rel=events`" },
      },
    },
    problems: [
      "session-not-found",
      "session-busy",
      "session-closed",
      "workspace-busy",
      "not-owner",
      "skill-not-found",
      "policy-forbids",
      "policy-invalid",
      "idempotency-mismatch",
      "too-many-turns",
      "too-many-sessions",
      "queue-full",
      "too-many-streams",
      "not-ready",
    ],
    startsWork: true,
    rate: postRate,
    run: submit,
  }),
  operation({
    id: "getTurn",
    method: "GET",
    path: "/v1/sessions/:session/turns/:turn",
    summary: "one turn",
    role: "read",
    params: turnParams,
    query: v.strictObject({
      wait: v.exactOptional(numberText(longestWait, "seconds to wait for its status to change")),
    }),
    answers: { 200: { about: "as it is", schema: turnSchema } },
    problems: ["session-not-found", "turn-not-found"],
    async run({ service: { host }, caller, params: { session, turn }, query: { wait = 0 } }) {
      const how = { ms: wait * 1000, until: "change" as const, signal: new AbortController().signal };
      return answer(
        await host.getTurn(caller, session, turn, wait === 0 ? undefined : how),
        (value) => ({ status: 200, value }),
      );
    },
  }),
  operation({
    id: "cancelTurn",
    method: "POST",
    path: "/v1/sessions/:session/turns/:turn/cancel",
    summary: "end a turn before its time; what it has started is ended with it",
    role: "run",
    params: turnParams,
    body: v.strictObject({ reason: v.exactOptional(v.pipe(v.string(), v.maxLength(500))) }),
    answers: {
      200: { about: "it had ended before", schema: turnSchema },
      202: { about: "it is ending", schema: turnSchema },
    },
    problems: ["session-not-found", "turn-not-found", "not-owner"],
    rate: postRate,
    async run({ service: { host }, caller, params: { session, turn }, body }) {
      return answer(
        await host.cancelTurn(caller, session, turn, body),
        (value) => ({ status: hasEnded(value) ? 200 : 202, value }),
      );
    },
  }),
  operation({
    id: "steerTurn",
    method: "POST",
    path: "/v1/sessions/:session/turns/:turn/input",
    summary: "say more to a turn that runs; the model sees it with its next request",
    role: "run",
    params: turnParams,
    body: v.strictObject({ content: v.pipe(v.string(), v.minLength(1)) }),
    answers: { 202: { about: "it was taken", schema: turnSchema } },
    problems: ["session-not-found", "turn-not-found", "turn-ended", "not-owner"],
    startsWork: true,
    rate: postRate,
    async run({ service: { host }, caller, params: { session, turn }, body }) {
      return answer(await host.steerTurn(caller, session, turn, body), (value) => ({ status: 202, value }));
    },
  }),
];

type Submission = Call<v.InferOutput<typeof sessionParams>, undefined, v.InferOutput<typeof turnRequest>>;

async function submit(call: Submission): Promise<Answer> {
  const { service: { host }, caller, params: { session }, body, headers, idempotency } = call;
  const { cancelOnDisconnect = false, onBusy = "reject", onAsk = "wait", ...wanted } = body;
  const submitted = await host.submitTurn(caller, session, { ...wanted, onBusy, onAsk }, idempotency);
  if (!submitted.ok) return { refused: submitted.refusal };
  const { value: turn, replayed } = submitted.value;
  const format = formatOf(headers.get("accept"));
  if (format !== undefined) return await watch(call, turn, format, { cancelOnDisconnect, replayed });
  const seconds = waitOf(headers.get("prefer"));
  const ended = seconds === 0 ? turn : await waitForEnd(call, turn, seconds);
  return answerDone(
    { ok: true, value: { value: ended, replayed } },
    (view) =>
      hasEnded(view) && seconds > 0
        ? { status: 200, value: view, headers: { "preference-applied": `wait=${seconds}` } }
        : { status: 202, value: { turn: view }, headers: placeOf(session, view) },
  );
}

/** Of `Prefer: wait=N`; 0 for everything else. */
function waitOf(prefer: string | null): number {
  const seconds = /(?:^|[,;\s])wait=(\d{1,4})(?:$|[,;\s])/i.exec(prefer ?? "")?.[1];
  return Math.min(longestWait, Number(seconds ?? 0));
}

function placeOf(session: string, { id, firstSeq }: TurnView): { readonly [name: string]: string } {
  const path = sessionPath(session);
  const events = `${path}/events?after=${Math.max(0, (firstSeq ?? 1) - 1)}`;
  return { location: `${path}/turns/${encodeURIComponent(id)}`, link: `<${events}>; rel="events"` };
}

async function waitForEnd(call: Submission, turn: TurnView, seconds: number): Promise<TurnView> {
  const { service: { host }, caller, params: { session } } = call;
  const how = { ms: seconds * 1000, until: "end" as const, signal: new AbortController().signal };
  const later = await host.getTurn(caller, session, turn.id, how);
  return later.ok ? later.value : turn;
}

async function watch(
  call: Submission,
  turn: TurnView,
  format: "sse" | "ndjson",
  how: { readonly cancelOnDisconnect: boolean; readonly replayed: boolean },
): Promise<Answer> {
  const { service, caller, credential, params: { session } } = call;
  const opened = await service.host.openLog(caller, session);
  if (!opened.ok) return { refused: opened.refusal };
  const gone = new AbortController();
  const source = sourceOfTurn({ host: service.host, caller, session, log: opened.value }, turn, gone.signal);
  const answered = stream(service, {
    source,
    format,
    credential,
    session,
    first: [{ type: "writ.turn", json: JSON.stringify({ type: "writ.turn", turn }) }],
    headers: { ...placeOf(session, turn), ...(how.replayed ? replayedHeader : {}) },
    onGone: () => {
      gone.abort();
      if (how.cancelOnDisconnect) {
        void service.host.cancelTurn(caller, session, turn.id, { reason: "disconnected" });
      }
    },
  });
  if (!(answered instanceof Response)) gone.abort();
  return answered;
}
