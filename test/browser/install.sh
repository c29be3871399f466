#!/bin/sh
# Installs the browser that these tests drive from Debian. Does nothing where it
# is there.
set -eu

command -v chromium >/dev/null 2>&1 || exec "$(dirname "$0")/../debian/install.sh" chromium
