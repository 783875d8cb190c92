// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/job.h"
#include "core/mpi/survive.h"
#include "include/commlens/commlens.h"

extern "C" {

__attribute__((visibility("default"))) const char* commlens_version(void) { return COMMLENS_VERSION; }
__attribute__((visibility("default"))) int commlens_active(void) { return commlens::job.ready ? 1 : 0; }
__attribute__((visibility("default"))) int commlens_flush(void) {
  return commlens::job.ready && commlens::flush_arena() ? 0 : 1;
}

}  // extern "C"
