# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the parts of tools/packages.sh.
place=$PWD/build/packages
version=$(cat VERSION)
archive=commlens-$version.tar.xz
# What packaging/smoke.sh needs besides commlens.
smoke_packages=(gcc libc6-dev g++ openmpi-bin libopenmpi-dev mpich libmpich-dev)

# facts PART [TEXT]: what the last line of the part says about it.
facts() {
  if [ $# -gt 1 ]; then printf '%s' "$2" >"$place/$1.facts"; else cat "$place/$1.facts" 2>/dev/null || true; fi
}

# Says why a part cannot be tried.
not_here() {
  facts "$1" "$2"
  echo "$2"
  exit 77
}

# root_with NAME SUITE PACKAGE...: an empty Debian with these packages.
root_with() {
  local name=$1 suite=$2
  shift 2
  new_root "$name" "$suite" && in_root "$name" apt-get -qq update &&
    apt_in_root "$name" "$@" ${ROOTS_CCACHE:+ccache}
}

# to_user NAME: the user of the root folder gets what was copied to its home.
to_user() { chown -R 1000:1000 "$ROOTS/$1/home/user"; }

# smoke NAME [VARIABLE=VALUE...]: profiles jobs of both MPI libraries, as a user without rights.
smoke() {
  local name=$1 mpi
  shift
  install -m 755 packaging/smoke.sh "$ROOTS/$name/usr/local/bin/commlens-smoke"
  for mpi in openmpi mpich; do
    as_user "$name" env "$@" "MPICC=mpicc.$mpi" commlens-smoke "mpirun.$mpi" || return
  done
}
