// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

// The values of a row, by the types of SQLite.  A value that was never set is an error, because it would become NULL
// unnoticed; NULL itself is written as `null`.
namespace commlens::out {

struct Null {};
inline constexpr Null null{};

template <class Type>
class Value {
 public:
  Value() = default;
  Value(Null) : is_set_(true) {}  // NOLINT(google-explicit-constructor): row.x = null
  // Counters are unsigned, columns signed: differences of counters wrap, and so do the sums that undo them.
  template <class From, class = std::enable_if_t<std::is_convertible_v<From, Type>>>
  Value(From&& value)  // NOLINT(google-explicit-constructor): row.x = 1
      : is_set_(true), value_(static_cast<Type>(std::forward<From>(value))) {}

  bool is_set() const { return is_set_; }
  const Type* get() const { return value_ ? &*value_ : nullptr; }  // null: NULL

 private:
  bool is_set_ = false;
  std::optional<Type> value_;
};

using Integer = Value<std::int64_t>;
using Real = Value<double>;
using Text = Value<std::string>;

// -1 means "unknown" for numbers that cannot be negative.
inline Integer known(std::int64_t number) { return number == -1 ? Integer(null) : Integer(number); }
inline Text text_or_null(const std::string& text) { return text.empty() ? Text(null) : Text(text); }

}  // namespace commlens::out
