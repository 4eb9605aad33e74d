// Text of unknown length in bounded memory: the beginning and the end are kept, the middle is counted.
import { joinCut } from "../core/text.ts";

export type CappedText = {
  add(text: string): void;
  /** Everything when it fitted, else head, a line that says how much is missing, and tail. */
  take(): { readonly text: string; readonly cut: boolean };
};

/** Keeps at most `cap` UTF-16 units: half of them from the start, half from the end; the cut is that of joinCut. */
export function cappedText(cap: number): CappedText {
  const headCap = Math.max(1, Math.floor(cap / 2));
  const tailCap = Math.max(1, cap - headCap);
  let head = "", tail = "", total = 0;
  return {
    add(text) {
      total += text.length;
      const room = headCap - head.length;
      if (room > 0) head += text.slice(0, room);
      if (text.length > room) tail += room > 0 ? text.slice(room) : text;
      // Trimmed now and then, not at every addition: many small pieces would copy the tail again and again.
      if (tail.length > 2 * tailCap) tail = tail.slice(-tailCap);
    },
    take() {
      if (total <= headCap + tailCap) return { text: head + tail, cut: false };
      return { text: joinCut(head, tail.slice(-tailCap), total), cut: true };
    },
  };
}
