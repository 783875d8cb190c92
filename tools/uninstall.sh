#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Removes what tools/install.sh put below PREFIX, and the folders that are empty then.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
prefix=${1:?usage: tools/uninstall.sh PREFIX}
manifest=$prefix/lib/commlens/manifest
if [ ! -f "$manifest" ]; then
  say install "$manifest is missing: nothing was installed with PREFIX=$prefix"
  exit 1
fi

# Other folders of /usr and /usr/local belong to the system, also when they are empty.
may_go() {
  case $(realpath "$prefix") in
    /usr | /usr/local) [[ /$1 == */commlens* ]] ;;
  esac
}

# A line is a path below the prefix.
remove() {
  local path folder failed=0
  while IFS= read -r path; do
    [ -n "$path" ] || continue
    rm -rf "${prefix:?}/$path" || failed=1
    folder=$(dirname "$path")
    while [ "$folder" != . ] && may_go "$folder" && rmdir "$prefix/$folder" 2>/dev/null; do folder=$(dirname "$folder"); done
  done < <(cat "$manifest" && echo lib/commlens/manifest)
  return $failed
}
step install "remove commlens below $prefix" remove
