# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tools/packages.sh and tools/first_report.sh: root folders with Debian, for root, in build/roots (ROOTS names
# another place).
#
#   base SUITE            the archive of an empty Debian, made by mmdebstrap unless it is there
#   new_root NAME SUITE   the folder NAME, new, from that archive
#   in_root NAME COMMAND...           runs a command there as root
#   as_user NAME COMMAND...           the same as the user `user`, who has no rights
#
# ROOTS_CCACHE=DIR, if it is set, keeps what the compilers make, for the next run, where the package ccache is installed.
#
# Each command has namespaces of its own. Mounts end with it, and nothing outside of the root folder is mounted writable but
# ROOTS_CCACHE.
. tools/step.sh
ROOTS=${ROOTS:-$PWD/build/roots}
mkdir -p "$ROOTS"

need_root() {
  [ "$(id -u)" = 0 ] || { echo "this needs root: it makes root folders" >&2; return 1; }
}

base() {
  [ -e "$ROOTS/$1.tar" ] && return
  # Only a whole archive has this name.
  mmdebstrap --mode=root --variant=minbase "$1" "$ROOTS/$1.part.tar" && mv "$ROOTS/$1.part.tar" "$ROOTS/$1.tar"
}

new_root() {
  local root=$ROOTS/$1
  base "$2" || return
  rm -rf --one-file-system "$root"
  mkdir -p "$root" && tar -xpf "$ROOTS/$2.tar" -C "$root" --exclude=./dev && mkdir -p "$root/dev" || return
  # Names of hosts, and the certificates of a proxy if this machine is behind one.
  cp --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
  if [ -n "${PIP_CERT:-}" ]; then cp --remove-destination "$PIP_CERT" "$root/etc/proxy.pem"; fi
  echo "user:x:1000:1000::/home/user:/bin/bash" >>"$root/etc/passwd"
  echo "user:x:1000:" >>"$root/etc/group"
  if [ -n "${ROOTS_CCACHE:-}" ]; then mkdir -p "$ROOTS_CCACHE" && chmod 1777 "$ROOTS_CCACHE"; fi
  mkdir -p "$root/home/user" && chown 1000:1000 "$root/home/user"
}

# run_inside ID NAME COMMAND...
run_inside() {
  local id=$1 root=$ROOTS/$2 home=/root path=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin variables=()
  shift 2
  [ "$id" = 0 ] || home=/home/user
  if [ -n "${PIP_CERT:-}" ]; then variables+=(PIP_CERT=/etc/proxy.pem); fi
  if [ -n "${ROOTS_CCACHE:-}" ] && [ -x "$root/usr/bin/ccache" ]; then
    # CMake calls it. Compilers of its name in PATH would make the build of a checkout, which calls it, too, miss all.
    variables+=(CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache)
    variables+=(CCACHE_DIR=/ccache CCACHE_BASEDIR=/ CCACHE_DEPEND=1 CCACHE_UMASK=000)
  fi
  # shellcheck disable=SC2016  # expands inside
  unshare --mount --pid --fork --kill-child --ipc --propagation private bash -c '
    set -e
    root=$1 id=$2 number=0
    shift 2
    mount --bind "$root" "$root"  # buildah changes how / is mounted
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t tmpfs -o mode=755 dev "$root/dev"
    for device in null zero full random urandom tty; do
      : >"$root/dev/$device"
      mount --bind "/dev/$device" "$root/dev/$device"
    done
    ln -s /proc/self/fd "$root/dev/fd"
    for name in stdin stdout stderr; do ln -s "fd/$((number++))" "$root/dev/$name"; done
    mkdir "$root/dev/shm" "$root/dev/pts"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    if [ -n "${ROOTS_CCACHE:-}" ]; then
      mkdir -p "$root/ccache"
      mount --bind "$ROOTS_CCACHE" "$root/ccache"
    fi
    exec chroot --userspec="$id:$id" --groups= "$root" "$@"
  ' bash "$root" "$id" env -i --chdir="$home" HOME="$home" PATH="$path" LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "${variables[@]}" "$@" </dev/null
}

in_root() { run_inside 0 "$@"; }
as_user() { run_inside 1000 "$@"; }

# Needs nothing but the archive's lists, which are as old as the folder.
apt_in_root() {
  local name=$1
  shift
  in_root "$name" apt-get -qq -o Dpkg::Use-Pty=0 -y --no-install-recommends install "$@"
}
