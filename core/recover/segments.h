// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "core/arena/format.h"
#include "core/recover/input.h"

namespace commlens::arena {

template <class T>
T copy_of(const void* from) {
  T value;
  std::memcpy(static_cast<void*>(&value), from, sizeof value);
  return value;
}

// The segments of an arena, as far as the file contains them.
class Segments {
 public:
  struct Segment {
    const SegmentHead* head;
    std::uint64_t at;  // offset of its content
  };

  // stated_end: end of the segments in bytes, from the header.
  Segments(const Content& content, std::uint64_t stated_end) : content_(content) {
    const std::uint64_t used = std::min(stated_end, content.size);
    for (std::uint64_t at = header_bytes; at + sizeof(SegmentHead) <= used;) {
      const auto* const head = reinterpret_cast<const SegmentHead*>(content.bytes + at);
      if (head->kind == Kind::none && head->bytes == 0) {  // the end of a chunk, or a hole
        at = behind_hole(at, header_bytes, sizeof(SegmentHead));
        continue;
      }
      at += sizeof(SegmentHead);
      if (head->bytes > used - at || head->bytes % alignment != 0) {
        is_damaged = used == stated_end;  // otherwise it is cut off
        return;
      }
      if (head->kind > last_kind) is_damaged = true;
      if (head->kind != Kind::none) all_.push_back({head, at});
      at += head->bytes;
    }
  }

  const char* content(const Segment& segment) const { return content_.bytes + segment.at; }

  // Calls visit(segment) for each segment of this kind.
  template <class Visit>
  void each(Kind kind, Visit visit) const {
    for (const Segment& segment : all_) {
      if (segment.head->kind == kind) visit(segment);
    }
  }

  // Calls visit(T, segment) for each element with a key in the arrays of T in all segments of this kind.
  template <class T, class Visit>
  void each_in(Kind kind, Visit visit) const {
    each(kind, [&](const Segment& segment) {
      each_keyed<T>(segment.at, segment.head->bytes / sizeof(T), [&](const T& t) { visit(t, segment); });
    });
  }

  // Calls visit(T) for each element with a key among the `n` of the array at offset `first`.
  template <class T, class Visit>
  void each_keyed(std::uint64_t first, std::uint64_t n, Visit visit) const {
    for (std::uint64_t at = first, end = first + n * sizeof(T); at < end;) {
      const auto t = copy_of<T>(content_.bytes + at);
      if (t.key == 0) {
        at = behind_hole(at, first, sizeof(T));
        continue;
      }
      visit(t);
      at += sizeof(T);
    }
  }

  // Leaves out the counters of these threads.  The segments with Thread and with the open regions stay.
  void leave_out(const std::set<std::uint32_t>& threads) {
    const auto is_of_them = [&threads](const Segment& segment) {
      switch (segment.head->kind) {
        case Kind::cells:
        case Kind::slices:
        case Kind::regions:
        case Kind::metrics:
        case Kind::loops:
        case Kind::peers:
        case Kind::series:
        case Kind::events: return threads.count(segment.head->number) != 0;
        default: return false;
      }
    };
    if (!threads.empty()) all_.erase(std::remove_if(all_.begin(), all_.end(), is_of_them), all_.end());
  }

  bool is_damaged = false;

 private:
  // Returns the next element after `at`, of an array that begins at `first`, that may contain data.
  std::uint64_t behind_hole(std::uint64_t at, std::uint64_t first, std::uint64_t element) const {
    const std::uint64_t next = at + element, data = content_.next_data(next);
    return std::max(next, first + (data - first) / element * element);
  }

  const Content& content_;
  std::vector<Segment> all_;
};

}  // namespace commlens::arena
