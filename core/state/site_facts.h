// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/base/wire.h"

namespace commlens {

// Begins SiteFacts::build_id of a place in Python code.
inline constexpr char python_function[] = "python:";

// A call site as module and offset.  Its address is valid only within its process.
// A place in Python code is stored in the same members: file, python_function and the function's name, and line.
struct SiteFacts {
  std::string module, build_id;
  std::uint64_t offset = 0;
  std::uint32_t caller = 0;  // number of the call site of its function, among those beside it; 0: unknown

  // Without the caller, whose number differs from list to list.
  void write(WireWriter& out) const {
    out.text(module);
    out.text(build_id);
    out.number(offset);
  }
  static SiteFacts read(WireReader& in) {
    SiteFacts facts;
    facts.module = in.text();
    facts.build_id = in.text();
    facts.offset = in.number();
    return facts;
  }
};

}  // namespace commlens
