#!/bin/sh
# Installs what a test node needs from Debian: runc, the CNI plugins, and iptables,
# which the kubelet looks for. Does nothing where it is all there.
set -eu

set --
command -v runc >/dev/null 2>&1 || [ -x /usr/sbin/runc ] || set -- "$@" runc
command -v iptables >/dev/null 2>&1 || [ -x /usr/sbin/iptables ] || set -- "$@" iptables
[ -x /usr/lib/cni/ptp ] || [ -x /opt/cni/bin/ptp ] || set -- "$@" containernetworking-plugins
exec "$(dirname "$0")/../debian/install.sh" "$@"
