// Figures of the host and of this face in the text format of Prometheus. No label holds text of a user.
import process from "node:process";
import type { Figure } from "../server/host.ts";
import type { Service } from "./operation.ts";

export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

/** All figures as they are at this moment, each with its help and type. */
export function metricsText({ host, streams, version }: Service): string {
  const own: readonly Figure[] = [
    gauge("writ_build_info", "the version, as a label", 1, { version }),
    gauge("writ_sse_streams", "streams of events that are open", streams.count()),
    {
      ...gauge(
        "writ_sse_lagged_total",
        "streams that were ended because they were not read",
        streams.lagged(),
      ),
      type: "counter",
    },
    gauge("process_resident_memory_bytes", "resident memory size in bytes", process.memoryUsage().rss),
  ];
  return [...own, ...host.figures()].map(figureText).join("");
}

function gauge(
  name: string,
  help: string,
  value: number,
  labels: { readonly [name: string]: string } = {},
): Figure {
  return { name, help, type: "gauge", samples: [{ labels, value }] };
}

function figureText({ name, help, type, samples }: Figure): string {
  const lines = samples.map(({ labels = {}, value }) => {
    const pairs = Object.entries(labels).map(([label, text]) =>
      `${label}="${escaped(text).replace(/"/g, '\\"')}"`
    );
    return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`;
  });
  return `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function escaped(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
}
