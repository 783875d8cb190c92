// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include "core/mpi/api.h"

namespace [[gnu::visibility("hidden")]] commlens {

// While it exists, errors on MPI_COMM_WORLD are returned to us: they neither end the application nor reach its error
// handler.
class OwnErrors {
 public:
  OwnErrors() noexcept {
    is_set_ = api.Comm_get_errhandler(api.comm_world, &before_) == MPI_SUCCESS &&
              api.Comm_set_errhandler(api.comm_world, api.errors_return) == MPI_SUCCESS;
  }
  ~OwnErrors() {
    if (!is_set_) return;
    api.Comm_set_errhandler(api.comm_world, before_);
    api.Errhandler_free(&before_);
  }
  OwnErrors(const OwnErrors&) = delete;
  OwnErrors& operator=(const OwnErrors&) = delete;

 private:
  MPI_Errhandler before_;
  bool is_set_;
};

}  // namespace commlens
