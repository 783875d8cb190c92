// SPDX-License-Identifier: Apache-2.0
#include "core/job/pcontrol.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/base/memory.h"
#include "core/job/annotate.h"
#include "core/job/crash_copy.h"
#include "core/job/job.h"
#include "core/state/notices.h"
#include "core/state/regions.h"

namespace commlens {
namespace {

enum class Dialect : std::uint8_t { automatic, off, mpip, ipm, aps, mpitrace, mpisee };

Dialect dialect = Dialect::automatic;
std::atomic_flag has_started = ATOMIC_FLAG_INIT;  // mpitrace: the first block to profile has begun

// The names of COMMLENS_PCONTROL, in the order of Dialect.
constexpr const char* names[] = {"auto", "off", "mpip", "ipm", "aps", "mpitrace", "mpisee"};

// A text that the application passed to MPI_Pcontrol, or may have passed: the function has variable arguments, and
// their number is unknown.  The second argument may therefore be any number.  It is read without risk of a fault and
// only accepted if it looks like a name.
class Text {
 public:
  // bytes: the length from a Fortran compiler, or 0.
  Text(const void* at, std::uint32_t bytes) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    constexpr std::uintptr_t page = smallest_page;
    if (address < page) return;
    std::size_t length = 0, known = 0;
    const std::size_t most = bytes != 0 && bytes < most_name_bytes ? bytes : most_name_bytes;
    for (; length < most && length == known;) {
      const std::size_t more = std::min(most - known, page - (address + known) % page);
      if (!read_memory(static_cast<const char*>(at) + known, text_ + known, more)) break;
      known += more;
      length += strnlen(text_ + length, known - length);
    }
    // Names that are too long are cut off, as everywhere.
    const bool ends = length < known || length == most_name_bytes || (length == bytes && dialect == Dialect::ipm);
    while (bytes != 0 && length > 0 && text_[length - 1] == ' ') --length;  // Fortran pads with blanks
    text_[std::min(length, most_name_bytes)] = '\0';
    const auto is_printable = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7f; };
    bytes_ = ends && std::all_of(text_, text_ + length, is_printable) ? length : 0;
  }
  explicit operator bool() const noexcept { return bytes_ != 0; }
  RegionName called() const noexcept { return {identity_of_name(text_, bytes_), text_, bytes_}; }
  const char* text() const noexcept { return text_; }

 private:
  char text_[most_name_bytes + 1] = "";
  std::size_t bytes_ = 0;
};

constexpr RegionName innermost{0, "", 0};

// The name of a region that the application identifies by a number.
class Number {
 public:
  explicit Number(long level) noexcept { std::snprintf(text_, sizeof text_, "MPI_Pcontrol(%ld)", level); }
  RegionName called() const noexcept {
    const std::size_t bytes = std::strlen(text_);
    return {identity_of_name(text_, bytes), text_, bytes};
  }

 private:
  char text_[32];
};

void begin(const RegionName& name, Site site) noexcept { begin_region(this_thread(), name, site, OpeningKind::region); }
void end(const RegionName& name, Site site) noexcept { end_region(this_thread(), name, site); }

void flush() noexcept { static_cast<void>(job.ready && flush_arena()); }

// Handles the levels 0 and 1, which are the same in all dialects.  Returns true if `level` is one of them.
bool is_switch(int level) noexcept {
  if (level == 0) pause_counting();
  if (level == 1) resume_counting();
  return level == 0 || level == 1;
}

bool of_mpip(int level) noexcept {
  if (level == 2) forget_counted();
  if (level == 3 || level == 4) flush();  // a report of all that was counted so far
  return is_switch(level) || (level >= 2 && level <= 4);
}

bool of_ipm(int level, const Text& text, Site site) noexcept {
  if (level == 1 && text) {
    begin(text.called(), site);
  } else if (level == -1) {
    end(text ? text.called() : innermost, site);
  } else if (level == 0 && text) {  // an event
    const std::uint64_t event = metric_of(text.text(), "events");
    if (event != 0) record_metric(event, 1);
  } else {
    return is_switch(level);
  }
  return true;
}

bool of_aps(int level, Site site) noexcept {
  if (level >= 5) begin(Number(level).called(), site);
  if (level <= -5) end(Number(-static_cast<long>(level)).called(), site);
  return is_switch(level) || level >= 5 || level <= -5;
}

bool of_mpitrace(int level, Site site) noexcept {
  if (level == 1 && !has_started.test_and_set()) forget_counted();  // discard what was counted before the first block
  if (level == 101) begin(Number(level).called(), site);
  if (level == 100) end(Number(101).called(), site);
  return is_switch(level) || level == 100 || level == 101;
}

// The automatic dialect: levels that mean the same in all dialects that define them.  Where dialects differ, chooses
// the meaning that loses no data.
bool of_any(int level, const Text& text, Site site) noexcept {
  const bool is_going_on = level == 1 && is_paused(pauses.changes.load());
  if (level == -1 || (level == 1 && !is_going_on && text)) return of_ipm(level, text, site);
  if (level == 100 || level == 101) return of_mpitrace(level, site);
  if (level >= 2 && level <= 4) {
    flush();
    return true;
  }
  return of_aps(level, site);
}

}  // namespace

void choose_dialect(const std::string& wanted) noexcept {
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (wanted == names[i]) dialect = static_cast<Dialect>(i);
  }
}

namespace {

void pcontrol(int level, const void* argument, std::uint32_t bytes, Site site) noexcept try {
  if (dialect == Dialect::off || !is_annotating()) return;
  const bool may_have_text = dialect == Dialect::ipm || dialect == Dialect::automatic;
  const bool has_text = may_have_text && level >= -1 && level <= 1;
  const Text text(has_text ? argument : nullptr, bytes);
  bool is_known = false;
  switch (dialect) {
    case Dialect::mpip: is_known = of_mpip(level); break;
    case Dialect::ipm: is_known = of_ipm(level, text, site); break;
    case Dialect::aps: is_known = of_aps(level, site); break;
    case Dialect::mpitrace: is_known = of_mpitrace(level, site); break;
    case Dialect::mpisee: is_known = is_switch(level); break;
    case Dialect::automatic: is_known = of_any(level, text, site); break;
    case Dialect::off: break;
  }
  if (is_known || is_noticed(Notice::level)) return;
  notice(Notice::level, "MPI_Pcontrol(" + std::to_string(level) + ") has no meaning in dialect " +
                            names[static_cast<std::size_t>(dialect)] +
                            " and is ignored; COMMLENS_PCONTROL selects another dialect");
} catch (const std::bad_alloc&) {
  return;
}

// Data that the MPI library's Fortran binding, which has one argument, would not pass on.
struct FortranCaller {
  Site site;  // 0: the call does not come from Fortran
  std::uint32_t bytes;
};
__thread FortranCaller fortran_caller;

}  // namespace

void note_fortran_caller(Site site, std::uint32_t bytes) noexcept { fortran_caller = {site, bytes}; }

void pcontrol(int level, const void* argument, Site site) noexcept {
  const FortranCaller caller = fortran_caller;
  fortran_caller = {};
  pcontrol(level, argument, caller.bytes, caller.site != 0 ? caller.site : site);
}

}  // namespace commlens
