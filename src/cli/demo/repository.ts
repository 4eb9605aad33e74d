// The throw-away repository of `writ demo`: a main line and a branch with a real defect that its own test does not see.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { run } from "../../sandbox/subprocess.ts";

const price = `#!/bin/sh
# price.sh PRICE: the price in cents.
price=$1
echo "$price"
`;
const priceWithDiscount = `#!/bin/sh
# price.sh PRICE [PERCENT]: the price in cents, less PERCENT per cent.
price=$1
percent=\${2:-0}
echo $((price - percent))
`;
const test = `#!/bin/sh
[ "$(sh src/price.sh 20000)" = 20000 ] && echo ok
`;
const testWithDiscount = `#!/bin/sh
[ "$(sh src/price.sh 20000)" = 20000 ] || exit 1
[ "$(sh src/price.sh 20000 10)" -lt 20000 ] || exit 1
echo ok
`;

/** Makes \`main\` and the branch \`discount\`, with \`main\` checked out. Throws an Error that says which git call failed. */
export async function makeRepository(
  folder: string,
  env: { readonly [name: string]: string },
): Promise<void> {
  mkdirSync(join(folder, "src"), { recursive: true });
  const git = (...args: string[]) => gitIn(folder, env, args);
  await git("init", "--quiet", "--initial-branch=main");
  await git("config", "user.name", "Writ Demo");
  await git("config", "user.email", "demo@localhost");
  await commit(folder, git, { "src/price.sh": price, "test.sh": test }, "Add the price");
  await git("switch", "--quiet", "-c", "discount");
  await commit(
    folder,
    git,
    { "src/price.sh": priceWithDiscount, "test.sh": testWithDiscount },
    "Add a discount",
  );
  await git("switch", "--quiet", "main");
}

async function commit(
  folder: string,
  git: (...args: string[]) => Promise<void>,
  files: { readonly [path: string]: string },
  message: string,
): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  await git("add", "--", ...Object.keys(files));
  await git("commit", "--quiet", "--no-gpg-sign", "-m", message);
}

async function gitIn(
  folder: string,
  env: { readonly [name: string]: string },
  args: readonly string[],
): Promise<void> {
  const result = await run(["git", ...args], {
    cwd: folder,
    env,
    timeoutMs: 30_000,
    maxOutput: 10_000,
    signal: new AbortController().signal,
  });
  if (result.exit !== 0) {
    throw new Error(`git ${args[0]} failed: ${result.stderr.trim() || "git is not installed"}`);
  }
}
