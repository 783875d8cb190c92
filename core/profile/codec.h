// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/wire.h"

// One description of a record serves both directions: a function template names the fields of a record in order, and
// Encoder writes what Decoder reads.
//
//   template <class Codec, class Tag>  // Tag: const when it is written
//   void fields(Codec& codec, Tag& tag) {
//     codec.number(tag.region);
//     codec.text(tag.name);
//   }
namespace commlens {

class Encoder {
 public:
  explicit Encoder(WireWriter& out) : out_(out) {}

  template <class Number>
  void number(const Number& value) {
    out_.number(static_cast<std::uint64_t>(value));
  }
  template <class Number>
  void signed_number(const Number& value) {
    out_.signed_number(static_cast<std::int64_t>(value));
  }
  void real(const double& value) { out_.real(value); }
  void text(const std::string& value) { out_.text(value); }

  // Writes the items from `first` on, and their number before them.
  template <class Item, class Each>
  void list(const std::vector<Item>& items, std::size_t first, Each each) {
    out_.number(items.size() - first);
    for (std::size_t i = first; i < items.size(); ++i) each(items[i]);
  }

 private:
  WireWriter& out_;
};

// Values that do not fit into their field are cut.  After the end of the input, or damage, all values are 0 and lists
// end: see WireReader.
class Decoder {
 public:
  explicit Decoder(WireReader& in) : in_(in) {}

  template <class Number>
  void number(Number& value) {
    value = static_cast<Number>(in_.number());
  }
  template <class Number>
  void signed_number(Number& value) {
    value = static_cast<Number>(in_.signed_number());
  }
  void real(double& value) { value = in_.real(); }
  void text(std::string& value) { value = in_.text(); }

  // Replaces the items by `first` empty ones and those that are read.  The encoded number of items is
  // not trusted: memory grows with the items that are read.
  template <class Item, class Each>
  void list(std::vector<Item>& items, std::size_t first, Each each) {
    items.assign(first, Item{});
    for (std::uint64_t n = in_.number(); in_.ok() && n > 0; --n) each(items.emplace_back());
  }

 private:
  WireReader& in_;
};

}  // namespace commlens
