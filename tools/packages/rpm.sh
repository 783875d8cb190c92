# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The RPM package, built and installed with Debian's rpm. Its database knows nothing of Debian's packages, so that
# dependencies are not looked at. Sourced by tools/packages.sh.
# rpm calls `file` and elfutils to take debugging information out of programs, and pkg-config for what a package provides.
prepare() { root_with "$1" trixie g++ cmake make python3 rpm rpmlint xz-utils file pkg-config elfutils; }

build() {
  local home=$ROOTS/$1/home/user
  mkdir -p "$home/rpmbuild/SOURCES"
  cp "dist/$archive" "$home/rpmbuild/SOURCES"
  cp dist/recipes/rpm/commlens.spec packaging/rpm/rpmlint.toml "$home"
  to_user "$1"
  # shellcheck disable=SC2016  # expands inside
  as_user "$1" bash -euxc '
    rpmlint --strict --config rpmlint.toml commlens.spec
    rpmbuild --nodeps -ba commlens.spec
    rpmlint --strict --config rpmlint.toml rpmbuild/RPMS rpmbuild/SRPMS
  ' && rm -rf dist/rpm && mkdir dist/rpm && find "$home/rpmbuild" -name '*.rpm' -exec cp -t dist/rpm {} +
}

check() {
  local root=$ROOTS/$1-user folder
  root_with "$1-user" trixie "${smoke_packages[@]}" rpm python3-click python3-numpy python3-rich libsqlite3-0
  rm -rf dist/rpm/*debug*
  cp dist/rpm/*.rpm "$root/tmp"
  # shellcheck disable=SC2016  # expands inside
  in_root "$1-user" bash -euxc 'rm /tmp/*.src.rpm && rpm --install --nodeps /tmp/*.rpm && rpm --query --all'
  # Where Python for Fedora and SUSE looks, Debian's does not.
  folder=$(cd "$root" && echo usr/lib/python3*/site-packages)
  smoke "$1-user" "PYTHONPATH=/$folder"
  facts "$1" "$(cd dist/rpm && echo *[!c].rpm | wc -w) packages, rpmlint has no complaint; Open MPI and MPICH profiled"
}
