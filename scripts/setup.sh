# Sourced by the other scripts: installs the locked packages if need be and sets BUN to a bun that works.
# Needs Node 20+ with npm, or only bun.
cd "$(dirname "$0")/.." || exit 1
if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  if command -v npm >/dev/null 2>&1; then
    echo "installing packages with npm …" >&2
    npm ci --no-audit --no-fund --loglevel=error >&2 || exit 1
  elif command -v bun >/dev/null 2>&1; then
    echo "installing packages with bun …" >&2
    bun install --frozen-lockfile >&2 || exit 1
    # bun leaves no marker of its own; the next run must see that the packages are there.
    touch node_modules/.package-lock.json
  else
    echo "error: neither npm (Node 20 or newer) nor bun was found; install one of them" >&2
    exit 2
  fi
fi
BUN=$PWD/node_modules/.bin/bun
if ! "$BUN" --version >/dev/null 2>&1; then
  # Install scripts may be switched off on this machine: run bun's own by hand.
  if command -v node >/dev/null 2>&1; then node node_modules/bun/install.js >&2 || true; fi
  if ! "$BUN" --version >/dev/null 2>&1; then BUN=$(command -v bun) || {
    echo "error: bun could not be installed for this machine" >&2
    exit 1
  }; fi
fi
export BUN
