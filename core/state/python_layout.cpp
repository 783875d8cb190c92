// SPDX-License-Identifier: Apache-2.0
#include "core/state/python_layout.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace commlens::python {
namespace {

struct Known {
  std::uint32_t minor;
  Layout layout;
};
constexpr Known known[] = {
    {9, {24, -1, 32, 24, 104, 0, 104, 112, 40, 120, 0, 0, 48, 72, 1, Lines::lnotab}},
    {10, {24, -1, 32, 24, 96, 0, 104, 112, 40, 120, 0, 0, 48, 72, 2, Lines::ranges}},
    {11, {56, 8, 32, 48, 56, 0, 112, 128, 72, 136, 184, 0, 48, 72, 0, Lines::locations}},
    {12, {56, 0, 0, 8, 56, 70, 112, 128, 68, 136, 192, 92, 40, 56, 0, Lines::locations}},
};

// From version 13 on, _PyRuntime begins with _Py_DebugOffsets.  These are the indices of the 64-bit numbers that we
// need: the structure differs between versions.
struct Words {
  std::uint32_t minor;
  std::uint32_t thread_frame, frame_code, frame_previous, frame_instruction, frame_owner;
  std::uint32_t code_file, code_function, code_first_line, code_lines, code_bytes, text_ascii;
};
constexpr Words words[] = {
    {13, 23, 30, 29, 31, 33, 35, 37, 39, 38, 43, 70},
    {14, 26, 33, 32, 34, 36, 40, 42, 44, 43, 48, 80},
};
constexpr std::size_t most_words = 81;
constexpr std::uint64_t furthest = 4096;  // no offset is as large

// Returns the reason why the offsets cannot be used.
std::string take(const Words& at, std::uint64_t runtime, Read read, Layout& layout) {
  std::uint64_t offsets[most_words];
  if (runtime == 0 || !read(runtime, offsets, sizeof offsets) || std::memcmp(offsets, "xdebugpy", 8) != 0 ||
      offsets[1] >> 16 != (3u << 8 | at.minor))
    return "it does not describe its memory";
  if (offsets[2] != 0) return "it is a build without the global lock";
  bool is_good = true;
  const auto offset = [&](std::uint32_t word) {
    is_good = is_good && offsets[word] < furthest;
    return static_cast<std::uint32_t>(offsets[word]);
  };
  layout = {offset(at.thread_frame),
            -1,
            offset(at.frame_code),
            offset(at.frame_previous),
            offset(at.frame_instruction),
            offset(at.frame_owner),
            offset(at.code_file),
            offset(at.code_function),
            offset(at.code_first_line),
            offset(at.code_lines),
            offset(at.code_bytes),
            0,
            offset(at.text_ascii),
            0,
            0,
            Lines::locations};
  layout.code_version = layout.code_first_line + 24;  // _Py_DebugOffsets does not have it
  layout.text_other = layout.text_ascii + 16;
  return is_good ? "" : "it does not describe its memory";
}

}  // namespace

std::string find_layout(const char* version, std::uint64_t runtime, Read read, Layout& layout) {
  const std::string text = version;
  const std::string number = text.substr(0, text.find(' '));
  const unsigned long minor = text.compare(0, 2, "3.") == 0 ? std::strtoul(version + 2, nullptr, 10) : 0;
  const std::string name = "Python " + number + ": ";
  for (const Known& one : known) {
    if (one.minor != minor) continue;
    layout = one.layout;
    return {};
  }
  for (const Words& one : words) {
    if (one.minor != minor) continue;
    const std::string why_not = take(one, runtime, read, layout);
    return why_not.empty() ? why_not : name + why_not;
  }
  return name + "its frames are unknown to this version of commlens";
}

}  // namespace commlens::python
