// SPDX-License-Identifier: Apache-2.0
#include "core/profile/catalogue.h"

#include <algorithm>

#include "core/profile/codec.h"

namespace commlens {
namespace {

template <class Codec, class Site>
void site_fields(Codec& codec, Site& site) {
  codec.text(site.module);
  codec.text(site.build_id);
  codec.number(site.offset);
  codec.number(site.caller);
}

template <class Codec, class Comm>
void comm_fields(Codec& codec, Comm& c) {
  codec.number(c.identity);
  codec.number(c.kind);
  for (auto* const text : {&c.name, &c.user_name, &c.topology, &c.members}) codec.text(*text);
  for (auto* const n : {&c.parent, &c.site, &c.size, &c.remote_size, &c.leader, &c.family}) codec.signed_number(*n);
  codec.number(c.op);
  codec.number(c.communicators);
  codec.signed_number(c.created_ns);
  codec.signed_number(c.freed_ns);
  codec.list(c.set, 0, [&codec](auto& member) { codec.signed_number(member); });
}

template <class Codec, class Region>
void region_fields(Codec& codec, Region& region) {
  codec.number(region.identity);
  codec.signed_number(region.parent);
  codec.number(region.kind);
  codec.text(region.name);
}

template <class Codec, class Metric>
void metric_fields(Codec& codec, Metric& metric) {
  codec.text(metric.name);
  codec.text(metric.unit);
}

template <class Codec, class Datatype>
void datatype_fields(Codec& codec, Datatype& datatype) {
  codec.text(datatype.tree);
  codec.number(datatype.size);
  codec.signed_number(datatype.lower);
  codec.signed_number(datatype.extent);
  codec.number(datatype.identity);
}

template <class Codec, class Tag>
void tag_fields(Codec& codec, Tag& tag) {
  codec.number(tag.region);
  codec.text(tag.name);
  codec.text(tag.value);
}

template <class Codec, class Key>
void key_fields(Codec& codec, Key& key) {
  for (auto* const n : {&key.comm, &key.op, &key.bin, &key.region, &key.site}) codec.number(*n);
  for (const auto counter : counters_of_key) codec.number(key.*counter);
}

// All of a catalogue.  The first site, region, metric and datatype stand for none, and are in every catalogue.
template <class Codec, class AnyCatalogue>
void fields(Codec& codec, AnyCatalogue& all) {
  codec.list(all.sites, 1, [&codec](auto& site) { site_fields(codec, site); });
  codec.list(all.comms, 0, [&codec](auto& comm) { comm_fields(codec, comm); });
  codec.list(all.regions, 1, [&codec](auto& region) { region_fields(codec, region); });
  codec.list(all.metrics, 1, [&codec](auto& metric) { metric_fields(codec, metric); });
  codec.list(all.datatypes, 1, [&codec](auto& datatype) { datatype_fields(codec, datatype); });
  codec.list(all.tags, 0, [&codec](auto& tag) { tag_fields(codec, tag); });
  codec.list(all.keys, 0, [&codec](auto& key) { key_fields(codec, key); });
}

}  // namespace

std::size_t Catalogue::find(const KeyFacts& key) const {
  const auto at = std::lower_bound(keys.begin(), keys.end(), key,
                                   [](const KeyFacts& a, const KeyFacts& b) { return key_of(a) < key_of(b); });
  return static_cast<std::size_t>(at - keys.begin());
}

std::vector<char> Catalogue::packed() const {
  WireWriter out;
  Encoder encoder(out);
  fields(encoder, *this);
  return out.bytes();
}

bool Catalogue::unpack(const std::vector<char>& bytes) {
  WireReader in(bytes.data(), bytes.size());
  Decoder decoder(in);
  fields(decoder, *this);
  return in.ok();
}

}  // namespace commlens
