// SPDX-License-Identifier: Apache-2.0
#pragma once
// TEST(name_is_the_claim) { CHECK(condition); CHECK_EQ(found, expected); }
// A failed check is printed and the test goes on.  tests/unit/main.cpp runs all tests, or those named.
// ONLY_IF(condition, "who can do what"); skips the rest of a test if the condition is false.

#include <atomic>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace check {

// Under a sanitizer everything takes ten times as long: tests that repeat something at random do so less often.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool is_slow = true;
#else
inline constexpr bool is_slow = false;
#endif

struct Test {
  const char* name;
  void (*body)();
};
inline std::vector<Test> tests;
inline std::atomic<int> failures{0};  // of the running test, from any of its threads
inline const char* skip_reason;       // of the running test; null: not skipped

inline void fail(const char* file, int line, const std::string& what) {
  constexpr int enough = 10;  // a check in a loop fails a thousand times for one reason
  if (++failures <= enough) std::cerr << (std::ostringstream() << file << ":" << line << ": " << what << "\n").str();
}

template <class Found, class Expected>
void equal(const Found& found, const Expected& expected, const char* text, const char* file, int line) {
  if (found == expected) return;
  std::ostringstream what;
  what << text << ": found " << found << ", expected " << expected;
  fail(file, line, what.str());
}

inline int run(int argc, char** argv) {
  int passed = 0, failed = 0, skipped = 0;
  for (const Test& test : tests) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], test.name) == 0;
    if (!wanted) continue;
    failures = 0;
    skip_reason = nullptr;
    test.body();
    if (failures != 0) std::cerr << "  " << failures << " failed checks in " << test.name << "\n";
    if (skip_reason != nullptr) std::cout << "skipped: " << skip_reason << ": " << test.name << "\n";
    ++(failures != 0 ? failed : skip_reason != nullptr ? skipped : passed);
  }
  if (skipped != 0) std::cout << skipped << " skipped\n";
  std::cout << passed << " passed, " << failed << " failed" << std::endl;  // tools/processors_page.py reads this line
  return failed == 0 && passed + skipped != 0 ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                                                              \
  static void test_##name();                                                                    \
  static const bool test_##name##_known = (check::tests.push_back({#name, test_##name}), true); \
  static void test_##name()
#define ONLY_IF(condition, reason) \
  do {                             \
    if (!(condition)) {            \
      check::skip_reason = reason; \
      return;                      \
    }                              \
  } while (false)
#define CHECK(condition) ((condition) ? void() : check::fail(__FILE__, __LINE__, #condition))
#define CHECK_EQ(found, expected) check::equal(found, expected, #found, __FILE__, __LINE__)
