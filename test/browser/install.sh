#!/bin/sh
# Installs the browser that these tests drive from Debian. Does nothing where it
# is there.
set -eu

command -v chromium >/dev/null 2>&1 && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
	echo "install.sh: missing chromium, and there is no apt-get here to install it with" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "install.sh: missing chromium; run this as root" >&2
	exit 1
fi
echo "install.sh: installing chromium" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends chromium
