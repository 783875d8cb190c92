#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the sources of a release into dist/commlens-VERSION.tar.xz, from which all packages are built, and the recipes of
# packaging/ with its address and checksum into dist/recipes.
#     tools/dist.sh [ADDRESS]    of the folder where the release will be; by default that of dist/ on this machine
#
# Everything that a build needs is in the repository, so the archive has its files and nothing else. The same files give
# the same bytes in any folder, on any day, with any user.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
usage "$@"
version=$(cat VERSION)
name=commlens-$version
address=${1:-file://$PWD/dist}
archive=dist/$name.tar.xz
mkdir -p dist

# Those that git knows or would add, and that are there.
files() {
  git ls-files -z --cached --others --exclude-standard | LC_ALL=C sort -z | while IFS= read -r -d '' path; do
    if [ -e "$path" ]; then printf '%s\0' "$path"; fi
  done
}

pack() {
  local time
  time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  files | tar --create --file=- --no-recursion --format=ustar --mtime="@$time" --owner=0 --group=0 \
    --numeric-owner --mode=u=rwX,go=rX --transform="s,^,$name/,S" --null --files-from=- | xz --threads=1 -6 >"$archive.part" &&
    mv "$archive.part" "$archive" || return
  git log -1 --format=%h >"${archive%.tar.xz}.commit" 2>/dev/null || true # for tools/first_report.sh
}

recipes() {
  local checksum recipe copy
  checksum=$(sha256sum "$archive") || return
  rm -rf dist/recipes
  for recipe in packaging/{rpm/*.spec,spack/package.py,easybuild/*.eb,conda/{recipe,variants}.yaml}; do
    copy=dist/recipes/${recipe#packaging/}
    mkdir -p "$(dirname "$copy")" || return
    sed -e "s,@ADDRESS@,$address,g" -e "s,@SHA256@,${checksum%% *},g" "$recipe" >"$copy" || return
  done
}

step dist "$archive" pack
step dist "recipes for it in dist/recipes" recipes
