// SPDX-License-Identifier: Apache-2.0
#include "core/job/pcontrol.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "core/hot/thread.h"
#include "core/job/counting.h"
#include "core/job/crash_copy.h"
#include "core/state/notices.h"
#include "core/state/regions.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

constexpr Site site = 0x1000;

// Lets a process of its own count in a dialect.
void in_dialect(const char* dialect, const std::function<void()>& body) {
  const Folder folder;
  in_own_process([&] {
    setenv("COMMLENS_ARENA_DIR", folder.path().c_str(), 1);
    setenv("COMMLENS_PCONTROL", dialect, 1);
    CHECK(prepare_counting());
    body();
    remove_arena();
  });
}

void call(int level, const char* text = nullptr) { pcontrol(level, text, site); }

std::uint32_t depth() { return this_thread().regions == nullptr ? 0 : this_thread().regions->depth; }
bool is_counting() { return !is_paused(pauses.changes.load()); }
std::string notice_of_levels() {
  for (const NoticeText& notice : notices()) {
    if (notice.kind == Notice::level) return notice.text;
  }
  return "";
}

}  // namespace

TEST(levels_0_and_1_pause_and_resume_in_every_dialect_that_is_not_off) {
  for (const char* dialect : {"auto", "mpip", "ipm", "aps", "mpitrace", "mpisee"}) {
    in_dialect(dialect, [] {
      call(0);
      CHECK(!is_counting());
      call(1);
      CHECK(is_counting());
      CHECK_EQ(notice_of_levels(), "");
    });
  }
  in_dialect("off", [] {
    call(0);
    CHECK(is_counting());
    call(17);
    CHECK_EQ(notice_of_levels(), "");
  });
}

TEST(a_text_names_a_region_in_ipm_and_auto_only) {
  for (const char* dialect : {"ipm", "auto"}) {
    in_dialect(dialect, [] {
      call(1, "solve");
      CHECK_EQ(depth(), 1u);
      call(-1, "solve");
      CHECK_EQ(depth(), 0u);
    });
  }
  for (const char* dialect : {"mpip", "aps", "mpitrace", "mpisee"}) {
    in_dialect(dialect, [] {
      call(1, "solve");
      CHECK_EQ(depth(), 0u);
    });
  }
}

TEST(numbers_are_regions_in_aps_and_auto_only) {
  for (const char* dialect : {"aps", "auto"}) {
    in_dialect(dialect, [] {
      call(5);
      call(6);
      CHECK_EQ(depth(), 2u);
      call(-6);
      call(-5);
      CHECK_EQ(depth(), 0u);
    });
  }
  for (const char* dialect : {"mpip", "ipm", "mpitrace", "mpisee"}) {
    in_dialect(dialect, [dialect] {
      call(5);
      CHECK_EQ(depth(), 0u);
      CHECK_EQ(notice_of_levels(), std::string("MPI_Pcontrol(5) has no meaning in dialect ") + dialect +
                                       " and is ignored; COMMLENS_PCONTROL selects another dialect");
    });
  }
}

TEST(level_101_begins_a_region_that_100_ends_in_mpitrace) {
  in_dialect("mpitrace", [] {
    call(101);
    CHECK_EQ(depth(), 1u);
    call(100);
    CHECK_EQ(depth(), 0u);
  });
}

// The function has variable arguments, so the second one may be any number.
TEST(a_second_argument_that_is_no_text_is_passed_by) {
  in_dialect("ipm", [] {
    const auto at = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
    for (const void* argument : {at(0), at(1), at(4095), at(~std::uintptr_t{0}), at(0x7fff'ffff'ffff'f000)}) {
      pcontrol(1, argument, site);
      CHECK_EQ(depth(), 0u);
    }
    call(1, "");
    call(1, "two\nlines");
    CHECK_EQ(depth(), 0u);
    // A text without an end, before a page that cannot be read.
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto* const pages =
        static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(pages + page, page, PROT_NONE);
    pages[page - 2] = 'a';
    pages[page - 1] = 'b';
    call(1, pages + page - 2);
    CHECK_EQ(depth(), 0u);
    pages[page - 1] = '\0';
    call(1, pages + page - 2);
    CHECK_EQ(depth(), 1u);
  });
}

TEST(a_text_from_fortran_has_a_length_and_is_padded) {
  in_dialect("ipm", [] {
    note_fortran_caller(site, 8);
    call(1, "solve   and more");
    CHECK_EQ(depth(), 1u);
    CHECK_EQ(this_thread().regions->frames[1].name, identity_of_name("solve", 5));
    call(-1, "solve");  // from C again
    CHECK_EQ(depth(), 0u);
  });
}

}  // namespace commlens
