// A log on disk as lines, byte for byte. Where a line begins is found from marks that are set while it is read.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { codeOf } from "../core/thrown.ts";
import type { LogLine } from "./host.ts";

export type Most = { readonly events: number; readonly bytes: number };
export type LogLines = {
  /** What is behind `after`, in order, as far as whole lines go; at least one where there is one. None of a log that is gone. */
  read(after: number, most: Most): readonly LogLine[];
};

/** Lines between two marks: what a reader that begins somewhere has to step over at most. */
const markEvery = 64;
const chunk = 64 * 1024;
const newline = 0x0a;
/** The envelope has this order; nothing in front of `type` can hold a quote. */
const envelope = /^\{"seq":(\d+),"ts":"[^"]*","session":"[^"]*",(?:"turn":(\d+),)?"type":"([^"]*)"/;

export function logLines(path: string): LogLines {
  /** Offset of the line with seq n * markEvery + 1. */
  const marks: number[] = [0];
  return {
    read(after, most) {
      let file: number;
      try {
        file = openSync(path, "r");
      } catch (error) {
        if (codeOf(error) === "ENOENT") return [];
        throw error;
      }
      try {
        return readLines(file, marks, after, most);
      } finally {
        closeSync(file);
      }
    },
  };
}

function readLines(file: number, marks: number[], after: number, most: Most): readonly LogLine[] {
  const from = Math.min(Math.floor(after / markEvery), marks.length - 1);
  const { size } = fstatSync(file);
  let seq = from * markEvery;
  let offset = marks[from] ?? 0;
  let left = Buffer.alloc(0);
  let bytes = 0;
  const lines: LogLine[] = [];
  for (let at = offset; at < size;) {
    const next = Buffer.alloc(Math.min(chunk, size - at));
    const count = readSync(file, next, 0, next.length, at);
    if (count === 0) break;
    at += count;
    left = left.length === 0 ? next.subarray(0, count) : Buffer.concat([left, next.subarray(0, count)]);
    let start = 0;
    for (let end = left.indexOf(newline); end >= 0; end = left.indexOf(newline, start)) {
      seq++;
      const length = end + 1 - start;
      if (seq > after) {
        const line = left.subarray(start, end).toString("utf8");
        lines.push(lineOf(seq, line));
        bytes += length;
      }
      start = end + 1;
      offset += length;
      if (seq % markEvery === 0 && marks.length === seq / markEvery) marks.push(offset);
      if (lines.length >= most.events || (lines.length > 0 && bytes >= most.bytes)) return lines;
    }
    left = left.subarray(start);
  }
  return lines;
}

function lineOf(seq: number, line: string): LogLine {
  const [, , turn, type = ""] = envelope.exec(line) ?? [];
  return { seq, type, ...(turn === undefined ? {} : { turn: Number(turn) }), line };
}
