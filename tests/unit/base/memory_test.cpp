// SPDX-License-Identifier: Apache-2.0
#include "core/base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/unit/check.h"

namespace commlens {
namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

}  // namespace

TEST(memory_is_zero_and_begins_at_a_page) {
  auto* const memory = static_cast<unsigned char*>(map_memory(10'000));
  CHECK(memory != nullptr);
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(memory) % page, 0u);
  unsigned sum = 0;
  for (int i = 0; i < 10'000; ++i) sum += memory[i];
  CHECK_EQ(sum, 0u);
  unmap_memory(memory, 10'000);
}

TEST(memory_that_is_not_to_be_had_is_null_and_the_application_sees_no_errno) {
  errno = 4711;
  CHECK(map_memory(std::size_t{1} << 62) == nullptr);
  CHECK_EQ(errno, 4711);
  unmap_memory(reinterpret_cast<void*>(1), 1);
  CHECK_EQ(errno, 4711);
}

TEST(memory_that_cannot_be_read_is_found_out_without_a_signal) {
  auto* const memory = static_cast<char*>(map_memory(page));
  std::strcpy(memory, "there");
  char copy[6] = "";
  errno = 4711;
  CHECK(read_memory(memory, copy, sizeof copy));
  CHECK_EQ(std::string(copy), "there");
  mprotect(memory, page, PROT_NONE);
  CHECK(!read_memory(memory, copy, sizeof copy));
  unmap_memory(memory, page);
  CHECK(!read_memory(memory, copy, sizeof copy));
  CHECK_EQ(errno, 4711);
}

}  // namespace commlens
