// Words that are run without a shell, as a text in which a shell would read just these words.

const plain = /^[A-Za-z0-9_./:@%,^+-][A-Za-z0-9_./:@%,^+=-]*$/;
// As a first word these would be read as something else than a program.
const special =
  /^(?:[A-Za-z_][A-Za-z0-9_]*\+?=.*|if|then|elif|else|fi|for|while|until|do|done|case|esac|in|select|function|coproc|time)$/s;

/** Nothing in it is expanded; every word stands for itself. */
export function argvText(argv: readonly string[]): string {
  return argv.map((word, index) =>
    plain.test(word) && !(index === 0 && special.test(word)) ? word : quoted(word)
  )
    .join(" ");
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
