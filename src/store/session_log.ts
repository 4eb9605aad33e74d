// The log of one session as the loop has it: seals events one after the other into a claim of a store.
import { type Log, LogFailure } from "../agent/ports.ts";
import { noEvents, sealEvent, type Tip } from "./chain.ts";
import type { AnchorLine } from "./heads_file.ts";
import type { Appended, Claim, Store } from "./store.ts";

export type SessionLog = Log & {
  /** Gives the session back; never rejects. */
  close(): Promise<void>;
  /** Closes and removes the whole session, as if it had never been opened: for a start that was refused. */
  discard(): Promise<void>;
};
export type Opened = Omit<Claim, "epoch"> & { readonly log: SessionLog };

/** Called for every turn that ended, when its end is on disk; what it throws fails the sync. */
export type Anchor = (head: Omit<AnchorLine, "mac">) => void;

/** Throws LogFailure with what to do about it. */
export async function createLog(store: Store, id: string, anchor?: Anchor): Promise<Opened> {
  return opened(store, id, await store.create(id), anchor);
}

/** Opens an existing session for more events. Throws LogFailure, also for a log that was damaged before its tail. */
export async function resumeLog(store: Store, id: string, anchor?: Anchor): Promise<Opened> {
  return opened(store, id, await store.claim(id), anchor);
}

function opened(store: Store, id: string, claim: Claim, anchor: Anchor | undefined): Opened {
  const { epoch, ...rest } = claim;
  let tip: Tip = claim.events.at(-1) ?? noEvents;
  let failure: unknown;
  const answers = new Set<Promise<void>>();
  const ended: Parameters<Anchor>[0][] = [];
  const later = (answer: Promise<Appended>) => {
    const checked = answer.then((a) => accepted(id, a)).catch((error) => {
      // What was sealed after it stands on it: this log is over, the session is not.
      failure ??= error;
    }).finally(() => answers.delete(checked));
    answers.add(checked);
  };
  return {
    ...rest,
    log: {
      append(draft) {
        if (failure !== undefined) throw failure;
        const sealed = sealEvent(draft, tip.seq + 1, tip.hash);
        const answer = store.append(id, tip.seq, epoch, [sealed]);
        if (answer instanceof Promise) later(answer);
        else accepted(id, answer);
        tip = sealed.event;
        const { type, ts, seq, hash } = sealed.event;
        if (type === "turn.completed") ended.push({ ts, session: id, seq, hash });
        return sealed.event;
      },
      async sync() {
        await Promise.all(answers);
        if (failure !== undefined) throw failure;
        await store.sync(id, epoch);
        for (let head = ended[0]; head !== undefined; head = ended[0]) {
          anchor?.(head);
          ended.shift();
        }
      },
      async close() {
        await Promise.all(answers);
        await store.release(id, epoch);
      },
      discard: () => store.remove(id, epoch),
    },
  };
}

function accepted(id: string, answer: Appended): void {
  switch (answer.kind) {
    case "appended":
      return;
    case "conflict":
      throw new LogFailure(
        "log_taken",
        `session \`${id}\` has gone on elsewhere, up to event ${answer.lastSeq}`,
      );
    case "fenced":
      throw new LogFailure("log_taken", `session \`${id}\` was taken over by another process`);
  }
}
