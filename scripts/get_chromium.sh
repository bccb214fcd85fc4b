#!/usr/bin/env bash
# Chromium for the browser tests and screenshots: found, else installed where that is allowed.
# Without one the browser tests are skipped and say so; with CI set, a missing one is a failure.
#
#   scripts/get_chromium.sh .venv/bin
set -uo pipefail
bin=$1

found() {
  command -v chromium >/dev/null || "$bin/python" - <<'PYTHON'
import sys
from pathlib import Path
from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    sys.exit(not Path(playwright.chromium.executable_path).exists())
PYTHON
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

found && exit 0
echo "Chromium is not installed. Installing it."
if grep -qs '^ID=debian' /etc/os-release; then
  export DEBIAN_FRONTEND=noninteractive
  packages=(chromium fonts-dejavu-core fonts-liberation)
  as_root apt-get install -y -q "${packages[@]}" </dev/null >/dev/null 2>&1 ||
    { as_root apt-get update -q && as_root apt-get install -y -q "${packages[@]}"; } </dev/null
  found && exit 0
fi
"$bin/playwright" install chromium </dev/null
found && exit 0
if [ -n "${CI:-}" ]; then
  echo "Could not install Chromium, which the browser tests need." >&2
  exit 1
fi
echo "Could not install Chromium. The browser tests will be skipped."
