#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python packages into dist/: the source, the reader alone for every machine, and for each named processor a
# wheel with the library for each interface of MPI: tools/wheels.sh [PROCESSOR...], x86_64 if none is named.
#
# The same sources give the same bytes in any folder and on any day.  WHEELS=DIR puts them elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/wheel_tools.sh
processors=("${@:-x86_64}")
dist=${WHEELS:-dist}
glibc=2.28 # of the oldest systems on which they run, such as RHEL 8
tools/setup.sh wheels
bill=build/wheels/commlens.cdx.json
mkdir -p "$dist" build/wheels
wheel_tools

# The time of all files in the archives: of the commit, or that of the version if this is no checkout.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH
export SKBUILD_WHEEL_FORCE_INCLUDE="$bill=\${SKBUILD_METADATA_DIR}/sboms/commlens.cdx.json"
# What the build makes must not depend on how this machine builds other things.
unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CMAKE_GENERATOR CMAKE_BUILD_TYPE

package() { python -m build --no-isolation --outdir "$dist" "$@" .; }

reader() { python tools/sbom.py >"$bill" && package --wheel -Cwheel.cmake=false; }

# library PROCESSOR
library() {
  local place=$PWD/build/wheels/$1 ninja=()
  tools/zig.sh "$1" "$glibc" "$place/bin" && python tools/sbom.py --library "$1-linux-gnu.$glibc" >"$bill" || return
  if command -v ninja >/dev/null; then ninja=(-Ccmake.args=-GNinja); fi
  if command -v ccache >/dev/null; then
    # The compiler is a script; what it calls, and for what, decides whether an earlier object may be taken.
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DEPEND=1
    CCACHE_COMPILERCHECK="string:$(python -m ziglang version) $1 $glibc"
    export CCACHE_COMPILERCHECK
  fi
  package --wheel "-Cbuild-dir=$place" "${ninja[@]}" "-Ccmake.toolchain-file=cmake/zig.cmake" \
    "-Ccmake.define.COMMLENS_COMPILERS=$place/bin" "-Ccmake.define.CMAKE_SYSTEM_PROCESSOR=$1" \
    -Cinstall.strip=false "-Cwheel.tags=py3-none-manylinux_${glibc/./_}_$1" &&
    python tools/check_glibc.py --strict "$glibc" "$place"/bin/commlens-* "$place"/lib/*/*.so "$place"/lib/*.so
}

rm -f "$dist"/commlens-*.{whl,tar.gz} # not the archive of make dist
step wheels "source" package --sdist
step wheels "reader" reader
for processor in "${processors[@]}"; do
  step wheels "library for $processor" library "$processor"
done
git log -1 --format=%h >"$dist/wheels.commit" 2>/dev/null || true # for tools/first_report.sh
step wheels "twine check" python -m twine check --strict "$dist"/commlens-*.{whl,tar.gz}
