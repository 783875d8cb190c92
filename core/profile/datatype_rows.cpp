// SPDX-License-Identifier: Apache-2.0
// The rows of a profile about datatypes.
#include <algorithm>
#include <tuple>

#include "core/profile/profile.h"

namespace commlens {

// Parses what packed() (collect/package.cpp) writes.
void Profile::read_datatypes(WireReader& in, RankData& data) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) data.datatypes.push_back(DatatypeFacts::read(in));
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    DatatypeRow row{};
    row.rank = data.rank.facts.rank;
    for (std::uint32_t* const field : {&row.comm, &row.op, &row.sent, &row.received, &row.target})
      *field = static_cast<std::uint32_t>(in.number());
    row.calls = in.number();
    row.time = in.number();
    row.bytes_sent = in.number();
    row.bytes_received = in.number();
    data.datatype_rows.push_back(row);
  }
}

void Profile::add_datatypes(RankData& data) {
  std::vector<std::uint32_t> numbers{0};
  for (DatatypeFacts& facts : data.datatypes) numbers.push_back(dictionary.datatype(std::move(facts)));
  for (DatatypeRow& row : data.datatype_rows) {
    for (std::uint32_t* const n : {&row.sent, &row.received, &row.target}) *n = *n < numbers.size() ? numbers[*n] : 0;
    datatype_rows.push_back(row);
  }
}

void Profile::settle_datatypes(const Dictionary::Numbers& numbers) {
  for (DatatypeRow& row : datatype_rows) {
    row.comm = numbers.comms[row.comm];
    has_comm[row.comm] = 1;
    for (std::uint32_t* const n : {&row.sent, &row.received, &row.target}) *n = numbers.datatypes[*n];
  }
  const auto place = [](const DatatypeRow& row) {
    return std::make_tuple(row.comm, row.op, row.sent, row.received, row.target, row.rank);
  };
  std::sort(datatype_rows.begin(), datatype_rows.end(),
            [&place](const DatatypeRow& a, const DatatypeRow& b) { return place(a) < place(b); });
  // Several communicators of a rank may share a row.
  std::size_t kept = 0;
  for (const DatatypeRow& row : datatype_rows) {
    if (kept == 0 || place(datatype_rows[kept - 1]) != place(row)) {
      datatype_rows[kept++] = row;
      continue;
    }
    DatatypeRow& sum = datatype_rows[kept - 1];
    sum.calls += row.calls;
    sum.time += row.time;
    sum.bytes_sent += row.bytes_sent;
    sum.bytes_received += row.bytes_received;
  }
  datatype_rows.resize(kept);
}

}  // namespace commlens
