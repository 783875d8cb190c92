// SPDX-License-Identifier: Apache-2.0
#include "core/base/options.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "core/base/config_file.h"
#include "core/base/privileged.h"
#include "core/base/share.h"

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

// Returns "1" or "0"; empty when the text is neither.
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

// Returns choices as in "off, p2p or all".
std::string alternatives(const std::string& choices) {
  const std::size_t last = choices.rfind(' ');
  if (last == std::string::npos) return choices;
  std::string text;
  for (const char letter : choices.substr(0, last)) text += letter == ' ' ? ", " : std::string(1, letter);
  return text + " or " + choices.substr(last + 1);
}

// True for octal permissions with which the owner may read and write the file, and group and others at most read it.
bool is_mode(const std::string& text) {
  if (text.size() < 3 || text.size() > 4 || text.find_first_not_of("01234567") != std::string::npos) return false;
  const unsigned long mode = std::strtoul(text.c_str(), nullptr, 8);
  return (mode & 0600u) == 0600u && (mode & ~0644ul) == 0;
}

// Returns the number of letters to insert, delete or replace to make one text of the other.
std::size_t edit_distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Returns the option whose name is most like the name of an unknown variable; null if more than a quarter of the
// letters differ.
const char* similar_option(const std::string& name) {
  constexpr std::size_t longest = 40;  // longer than every option; bounds the time for a hostile name
  if (name.size() > longest) return nullptr;
  const std::string own = name.substr(sizeof prefix - 1);
  const char* best = nullptr;
  std::size_t least = own.size() / 4 + 1;
  for (const OptionFacts& facts : option_facts) {
    const std::size_t distance = edit_distance(own, facts.name + sizeof prefix - 1);
    if (distance > least || (distance == least && best != nullptr)) continue;
    best = facts.name;
    least = distance;
  }
  return best;
}

int option_named(const std::string& name) {
  for (int i = 0; i < option_count; ++i) {
    if (name == option_facts[i].name) return i;
  }
  return -1;
}

}  // namespace

std::string Options::store(int option, const std::string& value) {
  std::string& place = values_[option];
  const auto wrong = [&](const std::string& what) {
    return "'" + excerpt(value) + "' " + what + "; " + (place.empty() ? "the default" : place) + " is used instead";
  };
  switch (option_facts[option].type) {
    case OptionType::text_: place = value; return {};
    case OptionType::number_:
      if (value.empty() || value.size() > 9 || value.find_first_not_of("0123456789") != std::string::npos) {
        return wrong("is not a whole number");
      }
      place = value;
      return {};
    case OptionType::choice_:
      if (const std::string truth = as_bool(value); is_one_of(truth, option_facts[option].choices)) {
        place = truth;
        return {};
      }
      if (!is_one_of(value, option_facts[option].choices)) {
        return wrong("is invalid; use " + alternatives(option_facts[option].choices));
      }
      place = value;
      return {};
    case OptionType::mode_:
      if (!value.empty() && !is_mode(value)) {
        return wrong("is invalid; use a mode from 0600 to 0644 without write permission for group and others");
      }
      place = value;
      return {};
    case OptionType::share_:
      if (billionths(value) < 0) return wrong("is invalid; use a number from 0 to 1, such as 0.25");
      place = value;
      return {};
    case OptionType::bool_: break;
  }
  const std::string truth = as_bool(value);
  if (truth.empty()) return wrong("is invalid; use 1 or 0");
  place = truth;
  return {};
}

std::string Options::set(int option, const std::string& value) {
  std::string problem = store(option, value);
  if (problem.empty()) is_set_[option] = true;
  return problem;
}

// Returns the error of a line of the configuration file; empty: none.
std::string Options::set_by_line(const std::string& line) {
  const std::size_t equals = line.find('=');
  const std::string key = trimmed(line.substr(0, equals));
  if (equals != std::string::npos) {
    for (int i = 0; i < option_count; ++i) {
      if (key == option_facts[i].key && !option_facts[i].environment_only) {
        return set(i, trimmed(line.substr(equals + 1)));
      }
    }
  }
  return "'" + excerpt(line) + "' is not an option and is ignored";
}

void Options::read_file(const std::string& path, bool asked_for) {
  constexpr int most_complaints = 5;
  const ConfigFile file = read_config(path);
  if (!file.problem.empty()) {
    if (asked_for || !file.is_absent) {
      warnings_.push_back("configuration " + path + " is not used: " + file.problem);
    }
    return;
  }
  int number = 0, complaints = 0;
  for (std::size_t at = 0, end = 0; at < file.text.size(); at = end + 1) {
    end = std::min(file.text.find('\n', at), file.text.size());
    std::string line = file.text.substr(at, end - at);
    line = trimmed(line.substr(0, line.find('#')));
    ++number;
    const std::string problem = line.empty() ? std::string() : set_by_line(line);
    if (problem.empty() || ++complaints > most_complaints) continue;
    warnings_.push_back(path + ":" + std::to_string(number) + ": " + problem);
  }
  if (complaints > most_complaints) {
    warnings_.push_back(path + ": and " + std::to_string(complaints - most_complaints) + " more invalid lines");
  }
}

Options Options::read() {
  Options options;
  for (int i = 0; i < option_count; ++i) options.values_[i] = option_facts[i].initial;
  if (commlens_is_privileged()) {
    options.values_[static_cast<int>(Option::enable)] = "0";
    return options;
  }
  const char* const config = std::getenv("COMMLENS_CONFIG");
  if (config != nullptr) options.set(static_cast<int>(Option::config), config);
  options.read_file(options.text(Option::config), config != nullptr);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, prefix, sizeof prefix - 1) != 0) continue;
    const std::string variable = *entry;
    const std::size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    const int option = option_named(name);
    if (option < 0) {
      const char* const similar = similar_option(name);
      options.warnings_.push_back("unknown variable " + excerpt(name) + "; ignored" +
                                  (similar == nullptr ? " (docs/reference/options.md lists all)"
                                                      : "; did you mean " + std::string(similar) + "?"));
    } else if (equals != std::string::npos) {
      const std::string problem = options.set(option, variable.substr(equals + 1));
      if (!problem.empty()) options.warnings_.push_back(name + ": " + problem);
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
