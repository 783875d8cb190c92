// SPDX-License-Identifier: Apache-2.0
#include "core/process/settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/wire.h"
#include "core/process/command_line.h"
#include "core/process/modules.h"
#include "generated/settings.h"

namespace commlens {
namespace {

bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.back() != '*') return name == pattern;
  pattern.remove_suffix(1);
  return name.substr(0, pattern.size()) == pattern;
}

template <std::size_t n>
bool is_in(std::string_view name, const char* const (&patterns)[n]) {
  return std::any_of(std::begin(patterns), std::end(patterns),
                     [name](const char* pattern) { return matches(name, pattern); });
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Returns the model of the first processor.  The kernel writes /proc/cpuinfo processor by processor, so its first bytes
// take no longer on a node with many of them.
std::string processor() {
  const int file = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[2048];
  const ssize_t n = read(file, text, sizeof text);
  close(file);
  const std::string_view all(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  constexpr std::string_view key = "model name";
  const std::size_t line = all.find(key), colon = all.find(": ", line);
  if (line == std::string_view::npos || colon == std::string_view::npos) return {};
  return std::string(all.substr(colon + 2, all.find('\n', colon) - colon - 2));
}

}  // namespace

std::vector<Setting> labels_in(const std::string& text, std::vector<std::string>& wrong) {
  std::vector<Setting> labels;
  for (std::size_t at = 0; at < text.size();) {
    const auto begin = std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_blank);
    const auto end = std::find_if(begin, text.end(), is_blank);
    at = static_cast<std::size_t>(end - text.begin());
    const std::string word(begin, end);
    const std::size_t equals = word.find('=');
    if (word.empty()) continue;
    if (equals == 0 || equals == std::string::npos) {
      wrong.push_back(word);
    } else {
      const std::string name = word.substr(0, equals);
      auto label = std::find_if(labels.begin(), labels.end(), [&](const Setting& s) { return s.name == name; });
      if (label == labels.end()) label = labels.insert(label, {"label", name, ""});
      label->value = word.substr(equals + 1);
    }
  }
  return labels;
}

std::vector<Setting> variables_in(const char* const* environment) {
  std::vector<Setting> found;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const char* const equals = std::strchr(*environment, '=');
    if (equals == nullptr) continue;
    std::string name(*environment, equals);
    if (!is_in(name, stored_variables) || is_in(name, variables_left_out)) continue;
    std::string value = shown_value(name, equals + 1);
    found.push_back({"environment", std::move(name), std::move(value)});
  }
  std::stable_sort(found.begin(), found.end(), [](const Setting& a, const Setting& b) { return a.name < b.name; });
  const auto is_repeated = [](const Setting& a, const Setting& b) { return a.name == b.name; };
  found.erase(std::unique(found.begin(), found.end(), is_repeated), found.end());
  return found;
}

std::vector<Setting> program_and_machine() {
  std::vector<Setting> found;
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (n > 0) {
    const std::string executable(path, static_cast<std::size_t>(n));
    found.push_back({"program", "executable", executable});
    const Module module = executable_module();
    if (module.path == executable && !module.build_id.empty())
      found.push_back({"program", "build_id", module.build_id});
  }
  const std::string model = processor();
  if (!model.empty()) found.push_back({"machine", "processor", model});
  return found;
}

Setting control_variable_in(const std::string& line) {
  // A source has blanks and parentheses only if it is a file: "(file (/etc/openmpi-mca-params.conf:63))".
  std::size_t end = line.rfind(" (file (");
  if (end == std::string::npos) end = line.rfind(" (");
  const std::size_t equals = line.find('=');
  if (equals == std::string::npos || end == std::string::npos || end < equals) return {};
  std::string name = line.substr(0, equals);
  std::string value = shown_value(name, line.substr(equals + 1, end - equals - 1));
  return {"control", std::move(name), std::move(value)};
}

std::string written(const std::vector<Setting>& settings) {
  std::vector<Setting> fit;
  std::size_t bytes = 0;
  for (const Setting& setting : settings) {
    fit.push_back({setting.source, setting.name, setting.value.substr(0, most_setting_bytes)});
    bytes += fit.back().name.size() + fit.back().value.size();
    if (bytes <= most_settings_bytes) continue;
    fit.pop_back();
    break;
  }
  WireWriter out;
  out.number(fit.size());
  for (const Setting& setting : fit) {
    for (const std::string* text : {&setting.source, &setting.name, &setting.value}) out.text(*text);
  }
  return {out.bytes().begin(), out.bytes().end()};
}

bool read_settings(const std::string& text, std::vector<Setting>& settings) {
  if (text.empty()) return true;
  WireReader in(text.data(), text.size());
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    Setting setting;
    for (std::string* to : {&setting.source, &setting.name, &setting.value}) *to = in.text();
    settings.push_back(std::move(setting));
  }
  return in.ok();
}

}  // namespace commlens
