# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The Debian package for the version of Debian in the name of the part.  Sourced by tools/packages.sh.
suite() { case $1 in debian-12) echo bookworm ;; debian-13) echo trixie ;; esac; }

prepare() { root_with "$1" "$(suite "$1")" build-essential debhelper dh-python cmake python3 libslurm-dev libsqlite3-0 lintian; }

# As packaging/debian/README.md says, by a user without rights. Lintian's errors and warnings are failures.
build() {
  local source=$ROOTS/$1/home/user
  cp "dist/$archive" "$source/commlens_$version.orig.tar.xz"
  # shellcheck disable=SC2016  # expands inside
  as_user "$1" bash -euxc '
    tar xf commlens_*.orig.tar.xz
    cd commlens-*/
    cp -r packaging/debian .
    dpkg-buildpackage --no-sign
    cd ..
    lintian --fail-on error,warning --info --display-info --pedantic ./*.changes
  ' && rm -rf "dist/$1" && mkdir "dist/$1" && cp "$source"/*.{deb,dsc,debian.tar.xz,changes} "dist/$1" &&
    cp "dist/commlens-$version.commit" "dist/$1/commit" # for tools/first_report.sh
}

# In another root folder, which has nothing of the build.
check() {
  root_with "$1-user" "$(suite "$1")" "${smoke_packages[@]}"
  cp "dist/$1"/*.deb "$ROOTS/$1-user/tmp"
  # shellcheck disable=SC2016
  apt_in_root "$1-user" $(cd "dist/$1" && printf '/tmp/%s\n' *.deb)
  smoke "$1-user"
  facts "$1" "$(cd "dist/$1" && echo *.deb | wc -w) packages, lintian has no error and no warning; Open MPI and MPICH profiled"
}
