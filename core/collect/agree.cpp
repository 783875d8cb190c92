// SPDX-License-Identifier: Apache-2.0
#include "core/collect/agree.h"

#include <algorithm>
#include <new>

namespace commlens {
namespace {

struct Offer {
  Digest digest;
  Block block;
  int has_memory;
};

enum class Answer : char { is_the_same, tell, no_memory };

// Merges the dictionary of a child into this one.
TransferResult take_in(Group& group, int child, Dictionary& dictionary) {
  Offer offer;
  if (!group.receive(child, &offer, sizeof offer)) return TransferResult::broken;
  Answer answer = offer.has_memory != 0 ? Answer::tell : Answer::no_memory;
  std::vector<Identity> identities;
  try {
    if (answer == Answer::tell && offer.digest == digest_of(dictionary.identities())) {
      answer = Answer::is_the_same;
      dictionary.add_same(offer.block);
    }
    if (answer == Answer::tell) identities.resize(offer.digest.entries);
  } catch (const std::bad_alloc&) {
    answer = Answer::no_memory;
  }
  if (!group.send(child, &answer, sizeof answer)) return TransferResult::broken;
  if (answer != Answer::tell) return answer == Answer::is_the_same ? TransferResult::yes : TransferResult::no_memory;

  if (!group.receive(child, identities.data(), identities.size() * sizeof(Identity))) return TransferResult::broken;
  std::vector<char> bytes;
  bool is_new = true;  // the child has entries that are missing here
  try {
    bytes = dictionary.wanted(identities, offer.block);
    is_new = std::count(bytes.begin(), bytes.end(), 1) != 0;
  } catch (const std::bad_alloc&) {
    bytes.clear();
  }
  if (const TransferResult passed = put(group, child, bytes); passed != TransferResult::yes) return passed;
  if (const TransferResult passed = take(group, child, bytes); passed != TransferResult::yes) return passed;
  if (is_new && bytes.empty()) return TransferResult::no_memory;  // on this process or on the child
  try {
    return dictionary.add_entries(bytes, offer.block) ? TransferResult::yes : TransferResult::no_memory;
  } catch (const std::bad_alloc&) {
    return TransferResult::no_memory;
  }
}

TransferResult give(Group& group, int parent, const Dictionary& dictionary, bool has_memory) {
  Offer offer{{}, dictionary.block(), 0};
  std::vector<Identity> identities;
  try {
    identities = dictionary.identities();
    offer.digest = digest_of(identities);
    offer.has_memory = has_memory ? 1 : 0;
  } catch (const std::bad_alloc&) {
    offer.digest = {};
  }
  Answer answer{};
  if (!group.send(parent, &offer, sizeof offer) || !group.receive(parent, &answer, sizeof answer))
    return TransferResult::broken;
  if (answer != Answer::tell) return answer == Answer::is_the_same ? TransferResult::yes : TransferResult::no_memory;
  std::vector<char> bytes;
  if (!group.send(parent, identities.data(), identities.size() * sizeof(Identity))) return TransferResult::broken;
  if (const TransferResult passed = take(group, parent, bytes); passed != TransferResult::yes) return passed;
  try {
    bytes = dictionary.entries(bytes);
  } catch (const std::bad_alloc&) {
    bytes.clear();
  }
  return put(group, parent, bytes);
}

}  // namespace

AgreementResult agree(Group& group, Dictionary& dictionary) {
  const Tree tree = tree_of(group);
  bool has_memory = true;
  for (const int child : tree.children) {
    const TransferResult passed = take_in(group, child, dictionary);
    if (passed == TransferResult::broken) return AgreementResult::broken;
    has_memory = has_memory && passed == TransferResult::yes;
  }
  if (tree.parent >= 0) {
    const TransferResult passed = give(group, tree.parent, dictionary, has_memory);
    if (passed == TransferResult::broken) return AgreementResult::broken;
    has_memory = passed == TransferResult::yes;
  }
  return has_memory ? AgreementResult::yes : AgreementResult::no_memory;
}

}  // namespace commlens
