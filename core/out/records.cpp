// SPDX-License-Identifier: Apache-2.0
#include "core/out/records.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/out/utf8.h"

namespace commlens::out {
namespace {

// The types of values in a record.
enum : std::uint64_t { type_null = 0, type_real = 7, type_zero = 8, type_one = 9, type_text = 13 };

void put_bytes(std::string& out, std::uint64_t number, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(number >> (8 * i));
}

// The lengths of integers by their type.
constexpr int lengths[] = {0, 1, 2, 3, 4, 6, 8};

int type_of(std::int64_t number) {
  for (int type = 1; type < 6; ++type) {
    const std::int64_t limit = std::int64_t{1} << (8 * lengths[type] - 1);
    if (number >= -limit && number < limit) return type;
  }
  return 6;
}

// A value of a record; of a number or a text.
struct Field {
  int kind;  // 0: NULL, 1: number, 2: text
  std::int64_t number;
  std::string_view text;
};

Field take_field(const char*& types, const char*& body) {
  const std::uint64_t type = take_varint(types);
  if (type == type_null) return {0, 0, {}};
  if (type == type_zero || type == type_one) return {1, type == type_one, {}};
  if (type >= type_text) {
    const std::string_view text(body, (type - type_text) / 2);
    body += text.size();
    return {2, 0, text};
  }
  const int length = lengths[std::min<std::uint64_t>(type, 6)];
  std::uint64_t number = (*body & 0x80) != 0 ? ~std::uint64_t{0} : 0;  // the highest bit is the sign
  for (int i = 0; i < length; ++i) number = number << 8 | static_cast<unsigned char>(body[i]);
  body += length;
  return {1, static_cast<std::int64_t>(number), {}};
}

// Moves `at` from the begin of a record to its types, and returns where the values begin.
const char* take_head(const char*& at) {
  const char* const begin = at;
  return begin + take_varint(at);
}

}  // namespace

void put_varint(std::string& out, std::uint64_t number) {
  if (number >> 56 != 0) {  // the ninth byte has eight bits
    for (int i = 0; i < 8; ++i) out += static_cast<char>(0x80 | (number >> (57 - 7 * i) & 0x7f));
    out += static_cast<char>(number);
    return;
  }
  int more = 0;
  while (number >> (7 * (more + 1)) != 0) ++more;
  for (; more > 0; --more) out += static_cast<char>(0x80 | (number >> (7 * more) & 0x7f));
  out += static_cast<char>(number & 0x7f);
}

std::uint64_t take_varint(const char*& at) {
  std::uint64_t number = 0;
  for (int i = 0; i < 8; ++i) {
    const auto byte = static_cast<unsigned char>(*at++);
    number = number << 7 | (byte & 0x7fu);
    if (byte < 0x80) return number;
  }
  return number << 8 | static_cast<unsigned char>(*at++);
}

void Record::add(const std::int64_t* number) {
  if (number == nullptr) {
    types_ += static_cast<char>(type_null);
  } else if (*number == 0 || *number == 1) {
    types_ += static_cast<char>(*number == 0 ? type_zero : type_one);
  } else {
    const int type = type_of(*number);
    types_ += static_cast<char>(type);
    put_bytes(body_, static_cast<std::uint64_t>(*number), lengths[type]);
  }
}

void Record::add(const double* number) {
  if (number == nullptr || std::isnan(*number)) {
    types_ += static_cast<char>(type_null);
    return;
  }
  std::uint64_t bits;
  std::memcpy(&bits, number, sizeof bits);
  types_ += static_cast<char>(type_real);
  put_bytes(body_, bits, sizeof bits);
}

void Record::add(const std::string* text) {
  if (text == nullptr) {
    types_ += static_cast<char>(type_null);
    return;
  }
  const std::size_t before = body_.size();
  body_ += utf8(*text);
  put_varint(types_, type_text + 2 * (body_.size() - before));
}

void Record::clear() {
  types_.clear();
  body_.clear();
}

// The head begins with its own size, which includes that of this number.
void Record::append_to(std::string& out) const {
  const std::size_t longest_of_one_byte = 126;
  put_varint(out, types_.size() + (types_.size() <= longest_of_one_byte ? 1 : 2));
  out += types_;
  out += body_;
}

std::size_t Record::size() const { return (types_.size() <= 126 ? 1 : 2) + types_.size() + body_.size(); }

int compare_records(const char* left, const char* right, int columns) {
  const char* left_body = take_head(left);
  const char* right_body = take_head(right);
  for (int i = 0; i < columns; ++i) {
    const Field a = take_field(left, left_body), b = take_field(right, right_body);
    if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
    if (a.number != b.number) return a.number < b.number ? -1 : 1;
    if (const int order = a.text.compare(b.text); order != 0) return order;
  }
  return 0;
}

void Rows::add(std::int64_t number, const Record& record) {
  const std::size_t start = bytes_.size();
  if (shape_.key_columns == 0) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  put_varint(bytes_, record.size());
  record.append_to(bytes_);
  if (!starts_.empty() && is_sorted_) is_sorted_ = compare(starts_.back(), start) < 0;
  starts_.push_back(start);
}

bool Rows::sort(bool skip_equal) {
  if (is_sorted_) return true;
  std::stable_sort(starts_.begin(), starts_.end(), [this](std::size_t i, std::size_t j) { return compare(i, j) < 0; });
  const auto last =
      std::unique(starts_.begin(), starts_.end(), [this](std::size_t i, std::size_t j) { return compare(i, j) == 0; });
  if (last != starts_.end() && !skip_equal) return false;
  starts_.erase(last, starts_.end());
  is_sorted_ = true;
  return true;
}

std::int64_t Rows::number(std::size_t i) const {
  std::int64_t number;
  std::memcpy(&number, bytes_.data() + starts_[i], sizeof number);
  return number;
}

std::string_view Rows::record(std::size_t i) const {
  const char* at = bytes_.data() + starts_[i] + (shape_.key_columns == 0 ? sizeof(std::int64_t) : 0);
  const std::uint64_t size = take_varint(at);
  return {at, size};
}

void Rows::clear() {
  std::string().swap(bytes_);  // an assignment would keep the memory
  std::vector<std::size_t>().swap(starts_);
}

int Rows::compare(std::size_t i, std::size_t j) const {
  const char* left = bytes_.data() + i;
  const char* right = bytes_.data() + j;
  if (shape_.key_columns == 0) {
    std::int64_t a, b;
    std::memcpy(&a, left, sizeof a);
    std::memcpy(&b, right, sizeof b);
    return a < b ? -1 : a > b ? 1 : 0;
  }
  take_varint(left);
  take_varint(right);
  return compare_records(left, right, shape_.key_columns);
}

}  // namespace commlens::out
