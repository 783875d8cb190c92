#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds every kind of package from the archive of a release, installs it in an empty system, and profiles jobs there
# (packaging/smoke.sh): as root, with Debian's mirror and PyPI; an hour. Goes on after a failure. The last lines are a
# table, which is also in build/packages/table.txt.
#     tools/packages.sh [PART]...    debian-13 debian-12 rpm spack easybuild conda docker apptainer; all by default
# SPACK=DIR is a clone of Spack; without it its recipe is not tried.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/roots.sh
usage "$@"
need_root
parts=("$@")
((${#parts[@]})) || parts=(debian-13 debian-12 rpm spack easybuild conda docker apptainer)
place=$PWD/build/packages
version=$(cat VERSION)
archive=commlens-$version.tar.xz
mkdir -p "$place"
export ROOTS

# The functions of a part are in tools/packages/PART.sh: `prepare`, `build` and `check`. They run one after the other, each
# in a shell of its own, until one fails. Exit code 77: its tool is not here.
. tools/packages/common.sh

run_part() {
  local part=$1 stage code
  for stage in prepare build check; do
    code=0
    step package "$part: $stage" bash -euo pipefail -c '
      . tools/roots.sh && . tools/packages/common.sh && . "tools/packages/${1%-[0-9]*}.sh" && "$2" "$1"
    ' bash "$part" "$stage" || code=$?
    ((code == 0)) || break
  done
  case $code in
    0) echo "$part|passed|$(facts "$part")" ;;
    77) echo "$part|not tried|$(facts "$part")" ;;
    *) echo "$part|failed in $stage|" ;;
  esac >>"$place/table"
  return $code
}

tools/setup.sh roots
tools/dist.sh "file:///dist"
: >"$place/table"
failed=0
for part in "${parts[@]}"; do
  code=0
  run_part "$part" || code=$?
  ((code == 0 || code == 77)) || failed=1
done
awk -F'|' '{ printf "%-12s %-18s %s\n", $1, $2, $3 }' "$place/table" | tee "$place/table.txt"
exit $failed
