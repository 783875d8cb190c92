// SPDX-License-Identifier: Apache-2.0
// What the fuzzer has found (tools/fuzz_arena.sh), and what it began with, once more.
#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/process.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer gives the name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace commlens {

TEST(what_the_fuzzer_found_is_read_and_merged_without_harm) {
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(COMMLENS_CORPUS)) {
    const std::string input = content_of(entry.path());
    const int failures = check::failures;
    in_own_process([&] {
      alarm(60);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    });
    if (check::failures != failures) check::fail(__FILE__, __LINE__, "see " + entry.path().string());
    ++inputs;
  }
  CHECK(inputs > 5);
}

}  // namespace commlens
