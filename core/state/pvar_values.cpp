// SPDX-License-Identifier: Apache-2.0
#include "core/state/pvar_values.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace commlens {
namespace {

template <class Number>
Number element(const void* values, std::size_t i) noexcept {
  Number n;
  std::memcpy(&n, static_cast<const char*>(values) + i * sizeof n, sizeof n);
  return n;
}

template <class Number>
double growing(const void* before, const void* now, std::size_t i) noexcept {
  const Number first = element<Number>(before, i), last = element<Number>(now, i);
  if (last < first) return static_cast<double>(last);
  if constexpr (std::is_unsigned<Number>::value) {
    return static_cast<double>(last - first);
  } else {
    return static_cast<double>(last) - static_cast<double>(first);  // in integers, it could overflow
  }
}

}  // namespace

std::size_t bytes_of(PvarType type) noexcept {
  switch (type) {
    case PvarType::signed_32:
    case PvarType::unsigned_32: return 4;
    case PvarType::signed_64:
    case PvarType::unsigned_64:
    case PvarType::real: return 8;
    case PvarType::other: break;
  }
  return 0;
}

bool grows(PvarClass klass) noexcept {
  return klass == PvarClass::counter || klass == PvarClass::aggregate || klass == PvarClass::timer;
}

const char* unit_of(PvarClass klass, PvarType type) noexcept {
  if (klass == PvarClass::timer && type == PvarType::real) return "s";
  constexpr const char* names[] = {"state",         "level",   "size",      "percentage", "high watermark",
                                   "low watermark", "counter", "aggregate", "timer",      "generic"};
  const auto i = static_cast<std::size_t>(klass);
  return i < std::size(names) ? names[i] : "unknown class";
}

double value_at(PvarType type, const void* values, std::size_t i) noexcept {
  switch (type) {
    case PvarType::signed_32: return element<std::int32_t>(values, i);
    case PvarType::unsigned_32: return element<std::uint32_t>(values, i);
    case PvarType::signed_64: return static_cast<double>(element<std::int64_t>(values, i));
    case PvarType::unsigned_64: return static_cast<double>(element<std::uint64_t>(values, i));
    case PvarType::real: return element<double>(values, i);
    case PvarType::other: break;
  }
  return 0;
}

double increase_at(PvarType type, const void* before, const void* now, std::size_t i) noexcept {
  switch (type) {
    case PvarType::signed_32: return growing<std::int32_t>(before, now, i);
    case PvarType::unsigned_32: {
      const std::uint32_t modulo_2_32 = element<std::uint32_t>(now, i) - element<std::uint32_t>(before, i);
      return modulo_2_32;
    }
    case PvarType::signed_64: return growing<std::int64_t>(before, now, i);
    case PvarType::unsigned_64: return growing<std::uint64_t>(before, now, i);
    case PvarType::real: return growing<double>(before, now, i);
    case PvarType::other: break;
  }
  return 0;
}

PvarChoice::PvarChoice(const std::string& list) : patterns_(patterns_in(list)) {
  const auto is_list = [](const Pattern& one) { return one.text == "list" && !one.leaves_out; };
  const auto rest = std::remove_if(patterns_.begin(), patterns_.end(), is_list);
  wants_list_ = rest != patterns_.end();
  patterns_.erase(rest, patterns_.end());
  has_matched_.resize(patterns_.size());
}

bool PvarChoice::wants(const char* name) {
  bool is_wanted = !patterns_.empty() && only_leave_out(patterns_);
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!matches(patterns_[i].text.c_str(), name)) continue;
    has_matched_[i] = true;
    is_wanted = !patterns_[i].leaves_out;
  }
  return is_wanted;
}

std::vector<std::string> PvarChoice::without_match() const {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    if (!has_matched_[i] && !patterns_[i].leaves_out) found.push_back(patterns_[i].text);
  }
  return found;
}

void PvarRefusals::add(std::string name, std::string reason) {
  const auto known = std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one.first == reason; });
  const auto place = known != all_.end() ? known : all_.emplace(known, std::move(reason), std::vector<std::string>());
  std::vector<std::string>& names = place->second;
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

std::string PvarRefusals::text() const {
  constexpr std::size_t most_named = 6, most_reasons = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(all_.size(), most_reasons); ++i) {
    const std::vector<std::string>& names = all_[i].second;
    for (std::size_t n = 0; n < std::min(names.size(), most_named); ++n)
      text += (text.empty() ? "" : ", ") + names[n].substr(0, 100);
    if (names.size() > most_named) text += " and " + std::to_string(names.size() - most_named) + " more";
    text += " (" + all_[i].first + ")";
  }
  if (all_.size() > most_reasons) text += ", and others";
  return text;
}

}  // namespace commlens
