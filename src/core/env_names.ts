// What the name of an environment variable says: whether it may reach a child, and whether its value is a secret.

// Variables that make a program run or load something else than it was asked to, whoever set them.
const steering = [
  /^(BASH_ENV|ENV|BASHOPTS|SHELLOPTS|BASH_XTRACEFD|PROMPT_COMMAND|PS[0-4]|IFS|CDPATH|GLOBIGNORE|EXECIGNORE)$/,
  /^(BASH_FUNC_|LD_|DYLD_|GIT_|BUN_|NODE_|DENO_|WRIT_|NPM_CONFIG_)/,
  /^(PYTHONSTARTUP|PYTHONHOME|PYTHONPATH|PERL5OPT|PERL5LIB|RUBYOPT|RUBYLIB|LESSOPEN|LESSCLOSE|GCONV_PATH)$/,
  /_OPTIONS$/,
];
const secret =
  /(^|_)((API|ACCESS|PRIVATE)?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(_|S?$)|(KEY|TOKEN|SECRET|PASSWORD)S?$/;

/** Whether the value of a variable of this name is a secret: it reaches no child and stands in no event. */
export function isSecretName(name: string): boolean {
  return secret.test(name.toUpperCase());
}

/** Why a variable of this name reaches no child, also when a policy names it; undefined when it may. */
export function whyNeverPassed(name: string): "steers" | "secret" | undefined {
  const upper = name.toUpperCase();
  if (steering.some((pattern) => pattern.test(upper))) return "steers";
  return isSecretName(name) ? "secret" : undefined;
}

/** Whether a variable of this name reaches no child, also when a policy names it. */
export function isNeverPassed(name: string): boolean {
  return whyNeverPassed(name) !== undefined;
}
