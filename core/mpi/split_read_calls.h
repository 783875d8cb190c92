// SPDX-License-Identifier: Apache-2.0
#pragma once

// Split collective reads: the call that ends one returns the status, and the call that began it gets the bytes.

#include <mpi.h>

#include "core/mpi/batch.h"
#include "core/mpi/wrap.h"

namespace commlens {
namespace handwritten {

template <class Next, class VolumeOf, class... Arguments>
int read_begin(Next next, Op op, Site caller, VolumeOf measure, MPI_File fh, Arguments... arguments) {
  Call call(op, caller);
  if (call.nested()) return next(fh, arguments...);
  FileRecord* const file = file_record(fh);
  const CommView& comm = file == nullptr ? no_comm() : *file->comm;
  call.start_under(comm.index);
  const int rc = next(fh, arguments...);
  call.stop();
  Volume volume(call.freed());
  if (rc == MPI_SUCCESS) measure(volume, comm);
  Cell& cell = call.record(comm, volume);
  if (rc == MPI_SUCCESS && file != nullptr) file->reading = &cell;
  return rc;
}

template <class Next>
int read_end(Next next, Op op, Site caller, MPI_File fh, void* buf, MPI_Status* status) {
  Call call(op, caller);
  if (call.nested()) return next(fh, buf, status);
  StatusFor status_for(status);
  FileRecord* const file = file_record(fh);
  const CommView& comm = file == nullptr ? no_comm() : *file->comm;
  call.start_under(comm.index);
  const int rc = next(fh, buf, status_for.get());
  call.stop();
  call.count_under(comm.index);
  if (file != nullptr && file->reading != nullptr) {
    if (rc == MPI_SUCCESS) credit(call.thread(), *file->reading, 0, status_for.received());
    file->reading = nullptr;
  }
  return rc;
}

}  // namespace handwritten
}  // namespace commlens
