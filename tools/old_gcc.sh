# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tools/old_glibc.sh.  GCC 9 from the packages of Debian 11, unpacked into build/old/gcc: nothing of it is
# installed.
OLD=$PWD/build/old
old_packages=(
  g++-9 gcc-9 cpp-9 libstdc++-9-dev libgcc-9-dev libisl23 libmpfr6 libmpc3 libgmp10 zlib1g libzstd1 libc6 libc6-dev
  linux-libc-dev libcrypt-dev
)

# Calls an apt command with lists of its own.
old_apt() {
  local command=$1
  shift
  "$command" -o Dir::Etc::SourceList="$OLD/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$OLD/lists" \
    -o Dir::State::status="$OLD/status" -o Dir::Cache="$OLD/cache" -o Acquire::Languages=none -o APT::Sandbox::User=root "$@"
}

fetch_old_gcc() {
  [ ! -e "$OLD/gcc/usr/bin/g++-9" ] || return 0
  mkdir -p "$OLD"/lists/partial "$OLD"/cache/archives/partial "$OLD/packages" "$OLD/unpacked"
  touch "$OLD/status"
  echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bullseye main" \
    >"$OLD/sources.list"
  old_apt apt-get update && (cd "$OLD/packages" && old_apt apt-get download "${old_packages[@]}") || return
  for package in "$OLD"/packages/*.deb; do dpkg-deb -x "$package" "$OLD/unpacked" || return; done
  mv "$OLD/unpacked" "$OLD/gcc"
}

# read_sources FOLDERS COMPILER SUFFIX OPTION...: reads all files with this suffix, and creates nothing.
read_sources() {
  local folders=$1 compiler=$2 suffix=$3
  shift 3
  # shellcheck disable=SC2086  # several folders
  find $folders -name "*.$suffix" -print0 | xargs -0 -P "$(nproc)" -n 4 "$OLD/gcc/usr/bin/$compiler" \
    --sysroot="$OLD/gcc" -B "$OLD/gcc/usr/lib/gcc/x86_64-linux-gnu/9" -fsyntax-only -w -D_GNU_SOURCE -I. -Iinclude \
    -DCOMMLENS_VERSION='""' -DCOMMLENS_BUILD='""' -DCOMMLENS_PROFILER "$@"
}

# Only what includes mpi.h differs between the interfaces.
read_all_sources() {
  read_sources "core adapters" gcc-9 c -std=c11 &&
    read_sources "core generated" g++-9 cpp -std=c++17 -isystem generated/mpi/openmpi &&
    read_sources "core/mpi generated" g++-9 cpp -std=c++17 -isystem generated/mpi/mpich &&
    read_sources "core/mpi generated" g++-9 cpp -std=c++17 -isystem generated/mpi/abi
}
