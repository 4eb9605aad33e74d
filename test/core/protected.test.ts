import { assertEquals } from "@std/assert";
import { test } from "bun:test";
import { protectedEntries } from "../../src/core/protected.ts";

test("protectedEntries() are what decides what runs next, each once", () => {
  const entries = protectedEntries({
    root: "/w[s]",
    policyFiles: ["/home/u/Policy.yaml"],
    instructions: ["AGENTS.md", "docs/Rules/AGENTS.md"],
    skillFolders: ["/home/u/Skills"],
    gitFolders: ["/Git"],
    own: ["/home/u/.writ", "/home/u/Skills"],
  });
  assertEquals(entries, [
    { glob: "/**/.writ/**", shown: ".writ/**", holds: ".writ" },
    { glob: "/**/.git", shown: ".git", holds: ".git" },
    { glob: "/**/*.git/hooks/**", shown: ".git/hooks/**", holds: ".git/" },
    {
      glob: "/**/*.git/{config,config.worktree,commondir}",
      shown: ".git/{config,config.worktree,commondir}",
      holds: ".git/",
    },
    {
      glob: "/**/*.git/{info,modules,worktrees}/**",
      shown: ".git/{info,modules,worktrees}/**",
      holds: ".git/",
    },
    { glob: "/Git/hooks/**", shown: "/Git/hooks/**", holds: "/git" },
    {
      glob: "/Git/{config,config.worktree,commondir}",
      shown: "/Git/{config,config.worktree,commondir}",
      holds: "/git",
    },
    { glob: "/Git/{info,modules,worktrees}/**", shown: "/Git/{info,modules,worktrees}/**", holds: "/git" },
    { glob: "/home/u/Policy.yaml", shown: "/home/u/Policy.yaml", holds: "/home/u/policy.yaml" },
    { glob: "/w\\[s\\]/**/AGENTS.md", shown: "AGENTS.md", holds: "agents.md" },
    { glob: "/w\\[s\\]/docs/Rules/AGENTS.md", shown: "docs/Rules/AGENTS.md", holds: "agents.md" },
    { glob: "/home/u/Skills/**", shown: "/home/u/Skills/**", holds: "/home/u/skills" },
    { glob: "/home/u/.writ/**", shown: "/home/u/.writ/**", holds: "/home/u/.writ" },
  ]);
});
