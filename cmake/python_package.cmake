# SPDX-License-Identifier: Apache-2.0
# Where a Python package puts the library: commlens-run beside the other commands, all else into libexec/commlens of the
# environment.  Not into lib: `pip install --target` leaves out what lies beside the modules there.
set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
set(CMAKE_INSTALL_LIBDIR libexec)
set(CMAKE_INSTALL_LIBEXECDIR libexec)
