// SPDX-License-Identifier: Apache-2.0
// The constructor tree of a datatype, from MPI_Type_get_envelope and MPI_Type_get_contents.
#include "core/mpi/type_tree.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/mpi/api.h"
#include "core/mpi/bind.h"

namespace commlens {
namespace {

constexpr std::size_t most_text = 1000;  // bytes of a tree in words
constexpr std::size_t most_listed = 8;   // blocks, members or dimensions
constexpr int most_levels = 64;

// The arguments with which a datatype was constructed.
struct Contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> ints;
  std::vector<MPI_Count> numbers;  // all integers, then addresses, then large counts
  std::size_t large = 0;           // how many of them are large counts
  std::vector<MPI_Datatype> types;
};

// The functions for datatypes that were made with large counts.  mpi.h of older libraries does not declare them.
using EnvelopeLarge = int (*)(MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*);
using ContentsLarge = int (*)(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int*, MPI_Aint*, MPI_Count*,
                              MPI_Datatype*);

void take(Contents& c, const std::vector<MPI_Aint>& addresses, const std::vector<MPI_Count>& counts) {
  c.numbers.assign(c.ints.begin(), c.ints.end());
  c.numbers.insert(c.numbers.end(), addresses.begin(), addresses.end());
  c.numbers.insert(c.numbers.end(), counts.begin(), counts.end());
  c.large = counts.size();
}

// Reads the arguments by the functions with int or with MPI_Count.
template <class Count, class Envelope, class GetContents>
bool read_by(MPI_Datatype datatype, Contents& c, Envelope envelope, GetContents contents) {
  Count ints = 0, addresses = 0, large = 0, types = 0;
  if (envelope(datatype, &ints, &addresses, &large, &types, &c.combiner) != MPI_SUCCESS) return false;
  if (c.combiner == MPI_COMBINER_NAMED) return true;
  c.ints.resize(static_cast<std::size_t>(ints));
  std::vector<MPI_Aint> at(static_cast<std::size_t>(addresses));
  std::vector<MPI_Count> counts(static_cast<std::size_t>(large));
  c.types.resize(static_cast<std::size_t>(types));
  if (contents(datatype, ints, addresses, large, types, c.ints.data(), at.data(), counts.data(), c.types.data()) !=
      MPI_SUCCESS) {
    // Nothing is freed: Open MPI replaces the application's handles in the array by copies one after the other, so that
    // after a failure both are there.
    c.types.clear();
    return false;
  }
  take(c, at, counts);
  return true;
}

int plain_envelope(MPI_Datatype datatype, int* ints, int* addresses, int* /*large*/, int* types, int* combiner) {
  return api.Type_get_envelope(datatype, ints, addresses, types, combiner);
}

int plain_contents(MPI_Datatype datatype, int ints, int addresses, int /*large*/, int types, int* integers,
                   MPI_Aint* at, MPI_Count* /*counts*/, MPI_Datatype* datatypes) {
  return api.Type_get_contents(datatype, ints, addresses, types, integers, at, datatypes);
}

bool read(MPI_Datatype datatype, Contents& c) {
  static const auto envelope = library<EnvelopeLarge>("PMPI_Type_get_envelope_c");
  static const auto contents = library<ContentsLarge>("PMPI_Type_get_contents_c");
  if (envelope != nullptr && contents != nullptr) return read_by<MPI_Count>(datatype, c, envelope, contents);
  return read_by<int>(datatype, c, plain_envelope, plain_contents);
}

bool read_combiner(MPI_Datatype datatype, Contents& c) {
  static const auto envelope = library<EnvelopeLarge>("PMPI_Type_get_envelope_c");
  MPI_Count large[4];
  int plain[3];
  const int rc = envelope != nullptr ? envelope(datatype, &large[0], &large[1], &large[2], &large[3], &c.combiner)
                                     : api.Type_get_envelope(datatype, &plain[0], &plain[1], &plain[2], &c.combiner);
  return rc == MPI_SUCCESS;
}

// Predefined datatypes and those of Fortran's parameters must not be freed.
bool may_free(int combiner) noexcept {
  return combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL && combiner != MPI_COMBINER_F90_COMPLEX &&
         combiner != MPI_COMBINER_F90_INTEGER;
}

struct Node {
  std::string text;
  Identity identity = 0;
  bool is_derived = false;  // MPI_Type_get_contents has made a handle, which must be freed
};

std::string shortened(std::string text) {
  if (text.size() > most_text) text = text.substr(0, most_text - 3) + "...";
  return text;
}

class Tree {
 public:
  Tree() = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() {
    for (MPI_Datatype handle : made_) api.Type_free(&handle);
  }
  Node node(MPI_Datatype datatype, int level = 0);

 private:
  Node described(MPI_Datatype datatype, int level);

  // By handle: all datatypes within a tree exist until the end.
  std::unordered_map<std::uint64_t, Node> known_;
  std::vector<MPI_Datatype> made_;  // by MPI_Type_get_contents, each time anew
};

std::string text_of(MPI_Count n) { return std::to_string(n); }

// Lists of numbers such as 2x4x8 or 1, 0, 2; long ones are shortened.
template <class Item>
std::string list(std::size_t n, const char* between, Item item) {
  std::string text;
  for (std::size_t i = 0; i < std::min(n, most_listed); ++i) text += (i == 0 ? "" : between) + item(i);
  if (n > most_listed) text += std::string(between) + "...";
  return text;
}

// "1 block" or "3 blocks".
std::string blocks(std::size_t n) { return std::to_string(n) + (n == 1 ? " block" : " blocks"); }

// Numbers with blocks of their own lengths: count, lengths, displacements.
std::string indexed(const Contents& c, const char* name, const char* unit) {
  const std::size_t n = (c.numbers.size() - 1) / 2;
  const auto block = [&](std::size_t i) {
    return text_of(c.numbers[1 + i]) + " @" + text_of(c.numbers[1 + n + i]) + unit;
  };
  return std::string(name) + "(" + blocks(n) + (n == 0 ? "" : ": ") + list(n, ", ", block) + ")";
}

// The same with one length: count, length, displacements.
std::string indexed_block(const Contents& c, const char* name, const char* unit) {
  const std::size_t n = c.numbers.size() - 2;
  const auto block = [&](std::size_t i) { return "@" + text_of(c.numbers[2 + i]) + unit; };
  return std::string(name) + "(" + blocks(n) + " of " + text_of(c.numbers[1]) + (n == 0 ? "" : ": ") +
         list(n, ", ", block) + ")";
}

std::string order_name(int order) { return order == MPI_ORDER_C ? "C" : "Fortran"; }

// Integers: dimensions, sizes, parts, starts, order.  With large counts the three arrays are behind the order.
std::string subarray(const Contents& c) {
  const auto n = static_cast<std::size_t>(c.ints[0]);
  const MPI_Count* const first = c.numbers.data() + (c.large != 0 ? c.numbers.size() - c.large : 1);
  const auto at = [&](std::size_t from) { return [&, from](std::size_t i) { return text_of(first[from * n + i]); }; };
  return "subarray(" + list(n, "x", at(1)) + " of " + list(n, "x", at(0)) + " at " + list(n, ",", at(2)) + ", " +
         order_name(c.ints.back()) + ")";
}

std::string distribution(int kind, int argument) {
  const std::string size = argument == MPI_DISTRIBUTE_DFLT_DARG ? "" : "(" + std::to_string(argument) + ")";
  if (kind == MPI_DISTRIBUTE_BLOCK) return "block" + size;
  if (kind == MPI_DISTRIBUTE_CYCLIC) return "cyclic" + size;
  return "none";
}

// Integers: processes, rank, dimensions, sizes (with large counts not among them), distributions, arguments, grid,
// order.
std::string darray(const Contents& c) {
  const auto n = static_cast<std::size_t>(c.ints[2]);
  const bool is_large = c.large != 0;
  const MPI_Count* const sizes = is_large ? c.numbers.data() + (c.numbers.size() - c.large) : c.numbers.data() + 3;
  const int* const kinds = c.ints.data() + 3 + (is_large ? 0 : n);
  const auto size = [&](std::size_t i) { return text_of(sizes[i]); };
  const auto kind = [&](std::size_t i) { return distribution(kinds[i], kinds[n + i]); };
  const auto grid = [&](std::size_t i) { return std::to_string(kinds[2 * n + i]); };
  return "darray(" + list(n, "x", size) + " " + list(n, ",", kind) + " over " + list(n, "x", grid) + ", rank " +
         std::to_string(c.ints[1]) + ", " + order_name(c.ints.back()) + ")";
}

std::string all_numbers(const Contents& c, const char* name) {
  return std::string(name) + "(" + list(c.numbers.size(), ", ", [&](std::size_t i) { return text_of(c.numbers[i]); }) +
         ")";
}

// A struct is written with its members, all others as NAME(...) of the inner datatype.
std::string structure(const Contents& c, const std::vector<Node>& inner) {
  const std::size_t n = inner.size();
  const auto member = [&](std::size_t i) {
    return (c.numbers[1 + i] == 1 ? "" : text_of(c.numbers[1 + i]) + " x ") + inner[i].text + " @" +
           text_of(c.numbers[1 + n + i]);
  };
  return "struct{" + list(n, ", ", member) + (n > most_listed ? " " + std::to_string(n) + " members" : "") + "}";
}

std::string unnamed(const Contents& c) { return all_numbers(c, ("combiner " + std::to_string(c.combiner)).c_str()); }

std::string head(const Contents& c) {
  switch (c.combiner) {
    case MPI_COMBINER_DUP: return "dup";
    case MPI_COMBINER_CONTIGUOUS: return all_numbers(c, "contiguous");
    case MPI_COMBINER_VECTOR: return all_numbers(c, "vector");
    case MPI_COMBINER_HVECTOR: return all_numbers(c, "hvector");
    case MPI_COMBINER_INDEXED: return indexed(c, "indexed", "");
    case MPI_COMBINER_HINDEXED: return indexed(c, "hindexed", " B");
    case MPI_COMBINER_INDEXED_BLOCK: return indexed_block(c, "indexed_block", "");
    case MPI_COMBINER_HINDEXED_BLOCK: return indexed_block(c, "hindexed_block", " B");
    case MPI_COMBINER_SUBARRAY: return subarray(c);
    case MPI_COMBINER_DARRAY: return darray(c);
    case MPI_COMBINER_RESIZED: return all_numbers(c, "resized");
    case MPI_COMBINER_F90_REAL: return all_numbers(c, "f90_real");
    case MPI_COMBINER_F90_COMPLEX: return all_numbers(c, "f90_complex");
    case MPI_COMBINER_F90_INTEGER: return all_numbers(c, "f90_integer");
    default: return unnamed(c);
  }
}

// Returns whether the arguments have the number that the texts above expect, whatever a library returns.
bool is_regular(const Contents& c) noexcept {
  const std::size_t n = c.numbers.size();
  switch (c.combiner) {
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED: return n >= 1;
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: return n >= 2;
    case MPI_COMBINER_STRUCT: return n >= 1 + 2 * c.types.size();
    case MPI_COMBINER_SUBARRAY:
      return c.ints.size() >= 2 && c.ints[0] >= 0 && n >= 2 + 3 * static_cast<std::size_t>(c.ints[0]);
    case MPI_COMBINER_DARRAY: {
      const std::size_t dimensions = c.ints.size() >= 4 && c.ints[2] >= 0 ? static_cast<std::size_t>(c.ints[2]) : n;
      return n >= 4 + 4 * dimensions && c.ints.size() >= 4 + (c.large != 0 ? 3 : 4) * dimensions;
    }
    default: return true;
  }
}

std::string name_of(MPI_Datatype datatype) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  return api.Type_get_name(datatype, name, &length) == MPI_SUCCESS && name[0] != '\0' ? name : "(no name)";
}

Node Tree::described(MPI_Datatype datatype, int level) {
  Contents c;
  Node result;
  // Too deep: only whether it must be freed, because its contents would be further handles.
  const bool is_read = level < most_levels ? read(datatype, c) : read_combiner(datatype, c);
  if (!is_read) c.combiner = -1;
  if (c.combiner == MPI_COMBINER_NAMED) {
    result.text = name_of(datatype);
    result.identity = identity_of(result.text.data(), result.text.size());
    return result;
  }
  result.is_derived = is_read && may_free(c.combiner);
  if (!is_read || level >= most_levels) {
    result.text = "...";
    return result;
  }
  std::vector<Node> inner;
  inner.reserve(c.types.size());
  for (const MPI_Datatype type : c.types) inner.push_back(node(type, level + 1));
  result.identity = combine(static_cast<Identity>(c.combiner), c.numbers.size());
  for (const MPI_Count n : c.numbers) result.identity = combine(result.identity, static_cast<Identity>(n));
  for (const Node& part : inner) result.identity = combine(result.identity, part.identity);
  if (c.combiner == MPI_COMBINER_STRUCT && is_regular(c)) {
    result.text = structure(c, inner);
  } else {
    result.text = is_regular(c) ? head(c) : unnamed(c);
    if (!inner.empty()) result.text += " of " + inner[0].text;
  }
  result.text = shortened(std::move(result.text));
  return result;
}

Node Tree::node(MPI_Datatype datatype, int level) {
  const auto found = known_.find(bits(datatype));
  const bool is_known = found != known_.end();
  Node result = is_known ? found->second : described(datatype, level);
  if (!is_known) known_.emplace(bits(datatype), result);
  if (result.is_derived && level > 0) made_.push_back(datatype);
  return result;
}

}  // namespace

DatatypeFacts tree_of(MPI_Datatype datatype) {
  const Node top = Tree().node(datatype);
  DatatypeFacts facts;
  facts.tree = top.text;
  facts.identity = top.identity;
  MPI_Count size = 0, lower = 0, extent = 0;
  if (api.Type_size_x(datatype, &size) == MPI_SUCCESS && size > 0) facts.size = static_cast<std::uint64_t>(size);
  if (api.Type_get_extent_x(datatype, &lower, &extent) == MPI_SUCCESS) {
    facts.lower = lower;
    facts.extent = extent;
  }
  return facts;
}

}  // namespace commlens
