#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the missing packages of the named groups; does nothing if none is missing.
#
#     tools/setup.sh build|reader|dev|wheels|demo|mpi|test|proof|peers|hosts|slurm|site|spark|fuzz|processors|roots ...
#
# A program counts as installed if it works, whether from a distribution's package, an environment module or Spack.
# Missing packages are installed with apt-get, as root or with sudo.  Without both, this script lists the packages to ask
# for, and fails only if a group cannot work without them.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh

has() { command -v "$1"; }
compiles() { has "$1" && "$1" -E -x c - -o /dev/null <<<'#include <mpi.h>'; }
# llnl-hatchet has wheels for Python up to 3.12; with later versions pip compiles it.
extends_python() {
  "$(system_python)" - <<'PROGRAM'
import os, sys, sysconfig
sys.exit(sys.version_info >= (3, 13) and not os.path.exists(sysconfig.get_path("include") + "/Python.h"))
PROGRAM
}
# Debian's packages of the two conflict: installing one removes the other.
has_modules() { has modulecmd || has "${LMOD_CMD:-/usr/share/lmod/lmod/libexec/lmod}"; }
packaged() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1")" = installed ]; }

# The environment uses the system's Python.  A Python manager that comes first in PATH could break it, and would be
# changed by it.
system_python() {
  local python
  for python in /usr/bin/python3 python3 python3.{13,12,11,10,9}; do
    if has "$python" >/dev/null &&
      "$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
      command -v "$python"
      return
    fi
  done
  return 1
}

# Prints the table of packages: group, name in Debian and Ubuntu, and a command that succeeds if it is installed.
# The build needs no MPI; the demo and the tests do.
needs() {
  cat <<'TABLE'
build   g++                 has g++
build   cmake               has cmake
reader  python3             has python3
reader  python3-venv        system_python
dev     python3             has python3
dev     python3-venv        system_python
dev     python3-dev         extends_python
dev     g++                 has g++
wheels  cmake               has cmake
wheels  python3             has python3
wheels  python3-venv        system_python
demo    openmpi-bin         has mpirun.openmpi
demo    lammps              has lmp
mpi     openmpi-bin         has mpirun.openmpi
mpi     libopenmpi-dev      compiles mpicc.openmpi
mpi     mpich               has mpirun.mpich
mpi     libmpich-dev        compiles mpicc.mpich
test    ninja-build         has ninja
test    ccache              has ccache
test    gfortran            has gfortran
test    binutils            has nm
processors gcc-aarch64-linux-gnu has aarch64-linux-gnu-gcc
processors g++-aarch64-linux-gnu has aarch64-linux-gnu-g++
processors g++-powerpc64le-linux-gnu has powerpc64le-linux-gnu-g++
processors gcc-powerpc64le-linux-gnu has powerpc64le-linux-gnu-gcc
processors g++-riscv64-linux-gnu has riscv64-linux-gnu-g++
processors gcc-riscv64-linux-gnu has riscv64-linux-gnu-gcc
processors g++-s390x-linux-gnu has s390x-linux-gnu-g++
processors gcc-s390x-linux-gnu has s390x-linux-gnu-gcc
processors qemu-user-static  has qemu-aarch64-static
processors qemu-system-arm  has qemu-system-aarch64
processors linux-source-6.12 packaged linux-source-6.12
processors flex             has flex
processors bison            has bison
processors bc               has bc
processors xz-utils         has xz
processors e2fsprogs        has mke2fs
processors mmdebstrap       has mmdebstrap
processors arch-test        has arch-test
roots   mmdebstrap          has mmdebstrap
roots   util-linux          has unshare
roots   xz-utils            has xz
fuzz    clang               has clang
fuzz    libclang-rt-dev     packaged libclang-rt-dev
test    pkgconf             has pkg-config
test    valgrind            has valgrind
test    man-db              has man
test    environment-modules has_modules
test    xz-utils            has xz
test    groff-base          has groff
test    zsh                 has zsh
test    fish                has fish
test    chromium            has chromium
test    chromium-driver     has chromedriver
test    python3-mpi4py      packaged python3-mpi4py
test    lammps              has lmp
test    hpcc                has hpcc
test    quantum-espresso    has pw.x
test    cp2k                has cp2k.psmp
test    nwchem-openmpi      has nwchem.openmpi
test    scalapack-mpi-test  packaged scalapack-mpi-test
test    libtrilinos-kokkos-dev packaged libtrilinos-kokkos-dev
test    libomp5             packaged libomp5
test    libpfm4             packaged libpfm4
proof   python3-h5py-mpi    packaged python3-h5py-mpi
proof   python3-petsc4py-real packaged python3-petsc4py-real
proof   libfftw3-mpi-dev    packaged libfftw3-mpi-dev
proof   libfftw3-dev        packaged libfftw3-dev
proof   libboost-mpi-dev    packaged libboost-mpi-dev
proof   mumps-test          packaged mumps-test
peers   git                 has git
peers   gfortran            has gfortran
peers   valgrind            has valgrind
peers   libsqlite3-dev      packaged libsqlite3-dev
peers   libunwind-dev       packaged libunwind-dev
peers   binutils-dev        packaged binutils-dev
peers   libiberty-dev       packaged libiberty-dev
peers   autoconf            has autoconf
peers   automake            has automake
peers   libtool             has libtoolize
peers   lammps              has lmp
peers   hpcc                has hpcc
peers   quantum-espresso    has pw.x
hosts   iproute2            has ip
spark   default-jre-headless has java
slurm   munge               has munged
slurm   slurmctld           has slurmctld
slurm   slurmd              has slurmd
slurm   slurm-client        has srun
slurm   slurm-wlm-basic-plugins packaged slurm-wlm-basic-plugins
site    libslurm-dev        packaged libslurm-dev
site    python3-mpi4py      packaged python3-mpi4py
site    valgrind            has valgrind
TABLE
}

# Prints the missing packages of the named groups, one per line.
missing() {
  local group package probe
  while read -r group package probe; do
    [[ " $* " == *" $group "* ]] || continue
    $probe >/dev/null 2>&1 || echo "$package"
  done < <(needs) | sort -u
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

may_install() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=600 "$@"
}

known() { apt-cache show "$1" >/dev/null 2>&1; }

# The package lists may be outdated, so that downloads fail; then updates them once and tries again.
install() {
  apt install --no-install-recommends "$@" ||
    { apt update && apt install --no-install-recommends "$@"; }
}

# Installs the named packages that this distribution has.
fetch_packages() {
  local package wanted=()
  for package in "$@"; do
    known "$package" || { step setup "package lists" apt update && break; }
  done
  for package in "$@"; do
    if known "$package"; then wanted+=("$package"); else say setup "this distribution has no $package"; fi
  done
  ((${#wanted[@]} == 0)) || step setup "${#wanted[@]} packages with apt-get" install "${wanted[@]}"
}

# Creates .venv with the reader, editable; with "dev" also formatters, linters and the test runner, in exact versions.
# The stamp contains the folder and the checksums for which it was created.
make_venv() {
  local extra=$1 stamp
  stamp="$PWD $(sha256sum pyproject.toml VERSION)"
  [ "$(cat .venv/commlens-dev 2>/dev/null)" = "$stamp" ] && return
  [ -z "$extra" ] && [ "$(cat .venv/commlens-reader 2>/dev/null)" = "$stamp" ] && return
  step setup "Python environment .venv${extra:+, with linters and pytest}" fill_venv "$extra"
  echo "$stamp" >".venv/commlens-${extra:-reader}"
}

# An environment that was moved, or whose Python was removed, cannot be repaired and is created again.
fill_venv() {
  { grep -qs "^#!$PWD/.venv/" .venv/bin/pip && .venv/bin/python -c 'import pip'; } || rm -rf .venv
  [ -d .venv ] || "$(system_python)" -m venv .venv || return
  .venv/bin/python -m pip install --disable-pip-version-check --no-input -e ".${1:+[$1]}"
}

mapfile -t packages < <(missing "$@")
if ((${#packages[@]})); then
  if may_install; then
    fetch_packages "${packages[@]}"
  else
    say setup "missing: ${packages[*]}"
    say setup "Install them, or ask for:  apt-get install ${packages[*]}"
    say setup "or bring your own (module load, spack load) so that g++, cmake and Python 3.9 or later with venv are found."
  fi
fi

# Without these groups nothing works; without others, only the demo or some tests fail.
for group in "$@"; do
  case $group in
    build | reader | dev | wheels)
      mapfile -t packages < <(missing "$group")
      ((${#packages[@]} == 0)) || { say setup "cannot continue without ${packages[*]}"; exit 1; }
      ;;
  esac
done

case " $* " in
  *" dev "*) make_venv dev ;;
  *" reader "*) make_venv "" ;;
esac
