// A hundred rules as a team would write them: many programs, few of them in the call at hand.
import type { Layer } from "../../src/core/policy.ts";
import { layerOf } from "../../test/support/rules.ts";

function names(count: number, beginning: string): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${beginning}${i}`);
}

export const teamLayers: readonly Layer[] = [
  layerOf("machine", {
    deny: ["rm -rf *", "sudo *", "git push --force *", "kubectl delete *", "npm publish *", "dd *"]
      .map((c) => `shell(${c})`).concat(names(9, "tool").map((p) => `shell(${p} destroy *)`)),
  }),
  layerOf("user", {
    allow: ["git status *", "git diff *", "git log *", "npm test *", "tee *", "ls *", "cat *", "rg *"]
      .map((c) => `shell(${c})`)
      .concat(
        names(22, "make").map((p) => `shell(${p} check *)`),
        names(10, "src/").map((p) => `read_file(${p}/**)`),
      ),
    ask: ["git commit *", "git push *", "npm install *"].map((c) => `shell(${c})`)
      .concat(
        names(7, "deploy").map((p) => `shell(${p} *)`),
        names(5, "site").map((h) => `fetch_url(${h}.test)`),
      ),
    deny: names(5, "secret").map((p) => `read_file(**/${p}/**)`),
  }),
  layerOf("project", {
    ask: names(10, "release").map((p) => `shell(${p} *)`),
    deny: names(10, "legacy").map((p) => `shell(${p} *)`).concat(
      names(5, "generated").map((p) => `write_file(${p}/**)`),
    ),
  }),
];
