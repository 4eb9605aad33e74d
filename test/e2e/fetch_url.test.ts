// fetch_url through the whole program, the same in all three ways of running it: what is judged is what is dialled, whatever
// the environment says of proxies.
import { assertEquals, assertMatch } from "@std/assert";
import { describe, test } from "bun:test";
import { eventsOf, soundLog, withMachine } from "../support/machine.ts";
import { runtimes } from "../support/runtimes.ts";
import { byPath, redirect, reply, serve } from "../tools/web_server.ts";

const html = "Content-Type: text/html";

describe("fetch_url", () => {
  for (const { name, command } of runtimes) {
    test(`reads a page, follows a redirect and refuses another one: ${name}`, async () => {
      const proxy = await serve(reply("from the proxy", html));
      const secret = await serve(reply("secret", html));
      const page = await serve(byPath({
        "/": reply("<title>Page</title><p>Hello <a href=/moved>there</a>.", html),
        "/moved": redirect("/"),
        "/away": redirect(`http://localhost:${secret.port}/`),
      }));
      const url = `http://127.0.0.1:${page.port}`;
      try {
        await withMachine(async (m) => {
          const proxied = `http://127.0.0.1:${proxy.port}`;
          m.write(
            "replies.yaml",
            replies([`${url}/`, `${url}/moved`, `${url}/away`, `http://localhost:${page.port}/`]),
          );
          const [program = "", ...args] = command;
          const ran = await m.program([
            program,
            ...args,
            "run",
            "--policy",
            m.write("policy.yaml", policy),
            "fetch",
          ], {
            cwd: m.repo,
            env: {
              HTTP_PROXY: proxied,
              http_proxy: proxied,
              ALL_PROXY: proxied,
              NODE_USE_ENV_PROXY: "1",
              // Deno itself would ask through the proxy for a newer version.
              DENO_NO_UPDATE_CHECK: "1",
            },
          });
          assertEquals([ran.code, ran.stdout], [0, "done\n"], ran.stderr);
          const results = eventsOf(await soundLog(m), "tool.completed").map((e) => e.data);
          assertEquals(results.map((r) => [r.ok, r.code]), [
            [true, undefined],
            [true, undefined],
            [false, "redirect_refused"],
            [false, "denied"],
          ]);
          assertMatch(
            results[0]?.result ?? "",
            /\]\ntitle: Page\n\nHello there \(http:\/\/127\.0\.0\.1:\d+\/moved\)\.\n\[end/,
          );
          assertMatch(results[2]?.result ?? "", /builtin\.private/);
        });
        const seen = page.requests.map((head) => head.split("\r\n").slice(0, 2).join(" "));
        const host = `Host: 127.0.0.1:${page.port}`;
        assertEquals(seen, ["/", "/moved", "/", "/away"].map((path) => `GET ${path} HTTP/1.1 ${host}`));
        assertEquals([secret.requests, proxy.requests], [[], []]);
      } finally {
        for (const server of [proxy, secret, page]) await server.close();
      }
    }, 60_000);
  }
});

const policy = `version: 1
model: {provider: script, script: replies.yaml}
tools: {enabled: [fetch_url]}
permissions: {allow: ["fetch_url(127.0.0.1)"]}
`;

function replies(urls: readonly string[]): string {
  return [...urls.map((url) => `- call: {fetch_url: {url: ${JSON.stringify(url)}}}`), "- text: done"].join(
    "\n",
  );
}
