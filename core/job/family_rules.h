// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/identity.h"

namespace commlens {

// A variable of the MPI library and the value that it has while communicators of a family are created.
struct FamilyVariable {
  std::string name;
  std::int32_t value;
};

// A family of communicators as a rules file names it: the procedure, its call site, and the family of the parent.
struct RuleFamily {
  int parent = -1;  // index of an earlier family; -1: the parent is MPI_COMM_WORLD
  std::uint32_t op = 0;
  std::string build_id;  // of the module with the call site; of Python code "python:" and the function
  std::uint64_t offset = 0;
  std::vector<FamilyVariable> variables;  // none: the family is only a parent
};

struct FamilyRules {
  std::vector<RuleFamily> families;
  std::string problem;  // why the rules are not used; empty: they are
  Identity digest = 0;  // of the text; equal rules have equal digests
};

// Reads the rules of COMMLENS_TUNE (docs/decisions/0031-per-communicator.md).  All or nothing: a wrong line makes all
// rules unusable.  Lines are
//   family NAME PARENT PROCEDURE BUILDID+0xOFFSET     PARENT: world, or the name of an earlier family
//   set NAME VARIABLE VALUE
// The first line is "commlens-tune 1"; blank lines and those that begin with # count for nothing.
FamilyRules family_rules_in(const std::string& text);

// The same for a file.
FamilyRules family_rules_of(const std::string& path);

}  // namespace commlens
