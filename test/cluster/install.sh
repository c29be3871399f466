#!/bin/sh
# Installs what a test node needs from Debian: runc, the CNI plugins, and iptables,
# which the kubelet looks for. Does nothing where it is all there.
set -eu

missing=
command -v runc >/dev/null 2>&1 || [ -x /usr/sbin/runc ] || missing="$missing runc"
command -v iptables >/dev/null 2>&1 || [ -x /usr/sbin/iptables ] || missing="$missing iptables"
[ -x /usr/lib/cni/ptp ] || [ -x /opt/cni/bin/ptp ] || missing="$missing containernetworking-plugins"
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
	echo "install.sh: missing$missing, and there is no apt-get here to install them with" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "install.sh: missing$missing; run this as root" >&2
	exit 1
fi
echo "install.sh: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 # A list of words.
apt-get install -q -y --no-install-recommends $missing
