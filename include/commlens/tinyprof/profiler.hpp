// SPDX-License-Identifier: Apache-2.0
// The name of TinyProf's header, for programs that include it: -I PREFIX/include/commlens/tinyprof.
#include "../tinyprof.hpp"
