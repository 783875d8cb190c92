# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The Spack package, as if it were in Spack's repository; Debian and PyPI have what it depends on. SPACK names a folder with
# Spack itself, of version 0.23, which has no module spack_repo: the two imports from it are removed. So are the dependencies
# on compilers if its packages are of the time before these. Sourced by tools/packages.sh.
prepare() {
  [ -n "${SPACK:-}" ] || not_here "$1" "SPACK=DIR does not name a clone of Spack"
  root_with "$1" bookworm "${smoke_packages[@]}" gfortran cmake make git curl patch unzip bzip2 xz-utils file ca-certificates \
    python3-venv
  cp -a "$SPACK" "$ROOTS/$1/home/user/spack"
  to_user "$1"
  # Spack gives what it runs no module from /usr, so those of the reader are in a folder of their own. It looks where
  # Debian's Python has modules.
  as_user "$1" bash -euxc '
    python3 -m venv tools
    tools/bin/pip install --no-input clingo==5.8.0 black==24.10.0 isort==5.13.2 flake8==7.3.0 setuptools
    tools/bin/pip install --no-input --target=modules/local/lib/python3.11/dist-packages click==8.1.3 numpy==1.24.2 rich==13.3.1
  '
}

build() {
  local home=$ROOTS/$1/home/user
  install -D "dist/$archive" "$ROOTS/$1/dist/$archive"
  mkdir -p "$home/spack/var/spack/repos/builtin/packages/commlens" "$home/.spack"
  sed '/^from spack_repo/d' dist/recipes/spack/package.py >"$home/spack/var/spack/repos/builtin/packages/commlens/package.py"
  if ! grep -q 'provides("c"' "$home/spack/var/spack/repos/builtin/packages/gcc/package.py"; then
    sed -i '/depends_on("c\(xx\)\?"/d' "$home/spack/var/spack/repos/builtin/packages/commlens/package.py"
  fi
  cat >"$home/.spack/packages.yaml" <<YAML
packages:
  all: {target: [x86_64]}
  cmake: {buildable: false, externals: [{spec: cmake@3.25.1, prefix: /usr}]}
  gmake: {buildable: false, externals: [{spec: gmake@4.3, prefix: /usr}]}
  python: {buildable: false, externals: [{spec: python@3.11.2, prefix: /usr}]}
  py-click: {buildable: false, externals: [{spec: py-click@8.1.3, prefix: /home/user/modules}]}
  py-numpy: {buildable: false, externals: [{spec: py-numpy@1.24.2, prefix: /home/user/modules}]}
  py-rich: {buildable: false, externals: [{spec: py-rich@13.3.1, prefix: /home/user/modules}]}
YAML
  to_user "$1"
  # shellcheck disable=SC2016  # expands inside
  as_user "$1" bash -euxc '
    export PATH=$HOME/tools/bin:$PATH SPACK_PYTHON=$HOME/tools/bin/python3
    cd spack && PATH=$PWD/bin:$PATH
    spack style --tool isort,black,flake8 var/spack/repos/builtin/packages/commlens/package.py
    spack audit packages commlens
    if [ -n "${CCACHE_DIR:-}" ]; then spack config add config:ccache:true; fi
    spack spec commlens
    spack install commlens
    spack test run commlens
    spack test results -l
  '
}

# With the environment that `spack load` makes.
check() {
  local loaded=() line
  while IFS= read -r line; do loaded+=("$line"); done < <(as_user "$1" bash -euc '
    export SPACK_PYTHON=$HOME/tools/bin/python3
    eval "$(spack/bin/spack load --sh commlens)"
    env | grep -E "^(PATH|PYTHONPATH)="')
  [ "${#loaded[@]}" = 2 ]
  smoke "$1" "${loaded[@]}"
  facts "$1" "style and audit have no complaint; installed and tested by Spack; Open MPI and MPICH profiled"
}
