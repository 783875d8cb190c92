// SPDX-License-Identifier: Apache-2.0
#include "core/cold/options.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

extern char** environ;

namespace commlens {
namespace {

constexpr char prefix[] = "COMMLENS_";

std::string trimmed(const std::string& text) {
  const char* const blank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// Returns "1", "0", or "" for what is neither.
std::string as_bool(const std::string& text) {
  for (const char* yes : {"1", "on", "yes", "true"}) {
    if (text == yes) return "1";
  }
  for (const char* no : {"0", "off", "no", "false"}) {
    if (text == no) return "0";
  }
  return {};
}

bool is_one_of(const std::string& text, const std::string& choices) {
  return !text.empty() && text.find(' ') == std::string::npos &&
         (" " + choices + " ").find(" " + text + " ") != std::string::npos;
}

int option_named(const std::string& name) {
  for (int i = 0; i < option_count; ++i) {
    if (name == option_facts[i].name) return i;
  }
  return -1;
}

}  // namespace

void Options::set(int option, const std::string& value, const std::string& where) {
  const OptionType type = option_facts[option].type;
  if (type == OptionType::number_ &&
      (value.empty() || value.size() > 9 || value.find_first_not_of("0123456789") != std::string::npos)) {
    warnings_.push_back(where + ": '" + value + "' is not a whole number; using " + values_[option]);
    return;
  }
  if (type == OptionType::choice_ && !is_one_of(value, option_facts[option].choices)) {
    warnings_.push_back(where + ": '" + value + "' is none of " + option_facts[option].choices + "; using " +
                        values_[option]);
    return;
  }
  if (type != OptionType::bool_) {
    values_[option] = value;
    return;
  }
  const std::string truth = as_bool(value);
  if (truth.empty()) {
    warnings_.push_back(where + ": '" + value + "' is neither 1 nor 0; using " + values_[option]);
  } else {
    values_[option] = truth;
  }
}

void Options::read_file(const std::string& path, bool asked_for) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) {
    if (asked_for) warnings_.push_back("COMMLENS_CONFIG: cannot read " + path + ": " + std::strerror(errno));
    return;
  }
  char buffer[4096];
  for (int number = 1; std::fgets(buffer, sizeof buffer, file) != nullptr; ++number) {
    std::string line = buffer;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::string where = path + ":" + std::to_string(number);
    const std::size_t equals = line.find('=');
    const std::string key = trimmed(line.substr(0, equals));
    int option = -1;
    for (int i = 0; i < option_count; ++i) {
      if (key == option_facts[i].key && !option_facts[i].environment_only) option = i;
    }
    if (equals == std::string::npos || option < 0) {
      warnings_.push_back(where + ": not an option: '" + line + "'; ignored");
    } else {
      set(option, trimmed(line.substr(equals + 1)), where);
    }
  }
  if (std::ferror(file) != 0) warnings_.push_back("COMMLENS_CONFIG: cannot read " + path + ": " + std::strerror(errno));
  std::fclose(file);
}

Options Options::read() {
  Options options;
  for (int i = 0; i < option_count; ++i) options.values_[i] = option_facts[i].initial;
  const char* const config = std::getenv("COMMLENS_CONFIG");
  if (config != nullptr) options.set(static_cast<int>(Option::config), config, "COMMLENS_CONFIG");
  options.read_file(options.text(Option::config), config != nullptr);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, prefix, sizeof prefix - 1) != 0) continue;
    const std::string variable = *entry;
    const std::size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    const int option = option_named(name);
    if (option < 0) {
      options.warnings_.push_back("unknown variable " + name + "; ignored (docs/reference/options.md has all)");
    } else if (equals != std::string::npos) {
      options.set(option, variable.substr(equals + 1), name);
    }
  }
  return options;
}

std::string Options::listing() const {
  std::string lines;
  for (int i = 0; i < option_count; ++i) {
    lines += std::string(option_facts[i].name) + "=" + values_[i] + "\n";
  }
  return lines;
}

}  // namespace commlens
