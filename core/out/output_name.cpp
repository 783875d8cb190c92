// SPDX-License-Identifier: Apache-2.0
#include "core/out/output_name.h"

namespace commlens::out {
namespace {

// Bytes: several fields and an ending must fit into the 255 bytes of a file name.  A value is never cut inside a UTF-8
// character.
constexpr std::size_t longest_field = 100;

std::string as_file_name(std::string text) {
  if (text.size() > longest_field) {
    std::size_t end = longest_field;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.resize(end);
  }
  for (char& c : text) {
    if (c == '/') c = '_';
  }
  if (text == "." || text == "..") text[0] = '_';  // no folder by itself
  return text;
}

std::string two_digits(const std::string& date, std::size_t at) {
  return at < date.size() ? date.substr(at, 2) : std::string();
}

}  // namespace

std::string output_name(const std::string& pattern, const NameFields& fields) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char field = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    switch (field) {
      case 'p': name += as_file_name(fields.program); break;
      case 'h': name += as_file_name(fields.host); break;
      case 'j': name += as_file_name(fields.job); break;
      case 'n': name += std::to_string(fields.ranks); break;
      case 'u': name += as_file_name(fields.user); break;
      case 'Y': name += fields.date.substr(0, 4); break;
      case 'm': name += two_digits(fields.date, 4); break;
      case 'd': name += two_digits(fields.date, 6); break;
      case '%': name += '%'; break;
      default: name += pattern[i]; continue;
    }
    ++i;
  }
  return name;
}

std::size_t root_length(const std::string& pattern) {
  const std::size_t field = pattern.find('%');
  const std::size_t last = pattern.rfind('/');
  if (field == std::string::npos || last == std::string::npos || field > last) return std::string::npos;
  const std::size_t before = pattern.rfind('/', field);
  return before == std::string::npos ? 0 : before + 1;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string marked_name(const std::string& name, const std::string& mark) {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.rfind('.');
  const bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot != 0;
  const std::size_t at = has_ending ? dot : name.size();
  return name.substr(0, at) + mark + name.substr(at);
}

std::string numbered_name(const std::string& name, int n) { return marked_name(name, "." + std::to_string(n)); }

}  // namespace commlens::out
