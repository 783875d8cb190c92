#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates compilers for an old C library, as CMake can call them: tools/zig.sh PROCESSOR GLIBC FOLDER, called by
# tools/wheels.sh.
#
# They are those of the package ziglang, which contains Clang, a C++ library that is linked into what it compiles, and the
# C library's symbols of each version.  Sources are called by their path in the repository, wherever that lies.  Zig adds
# debug information unless told not to (-g0), which contains the paths of its own headers; the linker removes it anyway.
set -euo pipefail
cd "$(dirname "$0")/.."
processor=$1 glibc=$2 folder=$3
zig=$(python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')

# compiler NAME COMMAND ARGUMENTS: writes a script NAME, unless there is the same one already.
compiler() {
  local name=$1 text
  shift
  text=$(printf '#!/bin/sh\nexec %q %s "$@"\n' "$zig" "$*")
  [ "$(cat "$folder/$name" 2>/dev/null)" = "$text" ] || echo "$text" >"$folder/$name"
  chmod +x "$folder/$name"
}

mkdir -p "$folder"
target="-target $processor-linux-gnu.$glibc -g0 $(printf %q "-ffile-prefix-map=$PWD=.")"
compiler clang cc "$target"
compiler clang++ c++ "$target"
compiler ar ar
compiler ranlib ranlib
