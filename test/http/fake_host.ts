// A host without an agent: enough of sessions, turns and questions to drive every operation, all in memory.
import type {
  Caller,
  FeedReader,
  LogLine,
  LogReader,
  Outcome,
  PermissionView,
  Refusal,
  SessionHost,
  SessionView,
  SkillView,
  TurnView,
} from "../../src/server/host.ts";

const time = "2026-01-01T00:00:00.000Z";
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export type FakeSession = {
  view: SessionView;
  lines: LogLine[];
  turns: Map<string, TurnView>;
  permissions: Map<string, PermissionView>;
  oldest: number;
  removed: boolean;
};

export type FakeHost = SessionHost & {
  readonly sessions: Map<string, FakeSession>;
  /** What the next call of that function answers instead. */
  refuse(name: keyof SessionHost, refusal: Refusal): void;
  /** Appends events to a session, as a turn would. */
  record(session: string, ...types: readonly string[]): void;
  change(session: string, turn: string, change: Partial<TurnView>): void;
  /** Lines that were read of logs, over all. */
  read(): number;
  isReady: boolean;
  /** Names of the functions that were called, in order. */
  readonly calls: string[];
};

export function fakeHost(): FakeHost {
  const sessions = new Map<string, FakeSession>();
  const listeners = new Set<() => void>();
  const refusals = new Map<string, Refusal>();
  const calls: string[] = [];
  const done = new Map<string, { readonly bodyHash: string; readonly value: unknown }>();
  const feed: { readonly session: string; readonly line: LogLine }[] = [];
  let isDraining = false;
  let lines = 0;
  let revision = "r1";
  const wake = () => {
    for (const call of [...listeners]) call();
  };
  const onMore = (call: () => void) => {
    listeners.add(call);
    return () => void listeners.delete(call);
  };
  const refused = (code: Refusal["code"], detail: string, members?: Refusal["members"]) =>
    ({ ok: false, refusal: { code, detail, ...(members === undefined ? {} : { members }) } }) as const;
  const mayset = (caller: Caller, s: FakeSession) =>
    caller.sessions === "all" || s.view.owner === caller.name;
  const find = (caller: Caller, id: string): Outcome<FakeSession> => {
    const session = sessions.get(id);
    return session === undefined || session.removed || !mayset(caller, session)
      ? refused("session-not-found", `no session \`${id}\``)
      : { ok: true, value: session };
  };
  const once = <T>(key: { key: string; bodyHash: string; scope: string } | undefined, make: () => T) => {
    if (key === undefined) return { ok: true, value: { value: make(), replayed: false } } as const;
    const before = done.get(`${key.scope} ${key.key}`);
    if (before === undefined) {
      const value = make();
      done.set(`${key.scope} ${key.key}`, { bodyHash: key.bodyHash, value });
      return { ok: true, value: { value, replayed: false } } as const;
    }
    if (before.bodyHash !== key.bodyHash) {
      return refused("idempotency-mismatch", "the key was used for another body");
    }
    return { ok: true, value: { value: before.value as T, replayed: true } } as const;
  };
  const record = (id: string, ...types: readonly string[]) => {
    const session = sessions.get(id);
    if (session === undefined) throw new Error(id);
    for (const type of types) {
      const seq = session.lines.length + 1;
      const event = {
        seq,
        ts: time,
        session: id,
        turn: 1,
        type,
        data: { text: "é\u2028" },
        prev: "0",
        hash: "1",
      };
      const line: LogLine = { seq, type, turn: 1, line: JSON.stringify(event) };
      session.lines.push(line);
      session.view = { ...session.view, lastSeq: seq };
      feed.push({ session: id, line });
    }
    wake();
  };
  const change = (id: string, turn: string, changed: Partial<TurnView>) => {
    const session = sessions.get(id);
    const before = session?.turns.get(turn);
    if (before !== undefined) session?.turns.set(turn, { ...before, ...changed });
    wake();
  };
  const make = (caller: Caller, wanted: Parameters<SessionHost["createSession"]>[1]): SessionView => {
    const id = `s_${sessions.size + 1}`;
    const { cwd: _, ...rest } = wanted;
    const view: SessionView = {
      id,
      status: "idle",
      lastSeq: 0,
      queueDepth: 0,
      activeSkills: [],
      policyRevision: revision,
      workspace: "/ws",
      owner: caller.name,
      usage,
      createdAt: time,
      updatedAt: time,
      ...rest,
      model: wanted.model ?? "m-1",
    };
    sessions.set(id, {
      view,
      lines: [],
      turns: new Map(),
      permissions: new Map(),
      oldest: 1,
      removed: false,
    });
    record(id, "session.started");
    return sessions.get(id)?.view ?? view;
  };
  const skill: SkillView = {
    name: "review",
    description: "reviews",
    source: "builtin",
    triggers: ["review"],
    forced: false,
    sha256: "0".repeat(64),
    warnings: [],
  };
  const logOf = (session: FakeSession): LogReader => ({
    lastSeq: () => session.lines.length,
    oldestSeq: () => session.oldest,
    async read(after, { events, bytes }) {
      const some: LogLine[] = [];
      for (const line of session.lines.slice(after, after + events)) {
        if (some.length > 0 && some.reduce((n, l) => n + l.line.length, 0) >= bytes) break;
        some.push(line);
      }
      lines += some.length;
      return some;
    },
    onMore,
    closed: () => session.removed,
  });
  const feedOf = (caller: Caller, from: number): FeedReader => {
    let at = from;
    return {
      async read({ events }) {
        const some = feed.slice(at, at + events);
        const base = at;
        at += some.length;
        return some.map((f, i) => ({ ...f, cursor: `c${base + i + 1}` })).filter(({ session }) => {
          const own = sessions.get(session);
          return own !== undefined && mayset(caller, own);
        }).map(({ line, cursor }) => ({ ...line, cursor }));
      },
      onMore,
      behind: () => feed.length - at,
      cursor: () => `c${at}`,
    };
  };
  const host: SessionHost = {
    createSession: async (caller, wanted, key) => once(key, () => make(caller, wanted)),
    async listSessions(caller, { limit, cursor, status }) {
      if (cursor !== undefined && !/^\d+$/.test(cursor)) return refused("bad-cursor", "no cursor");
      const all = [...sessions.values()].filter((s) => !s.removed && mayset(caller, s)).map((s) => s.view)
        .filter((s) => status === undefined || s.status === status).reverse();
      const from = Number(cursor ?? 0);
      const next = from + limit < all.length ? { next: String(from + limit) } : {};
      return { ok: true, value: { items: all.slice(from, from + limit), ...next } };
    },
    async getSession(caller, id) {
      const found = find(caller, id);
      return found.ok ? { ok: true, value: found.value.view } : found;
    },
    async updateSession(caller, id, changed, ifSeq) {
      const found = find(caller, id);
      if (!found.ok) return found;
      const { view } = found.value;
      if (ifSeq !== undefined && ifSeq !== view.lastSeq) {
        return refused("precondition-failed", "the session has changed", { etag: `"${view.lastSeq}"` });
      }
      found.value.view = { ...view, ...changed };
      record(id, "session.updated");
      return { ok: true, value: found.value.view };
    },
    async removeSession(caller, id) {
      const session = sessions.get(id);
      if (session === undefined || !mayset(caller, session)) return refused("session-not-found", "none");
      session.removed = true;
      wake();
      return { ok: true, value: undefined };
    },
    async forkSession(caller, id, { atSeq }, key) {
      const found = find(caller, id);
      if (!found.ok) return found;
      if (atSeq !== undefined && atSeq > found.value.lines.length) {
        return refused("bad-cursor", "behind the end");
      }
      return once(key, () => make(caller, {}));
    },
    async messages(caller, id) {
      const found = find(caller, id);
      return found.ok ? { ok: true, value: { items: [{ seq: 1, role: "user", content: "hi" }] } } : found;
    },
    async submitTurn(caller, id, wanted, key) {
      const found = find(caller, id);
      if (!found.ok) return found;
      const session = found.value;
      return once(key, () => {
        const turn: TurnView = {
          id: `t_${session.turns.size + 1}`,
          status: "running",
          denied: [],
          usage,
          firstSeq: session.lines.length + 1,
        };
        session.turns.set(turn.id, turn);
        record(id, "user.message");
        if (wanted.input === "end") {
          record(id, "model.delta", "turn.completed");
          const lastSeq = session.lines.length;
          change(id, turn.id, {
            status: "completed",
            stopReason: "final",
            output: { text: "done" },
            lastSeq,
          });
        }
        return session.turns.get(turn.id) ?? turn;
      });
    },
    async getTurn(caller, id, turn, wait) {
      const found = find(caller, id);
      if (!found.ok) return found;
      const view = () => found.value.turns.get(turn);
      const before = view();
      if (before === undefined) return refused("turn-not-found", `no turn \`${turn}\``);
      const settled = () => {
        const now = view() ?? before;
        const ended = !["queued", "running", "waiting_permission", "cancelling"].includes(now.status);
        return ended || (wait?.until === "change" && now !== before);
      };
      if (wait !== undefined && !settled()) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, wait.ms);
          const end = () => {
            clearTimeout(timer);
            resolve();
          };
          wait.signal.addEventListener("abort", end);
          const stop = onMore(() => {
            if (!settled()) return;
            stop();
            end();
          });
        });
      }
      return { ok: true, value: view() ?? before };
    },
    async cancelTurn(caller, id, turn) {
      const found = find(caller, id);
      if (!found.ok) return found;
      const view = found.value.turns.get(turn);
      if (view === undefined) return refused("turn-not-found", `no turn \`${turn}\``);
      if (view.status === "running") change(id, turn, { status: "cancelling" });
      return { ok: true, value: found.value.turns.get(turn) ?? view };
    },
    async steerTurn(caller, id, turn) {
      const found = find(caller, id);
      if (!found.ok) return found;
      const view = found.value.turns.get(turn);
      if (view === undefined) return refused("turn-not-found", `no turn \`${turn}\``);
      return view.status === "running" ? { ok: true, value: view } : refused("turn-ended", "it has ended");
    },
    async openLog(caller, id) {
      const found = find(caller, id);
      return found.ok ? { ok: true, value: logOf(found.value) } : found;
    },
    async openFeed(caller, after) {
      const at = after === undefined ? feed.length : Number(/^c(\d+)$/.exec(after)?.[1] ?? NaN);
      return Number.isNaN(at)
        ? refused("bad-cursor", "no cursor of this feed")
        : { ok: true, value: feedOf(caller, at) };
    },
    async listPermissions(caller, { status, session }) {
      const items = [...sessions.values()].filter((s) => mayset(caller, s)).flatMap((
        s,
      ) => [...s.permissions.values()])
        .filter((p) => (status === undefined || p.status === status) && (session ?? p.session) === p.session);
      return { ok: true, value: { items } };
    },
    async getPermission(caller, id, permission) {
      const found = find(caller, id);
      if (!found.ok) return found;
      const view = found.value.permissions.get(permission);
      return view === undefined ? refused("permission-not-found", "none") : { ok: true, value: view };
    },
    async answerPermission(caller, id, permission, { decision }) {
      const found = find(caller, id);
      if (!found.ok) return found;
      const view = found.value.permissions.get(permission);
      if (view === undefined) return refused("permission-not-found", "none");
      if (view.status === "resolved" && view.decision !== decision) {
        return refused("permission-resolved", "it has the other answer", {
          decision: view.decision ?? "deny",
          seq: 1,
        });
      }
      const value: PermissionView = { ...view, status: "resolved", decision, resolvedBy: caller.name };
      found.value.permissions.set(permission, value);
      return { ok: true, value: { value, replayed: view.status === "resolved" } };
    },
    listSkills: async () => ({ ok: true, value: { items: [skill], errors: [] } }),
    async getSkill(_, name, { body }) {
      if (name !== skill.name) return refused("skill-not-found", "none", { available: [skill.name] });
      return { ok: true, value: body ? { ...skill, body: "# review" } : skill };
    },
    async loadSkill(caller, id, name, _, key) {
      const found = find(caller, id);
      if (!found.ok) return found;
      if (name !== skill.name) return refused("skill-not-found", "none", { available: [skill.name] });
      return once(key, () => {
        record(id, "skill.loaded");
        return { seq: found.value.lines.length, loadedBytes: 8, contextTokensAdded: 3 };
      });
    },
    async unloadSkill(caller, id, name) {
      const found = find(caller, id);
      if (!found.ok) return found;
      return name === skill.name ? { ok: true, value: undefined } : refused("skill-not-found", "none");
    },
    policy: () => ({ revision, policy: { version: 1 } }),
    policyStatus: () => ({ revision, activatedAt: time, sources: [{ layer: "user", path: "/p.yaml" }] }),
    async reloadPolicy() {
      const previous = revision;
      revision = "r2";
      return { ok: true, value: { revision, previous, changed: ["/p.yaml"] } };
    },
    explain: async () => ({ ok: true, value: { policyRevision: revision, decision: "allow" } }),
    draining: () => isDraining,
    runningTurns: () =>
      [...sessions.values()].flatMap((s) => [...s.turns.values()]).filter((t) => t.status === "running")
        .length,
    async drain() {
      isDraining = true;
    },
    ready: async () =>
      fake.isReady
        ? { ready: true, components: { policy: "ok" } }
        : { ready: false, components: { policy: "ok", store: { error: "disk full at /secret" } } },
    figures: () => [{
      name: "writ_turns_total",
      help: "Turns that have ended.",
      type: "counter",
      samples: [{ labels: { status: "completed" }, value: 2 }],
    }],
  };
  const fake: FakeHost = Object.assign(
    Object.fromEntries(
      Object.entries(host).map(([name, call]) => [name, (...args: unknown[]) => {
        calls.push(name);
        const refusal = refusals.get(name);
        refusals.delete(name);
        return refusal === undefined
          ? (call as (...args: unknown[]) => unknown)(...args)
          : Promise.resolve({ ok: false, refusal });
      }]),
    ) as SessionHost,
    {
      sessions,
      refuse: (name: keyof SessionHost, refusal: Refusal) => void refusals.set(name, refusal),
      record,
      change,
      read: () => lines,
      isReady: true,
      calls,
    },
  );
  return fake;
}

export function pendingPermission(session: string, id: string): PermissionView {
  return {
    id,
    session,
    status: "pending",
    call: "c1",
    tool: "shell",
    input: { command: "git push" },
    inputSha256: "a".repeat(64),
    risk: "execute",
    sourcedBy: [],
    causes: [{ by: "default", effect: "ask", layer: "user", risk: "execute" }],
    maxScope: "session",
    requestedAt: time,
    onTimeout: "deny",
  };
}
