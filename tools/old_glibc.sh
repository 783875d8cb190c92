#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does commlens work on old systems?  Builds the wheel's library for glibc 2.28 and checks the versions of all functions
# that it needs; then reads all sources with the oldest C++ compiler that can be had, GCC 9 with glibc 2.31 of Debian 11.
# The tests of the build look at the same functions of what this machine's compiler has built.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/old_gcc.sh
tools/setup.sh build wheels
tools/wheels.sh
step glibc "GCC 9 and glibc 2.31 of Debian 11" fetch_old_gcc
step glibc "all sources with GCC 9" read_all_sources
