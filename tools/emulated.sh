#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command as root of a user namespace of its own, in which the kernel starts programs for other processors by
# qemu-user.  Nothing of the system changes: the kernel keeps the registration with the namespace (Linux 6.7 or later).
#   tools/emulated.sh COMMAND...
#   EMULATED_ROOT=DIR tools/emulated.sh COMMAND...   in DIR as root folder, with this checkout at its place
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
export here

go=$(mktemp -u)
mkfifo "$go"
trap 'rm -f "$go"' EXIT

# shellcheck disable=SC2016  # expands inside
unshare --user --mount --propagation private bash -c '
  set -euo pipefail
  read -r _ <"$0"
  mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
  for name in aarch64 ppc64le riscv64 s390x; do
    IFS=: read -r _ _ _ _ magic mask _ <"/usr/lib/binfmt.d/qemu-$name.conf"
    # F: opens the emulator now, so that it is found in any root folder.
    printf "%s" ":qemu-$name:M:0:$magic:$mask:/usr/bin/qemu-$name-static:F" >/proc/sys/fs/binfmt_misc/register
  done
  become=(setpriv --reuid 0 --regid 0 --clear-groups)
  if [ -z "${EMULATED_ROOT:-}" ]; then exec "${become[@]}" "$@"; fi
  mkdir -p "$EMULATED_ROOT$here"
  for folder in /proc /dev /sys "$here"; do mount --rbind "$folder" "$EMULATED_ROOT$folder"; done
  exec "${become[@]}" chroot "$EMULATED_ROOT" env --chdir="$here" HOME=/root TMPDIR=/tmp "$@"
' "$go" "$@" <&0 &
child=$!
while [ "$(readlink "/proc/$child/ns/user")" = "$(readlink /proc/self/ns/user)" ]; do sleep 0.02; done
echo "0 0 65536" >"/proc/$child/uid_map"
echo "0 0 65536" >"/proc/$child/gid_map"
echo >"$go"
wait "$child"
