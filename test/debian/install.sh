#!/bin/sh
# Installs packages of Debian, by name, for tests: install.sh PACKAGE... Does
# nothing without any.
set -eu

[ $# -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
	[ $# -eq 1 ] && them=it || them=them
	echo "install.sh: missing $*, and there is no apt-get here to install $them with" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "install.sh: missing $*; run this as root" >&2
	exit 1
fi
echo "install.sh: installing $*" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends "$@"
