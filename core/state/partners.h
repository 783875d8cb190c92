// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/thread.h"
#include "generated/procedures.h"

namespace commlens {

// The values of a Partner in a profile that are no rank and no tag.
inline constexpr int any_partner = -1;   // MPI_ANY_SOURCE, MPI_ANY_TAG
inline constexpr int null_partner = -2;  // MPI_PROC_NULL
inline constexpr int no_partner = -3;    // the procedure has no such argument, or its value is not valid

// The same constants in an MPI library; each family has its own.
struct PartnerConstants {
  int any_source, proc_null, any_tag;
};

// The partners of a call, with the constants of a profile.
struct CallPartners {
  Partner to{no_partner, no_partner}, from{no_partner, no_partner};
};

inline Partner as_stored(Partner partner, const PartnerConstants& constants) noexcept {
  if (partner.rank == constants.any_source) {
    partner.rank = any_partner;
  } else if (partner.rank == constants.proc_null) {
    partner.rank = null_partner;
  } else if (partner.rank < 0) {
    partner.rank = no_partner;
  }
  if (partner.tag == constants.any_tag) {
    partner.tag = any_partner;
  } else if (partner.tag < 0) {
    partner.tag = no_partner;
  }
  return partner;
}

// pre: call.op < std::size(op_facts)
inline CallPartners partners_of(const CurrentCall& call, const PartnerConstants& constants) noexcept {
  CallPartners found;
  const Partners has = op_facts[call.op].partners;
  // A send has no wildcards: -1 is then an error of the application.
  const auto named = [](int n) { return n == any_partner ? no_partner : n; };
  if (has == Partners::to || has == Partners::both) {
    const Partner to = as_stored(call.to, constants);
    found.to = {named(to.rank), named(to.tag)};
  }
  if (has == Partners::from || has == Partners::both) found.from = as_stored(call.from, constants);
  return found;
}

}  // namespace commlens
