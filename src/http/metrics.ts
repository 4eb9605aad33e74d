// Figures of the host and of this face in the text format of Prometheus. Loaded only when somebody asks.
import process from "node:process";
import type { Figure } from "../server/host.ts";
import type { Service } from "./operation.ts";

/** No label holds text of a user. */
export async function metricsText(
  { host, streams, version }: Service,
): Promise<{ readonly type: string; readonly text: string }> {
  const { Registry, Gauge, Counter } = await import("prom-client");
  const registry = new Registry();
  const own: readonly Figure[] = [
    {
      name: "writ_build_info",
      help: "The version, as a label.",
      type: "gauge",
      samples: [{ labels: { version }, value: 1 }],
    },
    {
      name: "writ_sse_streams",
      help: "Streams of events that are open.",
      type: "gauge",
      samples: [{ value: streams.count() }],
    },
    {
      name: "writ_sse_lagged_total",
      help: "Streams that were ended because they were not read.",
      type: "counter",
      samples: [{ value: streams.lagged() }],
    },
    {
      name: "process_resident_memory_bytes",
      help: "Resident memory size in bytes.",
      type: "gauge",
      samples: [{ value: process.memoryUsage().rss }],
    },
  ];
  for (const { name, help, type, samples } of [...own, ...host.figures()]) {
    const labelNames = [...new Set(samples.flatMap(({ labels = {} }) => Object.keys(labels)))];
    const settings = { name, help, labelNames, registers: [registry] };
    const metric = type === "counter" ? new Counter(settings) : new Gauge(settings);
    for (const { labels = {}, value } of samples) metric.inc(labels, value);
  }
  return { type: registry.contentType, text: await registry.metrics() };
}
