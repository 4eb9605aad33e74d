// The text format of Prometheus.
import { test } from "bun:test";
import { assertEquals } from "@std/assert";
import { openFace } from "./face.ts";

test("figures of the host stand among our own, labels and help escaped", async () => {
  const face = openFace();
  Object.assign(face.host, {
    figures: () => [
      { name: "a_total", help: "one\ntwo \\ three", type: "counter", samples: [{ value: 2 }] },
      {
        name: "b",
        help: "b",
        type: "gauge",
        samples: [
          { labels: { x: 'q"\\\n', y: "z" }, value: 0.5 },
          { labels: {}, value: 1e21 },
        ],
      },
      { name: "none", help: "none yet", type: "counter", samples: [] },
    ],
  });
  const response = await face.send("GET", "/metrics");
  const text = (await response.text()).replace(/(process_resident_memory_bytes) \d+/, "$1 N");
  face.close();
  assertEquals(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  assertEquals(
    text,
    [
      "# HELP writ_build_info the version, as a label",
      "# TYPE writ_build_info gauge",
      'writ_build_info{version="0.0.0"} 1',
      "# HELP writ_sse_streams streams of events that are open",
      "# TYPE writ_sse_streams gauge",
      "writ_sse_streams 0",
      "# HELP writ_sse_lagged_total streams that were ended because they were not read",
      "# TYPE writ_sse_lagged_total counter",
      "writ_sse_lagged_total 0",
      "# HELP process_resident_memory_bytes resident memory size in bytes",
      "# TYPE process_resident_memory_bytes gauge",
      "process_resident_memory_bytes N",
      "# HELP a_total one\\ntwo \\\\ three",
      "# TYPE a_total counter",
      "a_total 2",
      "# HELP b b",
      "# TYPE b gauge",
      'b{x="q\\"\\\\\\n",y="z"} 0.5',
      "b 1e+21",
      "# HELP none none yet",
      "# TYPE none counter",
      "",
    ].join("\n"),
  );
});
