// SPDX-License-Identifier: Apache-2.0
#include "core/job/family_rules.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

#include "core/base/config_file.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

constexpr std::size_t most_families = 256, most_variables = 16;

// Returns the number of a procedure whose communicators can be tuned (spec/calls.toml); 0: none has this name.
std::uint32_t tuned_procedure(const std::string& name) {
  const auto found = std::find_if(std::begin(op_facts), std::end(op_facts),
                                  [&](const OpFacts& facts) { return facts.tuned && name == facts.name; });
  return found == std::end(op_facts) ? 0 : static_cast<std::uint32_t>(found - std::begin(op_facts));
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Whether a variable may be set: those that choose an algorithm of coll/tuned, and priorities of collective components.
// All of them are 32-bit integers.
bool may_be_set(const std::string& name) {
  if (name.rfind("coll_", 0) != 0) return false;
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) return false;
  if (ends_with(name, "_priority")) return true;
  if (name.rfind("coll_tuned_", 0) != 0) return false;
  for (const char* const end : {"_algorithm", "_algorithm_segmentsize", "_algorithm_tree_fanout",
                                "_algorithm_chain_fanout", "_algorithm_max_requests"}) {
    if (ends_with(name, end)) return true;
  }
  return false;
}

std::vector<std::string> words_of(const std::string& line) {
  static const char* const blanks = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (std::size_t begin = 0; (begin = line.find_first_not_of(blanks, begin)) != std::string::npos;) {
    const std::size_t end = std::min(line.find_first_of(blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// Parses a whole number; false if the text is none, or larger than `most`.
bool number_in(const std::string& text, int base, std::uint64_t most, std::uint64_t& number) {
  const char* const digits = base == 16 ? "0123456789abcdef" : "0123456789";
  if (text.empty() || text.size() > 16 || text.find_first_not_of(digits) != std::string::npos) return false;
  number = std::strtoull(text.c_str(), nullptr, base);
  return number <= most;
}

class Parser {
 public:
  // Returns what is wrong with a line; empty: nothing.
  std::string add(const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || words[0][0] == '#') return {};
    if (!has_begun_) {
      has_begun_ = words == std::vector<std::string>{"commlens-tune", "1"};
      return has_begun_ ? "" : "the first line is not 'commlens-tune 1'";
    }
    if (words[0] == "family" && words.size() == 5) return family(words);
    if (words[0] == "set" && words.size() == 4) return set(words);
    return "'" + excerpt(line) + "' is no rule";
  }
  bool has_begun() const { return has_begun_; }
  std::vector<RuleFamily> families;

 private:
  std::string family(const std::vector<std::string>& words) {
    RuleFamily made;
    if (families.size() == most_families) return "there are more than 256 families";
    if (words[2] != "world") {
      const auto parent = by_name_.find(words[2]);
      if (parent == by_name_.end()) return "no family '" + excerpt(words[2]) + "' before it";
      made.parent = parent->second;
    }
    made.op = tuned_procedure(words[3]);
    if (made.op == 0) return "families of '" + excerpt(words[3]) + "' cannot be tuned";
    const std::size_t plus = words[4].rfind("+0x");
    if (plus == 0 || plus == std::string::npos || !number_in(words[4].substr(plus + 3), 16, ~0ull, made.offset)) {
      return "'" + excerpt(words[4]) + "' is no call site";
    }
    made.build_id = words[4].substr(0, plus);
    for (const RuleFamily& other : families) {
      if (other.parent == made.parent && other.op == made.op && other.build_id == made.build_id &&
          other.offset == made.offset)
        return "the same family is named twice";
    }
    const bool is_new = words[1] != "world" && by_name_.emplace(words[1], static_cast<int>(families.size())).second;
    if (!is_new) return "the name '" + excerpt(words[1]) + "' is taken";
    families.push_back(std::move(made));
    return {};
  }

  std::string set(const std::vector<std::string>& words) {
    const auto found = by_name_.find(words[1]);
    if (found == by_name_.end()) return "no family '" + excerpt(words[1]) + "' before it";
    if (!may_be_set(words[2])) return "variable '" + excerpt(words[2]) + "' cannot be set for a family";
    std::uint64_t value = 0;
    if (!number_in(words[3], 10, INT32_MAX, value)) return "'" + excerpt(words[3]) + "' is no value";
    std::vector<FamilyVariable>& all = families[static_cast<std::size_t>(found->second)].variables;
    for (const FamilyVariable& v : all) {
      if (v.name == words[2]) return words[2] + " is set twice";
    }
    if (all.size() == most_variables) return "a family has more than 16 variables";
    all.push_back({words[2], static_cast<std::int32_t>(value)});
    return {};
  }

  bool has_begun_ = false;
  std::map<std::string, int> by_name_;
};

}  // namespace

FamilyRules family_rules_in(const std::string& text) {
  FamilyRules rules;
  Parser parser;
  int number = 0;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    ++number;
    rules.problem = parser.add(text.substr(at, end - at));
    if (!rules.problem.empty()) {
      rules.problem = "line " + std::to_string(number) + ": " + rules.problem;
      return rules;
    }
  }
  const bool sets = std::any_of(parser.families.begin(), parser.families.end(),
                                [](const RuleFamily& f) { return !f.variables.empty(); });
  if (!parser.has_begun() || !sets) rules.problem = "it has no rules";
  if (rules.problem.empty()) rules.families = std::move(parser.families);
  rules.digest = identity_of(text.data(), text.size());
  return rules;
}

FamilyRules family_rules_of(const std::string& path) {
  const ConfigFile file = read_config(path);
  if (file.problem.empty()) return family_rules_in(file.text);
  FamilyRules rules;
  rules.problem = file.problem;
  return rules;
}

}  // namespace commlens
