// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/wrap.h"

namespace commlens {

bool has_empty_block(const CommView& comm, const Volume& v) noexcept {
  if (v.bin != v_bin) return false;  // all blocks have the same size, which the bin shows
  bool is_any_empty = v.shape == Flow::all_to_all ? v.sent == 0 : v.sent + v.received == 0;
  v.each_block(comm, [&](int, Bytes bytes) { is_any_empty = is_any_empty || bytes == 0; });
  return is_any_empty;
}

}  // namespace commlens
