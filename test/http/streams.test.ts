// Streams of events over the face: what is sent, from where, and how each of them ends.
import { afterEach, describe, test } from "bun:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { writeFileSync } from "node:fs";
import { streamTimes } from "../../src/http/streams.ts";
import { type Face, openFace, secrets, tokenLines } from "./face.ts";

let face: Face;
let clock = 0;

async function begin(): Promise<void> {
  clock = 0;
  face = openFace({ now: () => clock, times: { ...streamTimes, lookMs: 5 } });
  await face.send("POST", "/v1/sessions", { body: {} });
}
afterEach(() => face.close());

const sse = { accept: "text/event-stream" };
const ndjson = { accept: "application/x-ndjson" };

type Reading = { until(text: string): Promise<string>; rest(): Promise<string>; cancel(): Promise<void> };

function reading(response: Response): Reading {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let seen = "";
  let over = false;
  const more = async () => {
    const { done, value } = await reader.read();
    over = done;
    seen += decoder.decode(value, { stream: true });
  };
  return {
    async until(text) {
      while (!over && !seen.includes(text)) await more();
      return seen;
    },
    async rest() {
      while (!over) await more();
      return seen;
    },
    cancel: () => reader.cancel(),
  };
}

/** Ids and types of the events in a text of server-sent events. */
function framesOf(text: string): readonly (readonly [string | undefined, string])[] {
  return text.split("\n\n").filter((frame) => /^event: /m.test(frame)).map((frame) =>
    [/^id: (.*)$/m.exec(frame)?.[1], /^event: (.*)$/m.exec(frame)?.[1] ?? ""] as const
  );
}

function lines(): readonly string[] {
  return (face.host.sessions.get("s_1")?.lines ?? []).map((l) => l.line);
}

describe("a stream of a session", () => {
  test("begins with its retry time, has each line of the log as it is, and its seq as id", async () => {
    await begin();
    const response = await face.send("GET", "/v1/sessions/s_1/events?after=0", { headers: sse });
    assertEquals(
      ["content-type", "cache-control", "x-accel-buffering"].map((h) => response.headers.get(h)),
      ["text/event-stream", "no-store", "no"],
    );
    const stream = reading(response);
    face.host.record("s_1", "user.message");
    const text = await stream.until("user.message");
    await stream.cancel();
    const [first, second] = lines();
    assertEquals(
      text,
      `: open\nretry: 2000\n\nid: 1\nevent: session.started\ndata: ${first}\n\nid: 2\nevent: user.message\ndata: ${second}\n\n`,
    );
  });

  test("as NDJSON is the log itself", async () => {
    await begin();
    const stream = reading(await face.send("GET", "/v1/sessions/s_1/events?after=0", { headers: ndjson }));
    face.host.record("s_1", "a", "b");
    const text = await stream.until('"b"');
    await stream.cancel();
    assertEquals(text, lines().map((line) => `${line}\n`).join(""));
  });

  test("dropped and resumed at every seq, its pieces are the log", async () => {
    await begin();
    face.host.record("s_1", ...Array.from({ length: 30 }, (_, i) => `type.${i % 7}`));
    const pieces: string[] = [];
    for (let at = 0; at < lines().length; at++) {
      const stream = reading(
        await face.send("GET", "/v1/sessions/s_1/events?after=999999", {
          headers: { ...ndjson, "last-event-id": String(at) },
        }),
      );
      const text = await stream.until("\n");
      await stream.cancel();
      pieces.push(text.split("\n")[0] ?? "");
    }
    assertEquals(pieces, lines());
    assertEquals(face.streams.count(), 0);
  });

  const begins: readonly {
    readonly name: string;
    readonly query: string;
    readonly id?: string;
    readonly first: string;
  }[] = [
    { name: "without a cursor now", query: "", first: "4" },
    { name: "behind `after`", query: "?after=1", first: "2" },
    { name: "behind the last id, whatever `after` says", query: "?after=0", id: "2", first: "3" },
    { name: "with the first of the wanted types", query: "?after=0&types=c,d.*", first: "3" },
  ];
  for (const { name, query, id, first } of begins) {
    test(`begins ${name}`, async () => {
      await begin();
      face.host.record("s_1", "b", "c");
      const headers = { ...sse, ...(id === undefined ? {} : { "last-event-id": id }) };
      const stream = reading(await face.send("GET", `/v1/sessions/s_1/events${query}`, { headers }));
      face.host.record("s_1", "d.e");
      const text = await stream.until("id: 4");
      await stream.cancel();
      assertEquals(framesOf(text)[0]?.[0], first);
    });
  }

  test("is ended when the session is removed, and says so", async () => {
    await begin();
    const stream = reading(await face.send("GET", "/v1/sessions/s_1/events?after=0", { headers: sse }));
    await face.send("DELETE", "/v1/sessions/s_1");
    assertEquals(framesOf(await stream.rest()), [["1", "session.started"], [undefined, "session.closed"]]);
  });

  test("is ended when its token is removed, and says so", async () => {
    await begin();
    const stream = reading(await face.send("GET", "/v1/sessions/s_1/events", { headers: sse }));
    writeFileSync(face.tokenFile, tokenLines().replace(/^all .*$/m, "# gone"));
    assertEquals(framesOf(await stream.rest()), [[undefined, "writ.revoked"]]);
    assertEquals((await face.send("GET", "/v1/version")).status, 401);
  });

  test("is ended when the server goes down, and so are later ones", async () => {
    await begin();
    const stream = reading(await face.send("GET", "/v1/sessions/s_1/events", { headers: sse }));
    face.streams.endAll("writ.draining");
    assertEquals(framesOf(await stream.rest()), [[undefined, "writ.draining"]]);
    const late = reading(await face.send("GET", "/v1/sessions/s_1/events?after=0", { headers: ndjson }));
    assertEquals(JSON.parse(await late.rest()).type, "writ.draining");
  });

  test("that is quiet is kept open by pings", async () => {
    await begin();
    const stream = reading(await face.send("GET", "/v1/sessions/s_1/events", { headers: sse }));
    await stream.until("open");
    clock += streamTimes.pingMs;
    assert((await stream.until(": ping")).endsWith(": ping\n\n"));
    await stream.cancel();
  });

  test("gives the wake-up back when its client goes away", async () => {
    await begin();
    const stream = reading(await face.send("GET", "/v1/sessions/s_1/events?after=0", { headers: sse }));
    await stream.until("session.started");
    await stream.cancel();
    const before = face.host.read();
    face.host.record("s_1", "a", "b");
    await face.send("GET", "/v1/version");
    assertEquals([face.host.read(), face.streams.count()], [before, 0]);
  });
});

test("a stream whose log cannot be read breaks off, and somebody is told", async () => {
  await begin();
  const openLog = face.host.openLog;
  Object.assign(face.host, {
    openLog: async (...args: Parameters<typeof openLog>) => {
      const opened = await openLog(...args);
      const read = () => Promise.reject(new Error("disk"));
      return opened.ok ? { ok: true, value: { ...opened.value, read } } : opened;
    },
  });
  const stream = reading(await face.send("GET", "/v1/sessions/s_1/events?after=0", { headers: sse }));
  await assertRejects(() => stream.rest());
  assertEquals([face.streams.count(), face.faults.length], [0, 1]);
});

describe("a client that does not read", () => {
  const many = Array.from({ length: 6000 }, () => "model.delta");

  test("has no more read of the log for it than its connection takes", async () => {
    await begin();
    face.host.record("s_1", ...many);
    const stream = reading(await face.send("GET", "/v1/sessions/s_1/events?after=0", { headers: sse }));
    await stream.until("session.started");
    face.host.record("s_1", ...many);
    await face.send("GET", "/v1/version");
    const held = face.host.read() * (lines()[0]?.length ?? 0);
    assert(held < 300_000, `${held} bytes were read for it`);
    await stream.cancel();
  });

  test("is told and let go of once it is too far behind, and comes back without loss", async () => {
    await begin();
    face.host.record("s_1", ...many.slice(0, 1000));
    const stream = reading(await face.send("GET", "/v1/sessions/s_1/events?after=0", { headers: sse }));
    while (face.streams.lagged() === 0) {
      clock += streamTimes.lagMs / 4;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const frames = framesOf(await stream.rest());
    assertEquals(frames.at(-1), [undefined, "writ.lagged"]);
    const last = Number(frames.at(-2)?.[0]);
    const rest = reading(
      await face.send("GET", "/v1/sessions/s_1/events", {
        headers: { ...sse, "last-event-id": String(last) },
      }),
    );
    const text = await rest.until("id: 1001");
    await rest.cancel();
    assertEquals(
      [...frames.slice(0, -1), ...framesOf(text)].map(([id]) => Number(id)),
      Array.from({ length: 1001 }, (_, i) => i + 1),
    );
  });
});

describe("the stream of a turn", () => {
  test("has its own events only, the turn first, and ends with it", async () => {
    await begin();
    const response = await face.send("POST", "/v1/sessions/s_1/turns", {
      headers: sse,
      body: { input: "go" },
    });
    const stream = reading(response);
    face.host.record("s_1", "model.delta", "turn.completed");
    face.host.change("s_1", "t_1", { status: "completed", stopReason: "final", lastSeq: 4 });
    face.host.record("s_1", "session.updated");
    assertEquals(framesOf(await stream.rest()), [
      [undefined, "writ.turn"],
      ["2", "user.message"],
      ["3", "model.delta"],
      ["4", "turn.completed"],
    ]);
    assertEquals(face.host.calls.filter((c) => c === "cancelTurn"), []);
  });

  test("of one that waits begins when it does", async () => {
    await begin();
    await face.send("POST", "/v1/sessions/s_1/turns", { body: { input: "go" } });
    const running = face.host.sessions.get("s_1")?.turns.get("t_1");
    if (running === undefined) throw new Error("no turn");
    const { firstSeq: _, ...queued } = { ...running, id: "t_2", status: "queued" as const };
    const key = { "idempotency-key": "key-0001" };
    face.host.sessions.get("s_1")?.turns.set("t_2", queued);
    const submit = face.host.submitTurn;
    Object.assign(face.host, {
      submitTurn: async () => ({ ok: true, value: { value: queued, replayed: true } }),
    });
    const response = await face.send("POST", "/v1/sessions/s_1/turns", {
      headers: { ...sse, ...key },
      body: { input: "later" },
    });
    assertEquals(response.headers.get("idempotency-replayed"), "true");
    Object.assign(face.host, { submitTurn: submit });
    const stream = reading(response);
    await stream.until("writ.turn");
    face.host.change("s_1", "t_2", { status: "running", firstSeq: 3 });
    face.host.record("s_1", "user.message");
    face.host.change("s_1", "t_2", { status: "completed", lastSeq: 3 });
    assertEquals(framesOf(await stream.rest()), [[undefined, "writ.turn"], ["3", "user.message"]]);
  });

  const dropped: readonly { readonly cancel: boolean; readonly calls: readonly string[] }[] = [
    { cancel: false, calls: [] },
    { cancel: true, calls: ["cancelTurn"] },
  ];
  for (const { cancel, calls } of dropped) {
    test(`that is dropped ${cancel ? "cancels it where that was asked for" : "leaves it alone"}`, async () => {
      await begin();
      const body = { input: "go", cancelOnDisconnect: cancel };
      const stream = reading(await face.send("POST", "/v1/sessions/s_1/turns", { headers: sse, body }));
      await stream.until("user.message");
      await stream.cancel();
      assertEquals(face.host.calls.filter((c) => c === "cancelTurn"), calls);
    });
  }
});

describe("the feed of all sessions", () => {
  test("has what the token may see, and goes on behind its cursor", async () => {
    await begin();
    await face.send("POST", "/v1/sessions", { body: {}, token: secrets.run });
    const seen = async (token: string, after: string) => {
      const { body } = await face.json("GET", `/v1/events?after=${after}`, { token });
      const { items, next } = body as { items: { session: string }[]; next: string };
      return [items.map((i) => i.session), next];
    };
    assertEquals(await seen(secrets.all, "c0"), [["s_1", "s_2"], "c2"]);
    assertEquals(await seen(secrets.run, "c0"), [["s_2"], "c2"]);
    assertEquals(await seen(secrets.all, "c2"), [[], "c2"]);
    const stream = reading(await face.send("GET", "/v1/events?after=c1", { headers: ndjson }));
    const text = await stream.until("\n");
    await stream.cancel();
    assertEquals(text, `{"cursor":"c2","event":${face.host.sessions.get("s_2")?.lines[0]?.line}}\n`);
  });
});

describe("a page of events", () => {
  const page = async (query: string) =>
    (await face.json("GET", `/v1/sessions/s_1/events${query}`)).body as {
      items: { seq: number }[];
      lastSeq: number;
      next?: number;
    };

  test("goes on where the last one ended, whatever was left out", async () => {
    await begin();
    face.host.record("s_1", "a", "b", "a", "b", "a");
    const seqs: (readonly [readonly number[], number | undefined])[] = [];
    for (let at: number | undefined = 0; at !== undefined;) {
      const { items, next } = await page(`?after=${at}&limit=2&types=a`);
      seqs.push([items.map((i) => i.seq), next]);
      at = next;
    }
    assertEquals(seqs, [[[2, 4], 4], [[6], undefined]]);
  });

  test("waits for its first event where it is told to", async () => {
    await begin();
    const coming = page("?after=1&wait=30");
    await face.send("GET", "/v1/version");
    face.host.record("s_1", "a");
    assertEquals((await coming).items.map((i) => i.seq), [2]);
  });

  test("of the log's end is empty", async () => {
    await begin();
    assertEquals(await page("?after=1"), { items: [], lastSeq: 1 });
  });
});
