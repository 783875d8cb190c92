# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The easyconfig: style and dependencies as they are in EasyBuild's repository, then an installation for which Debian
# has the dependencies, so that no toolchain is compiled. Sourced by tools/packages.sh.
prepare() {
  root_with "$1" trixie "${smoke_packages[@]}" cmake make lmod python3-venv python3-click python3-numpy python3-rich \
    libsqlite3-0 ca-certificates bzip2 xz-utils unzip patch file
  as_user "$1" bash -euxc 'python3 -m venv eb && eb/bin/pip install --no-input easybuild==5.4.1 pycodestyle==2.14.0'
}

build() {
  local root=$ROOTS/$1
  install -D "dist/$archive" "$root/dist/$archive"
  cp dist/recipes/easybuild/*.eb "$root/home/user"
  to_user "$1"
  # The first python3 in PATH stays Debian's, which has what the reader needs.
  # shellcheck disable=SC2016  # expands inside
  as_user "$1" env LMOD_CMD=/usr/share/lmod/lmod/libexec/lmod EASYBUILD_PREFIX=/home/user/easybuild bash -euxc '
    export EB_PYTHON=$HOME/eb/bin/python3
    eb() { "$HOME/eb/bin/eb" "$@"; }
    eb --check-style ./*.eb
    eb --dry-run --robot ./*.eb | tee dry-run
    grep -c "(module: SciPy-bundle/" dry-run
    eb --try-toolchain=system,system --filter-deps=CMake,Python,Python-bundle-PyPI,SciPy-bundle --disable-map-toolchains \
      ./*.eb
  '
}

check() {
  local prefix=home/user/easybuild/software/commlens/$version
  [ -e "$ROOTS/$1/home/user/easybuild/modules/all/commlens/$version.lua" ]
  smoke "$1" "PATH=/$prefix/bin:/usr/local/bin:/usr/bin:/bin"
  facts "$1" "style and dependencies have no complaint; installed by EasyBuild; Open MPI and MPICH profiled"
}
