// SPDX-License-Identifier: Apache-2.0
#include "core/out/sqlite.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/base/blocked_signal.h"
#include "core/base/identity.h"
#include "core/base/ticks.h"
#include "core/out/output_name.h"
#include "core/out/utf8.h"
#include "generated/procedures.h"
#include "generated/schema_sql.h"
#include "third_party/sqlite/sqlite3.h"

namespace commlens::out {
namespace {

// A database in memory.  After the first error it ignores all calls and keeps the message.
class Database {
 public:
  Database() {
    if (sqlite3_open_v2(":memory:", &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr) != SQLITE_OK) fail();
  }
  ~Database() { sqlite3_close(db_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const char* sql) {
    if (ok() && sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }
  void fail() { error_ = db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_); }
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  sqlite3* handle() { return db_; }

 private:
  sqlite3* db_ = nullptr;
  std::string error_;
};

// Inserts rows into one table.  The caller gives the values in the order of the columns.
class Insert {
 public:
  // how: " OR IGNORE" if texts are keys, because different bytes may become the same text in UTF-8.
  Insert(Database& db, const char* table, int columns, const char* how = "") : db_(db) {
    std::string sql = std::string("INSERT") + how + " INTO " + table + " VALUES (?";
    for (int i = 1; i < columns; ++i) sql += ",?";
    sql += ")";
    if (db_.ok() && sqlite3_prepare_v2(db_.handle(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) db_.fail();
  }
  ~Insert() { sqlite3_finalize(statement_); }
  Insert(const Insert&) = delete;
  Insert& operator=(const Insert&) = delete;

  Insert& number(std::int64_t n) {
    if (db_.ok()) sqlite3_bind_int64(statement_, ++at_, n);
    return *this;
  }
  Insert& count(std::uint64_t n) { return number(static_cast<std::int64_t>(n)); }
  // -1 stands for "not known" wherever a number cannot be negative.
  Insert& known(std::int64_t n) { return n == -1 ? null() : number(n); }
  Insert& real(double d) {
    if (db_.ok()) sqlite3_bind_double(statement_, ++at_, d);
    return *this;
  }
  Insert& text(const std::string& bytes) {
    const std::string t = utf8(bytes);
    if (db_.ok()) sqlite3_bind_text(statement_, ++at_, t.c_str(), static_cast<int>(t.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Insert& text_or_null(const std::string& t) { return t.empty() ? null() : text(t); }
  Insert& null() {
    if (db_.ok()) sqlite3_bind_null(statement_, ++at_);
    return *this;
  }
  void row() {
    if (!db_.ok()) return;
    if (sqlite3_step(statement_) != SQLITE_DONE) db_.fail();
    sqlite3_reset(statement_);
    at_ = 0;
  }

 private:
  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
  int at_ = 0;
};

const char* kind_name(CommKind kind) {
  switch (kind) {
    case CommKind::intra: return "intra";
    case CommKind::inter: return "inter";
    case CommKind::set: return "set";
    case CommKind::none: break;
  }
  return "none";
}

const char* kind_name(RegionKind kind) {
  switch (kind) {
    case RegionKind::region: return "region";
    case RegionKind::loop: return "loop";
    case RegionKind::others: return "others";
    case RegionKind::program: break;
  }
  return "program";
}

constexpr struct {
  const char* name;
  bool outward;
} flows[] = {{"sent", true},     {"received", false}, {"put", true},    {"get", false},      {"collective", true},
             {"internal", true}, {"share", true},     {"one_to_all", true}, {"all_to_one", true}, {"all_to_all", true}};
static_assert(std::size(flows) == static_cast<std::size_t>(Flow::count));

// Which part of a profile a file contains.
enum class Part { whole, shard, index };

// Returns the id of a key.  The ids of keys are `world_size` apart, so that the row of a rank has the id of its key
// plus the rank.  A table ordered by one number is smaller, and written faster, than one ordered by two.
std::int64_t id_of(const Profile& profile, std::size_t key) {
  return static_cast<std::int64_t>(key) * std::max(profile.world_size, 1);
}

// Returns, by procedure, whether the rows of a shard refer to it.
std::vector<char> ops_of(const Profile& profile) {
  std::vector<char> used(std::size(op_facts));
  const auto use = [&used](std::uint32_t op) {
    if (op < used.size()) used[op] = 1;
  };
  for (std::size_t i = 0; i < profile.keys.size(); ++i) {
    if (profile.has_key[i] != 0) use(profile.keys[i].op);
  }
  for (std::size_t i = 0; i < profile.comms.size(); ++i) {
    if (profile.has_comm[i] != 0) use(profile.comms[i].op);
  }
  for (const Profile::LastCall& place : profile.last_calls) use(place.op);
  return used;
}

void fill(Database& db, const Profile& profile, const Meta& meta, Part part) {
  {
    Insert insert(db, "meta", 2);
    for (const auto& [key, value] : meta) insert.text(key).text(value).row();
  }
  const auto leaves_out = [part](const std::vector<char>& has, std::size_t i) {
    return part == Part::shard && has[i] == 0;
  };
  {
    Insert insert(db, "comm", 17);
    Insert set(db, "comm_set", 2);
    for (std::size_t i = 0; i < profile.comms.size(); ++i) {
      if (leaves_out(profile.has_comm, i)) continue;
      const Profile::Comm& c = profile.comms[i];
      const bool real = c.kind == CommKind::intra || c.kind == CommKind::inter;
      insert.count(i).count(c.identity).text(c.name).text_or_null(c.user_name).text(kind_name(c.kind));
      insert.known(c.parent);
      c.op == 0 ? insert.null() : insert.number(c.op);
      insert.known(c.site);
      real ? insert.number(c.size) : insert.null();
      c.kind == CommKind::inter ? insert.number(c.remote_size) : insert.null();
      insert.known(c.leader).text_or_null(c.members).text_or_null(c.topology);
      real ? insert.known(c.created_ns) : insert.null();
      insert.known(c.freed_ns).number(c.family).number(static_cast<int>(c.communicators)).row();
      for (const int member : c.set) set.count(i).number(member).row();
    }
  }
  {
    Insert insert(db, "op", 3);
    const std::vector<char> used = part == Part::shard ? ops_of(profile) : std::vector<char>(std::size(op_facts), 1);
    for (std::size_t id = 0; id < std::size(op_facts); ++id) {
      if (used[id] != 0) insert.count(id).text(op_facts[id].name).text(op_facts[id].klass).row();
    }
  }
  {
    Insert insert(db, "flow", 3);
    for (std::size_t id = 0; id < std::size(flows); ++id)
      insert.count(id).text(flows[id].name).number(flows[id].outward ? 1 : 0).row();
  }
  {
    Insert insert(db, "region", 4);
    for (std::size_t i = 0; i < profile.regions.size(); ++i) {
      if (i != 0 && leaves_out(profile.has_region, i)) continue;
      const Profile::Region& r = profile.regions[i];
      insert.count(i).known(r.parent).text(r.name).text(kind_name(r.kind)).row();
    }
  }
  {
    Insert insert(db, "metric", 3);
    for (std::size_t i = 1; i < profile.metrics.size(); ++i) {
      if (leaves_out(profile.has_metric, i)) continue;
      insert.count(i).text(profile.metrics[i].name).text(profile.metrics[i].unit).row();
    }
  }
  {
    Insert insert(db, "tag", 3, " OR IGNORE");
    for (const Profile::Tag& tag : profile.tags) {
      if (tag.region != 0 && leaves_out(profile.has_region, tag.region)) continue;
      insert.number(tag.region).text(tag.name).text(tag.value).row();
    }
  }
  if (part != Part::shard) {
    Insert insert(db, "coverage", 6, " OR IGNORE");
    for (const auto& [name, imported] : profile.dictionary.coverage()) {
      const auto [state, reason] = explained(name.first, imported.treatment);
      insert.text(name.first).text(name.second).text(procedure_of(name.first)).text(state).text_or_null(reason);
      insert.number(imported.ranks).row();
    }
  }
  {
    Insert insert(db, "callsite", 4);
    for (std::size_t i = 0; i < profile.sites.size(); ++i) {
      if (leaves_out(profile.has_site, i)) continue;
      const SiteFacts& s = profile.sites[i];
      insert.count(i).text(s.module).text(s.build_id).count(s.offset).row();
    }
  }
  {
    Insert insert(db, "key", 10);
    for (std::size_t i = 0; i < profile.keys.size(); ++i) {
      if (leaves_out(profile.has_key, i)) continue;
      const Profile::KeyFacts& k = profile.keys[i];
      insert.number(id_of(profile, i)).number(k.comm).number(k.op);
      insert.number(k.bin == v_bin ? -1 : static_cast<int>(k.bin)).number(k.region).number(k.site);
      insert.count(k.calls).count(k.bytes_sent).count(k.bytes_received).count(k.noncontiguous).row();
    }
  }
}

// Stores in a file how long storing that file took, which is known only afterwards.  The image contains a filler number
// of eight bytes.  When all else is on disk, the true number, also of eight bytes, replaces it in the file.
class Gap {
 public:
  explicit Gap(Ticks (*clock)()) : clock_(clock), filler_(some_number()) {}

  // Returns the filler number to insert.  begin: when storing begins.
  std::uint64_t open(Ticks begin) {
    begin_ = begin;
    return filler_;
  }

  // Finds the filler in the image and sets it to 0, the value until it is filled.
  void find(unsigned char* bytes, std::size_t size) {
    std::array<unsigned char, 8> filler = stored(filler_);
    unsigned char* const at =
        begin_ == 0 ? bytes + size : std::search(bytes, bytes + size, filler.begin(), filler.end());
    if (at == bytes + size) return;
    bytes_ = at;
    offset_ = at - bytes;
    std::fill_n(bytes_, filler.size(), static_cast<unsigned char>(0));
  }

  // Returns the action that fills the gap, as the last write to the file.
  Finish filling() {
    return [this](int file) { fill(file); };
  }

 private:
  void fill(int file) {
    if (bytes_ == nullptr) return;
    const std::array<unsigned char, 8> time = stored(TickScale::since_start().ns(clock_() - begin_));
    if (pwrite(file, time.data(), time.size(), offset_) == static_cast<ssize_t>(time.size()))
      std::copy(time.begin(), time.end(), bytes_);
  }

  // Returns a number that no counter reaches, and that a text contains only by chance.
  static std::uint64_t some_number() { return (mixed(now() ^ static_cast<Identity>(getpid())) >> 2) | 1ull << 61; }

  // Returns the bytes in which SQLite stores a number.
  static std::array<unsigned char, 8> stored(std::uint64_t number) {
    std::array<unsigned char, 8> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(number >> (56 - 8 * i));
    return bytes;
  }

  Ticks (*clock_)();
  std::uint64_t filler_;
  Ticks begin_ = 0;
  unsigned char* bytes_ = nullptr;
  off_t offset_ = 0;
};

// Fills the tables with rows per rank.
void fill_rows(Database& db, const Profile& profile, const Phases& phases, Gap& gap) {
  {
    Insert insert(db, "rank", 12);
    for (const Profile::Rank& r : profile.ranks) {
      insert.number(r.facts.rank).count(r.facts.world).text(r.facts.node).number(r.facts.pid).text(r.facts.cpus);
      insert.count(r.facts.init_ns).count(r.facts.app_ns).count(r.mpi_ns).number(r.facts.threads);
      insert.count(r.calls).count(r.lost_calls).text(r.facts.state).row();
    }
  }
  {
    Insert insert(db, "cell_row", 8);
    for (const Profile::Row& r : profile.rows) {
      const Profile::KeyFacts& k = profile.keys[r.key];
      // Differences of unsigned numbers wrap, and so do the sums that undo them.
      insert.number(id_of(profile, r.key) + r.rank).count(r.calls - k.calls);
      insert.count(r.time).count(r.time_min).count(r.time_max);
      insert.count(r.bytes_sent - k.bytes_sent).count(r.bytes_received - k.bytes_received);
      insert.count(r.noncontiguous - k.noncontiguous).row();
    }
  }
  {
    Insert insert(db, "slice", 8);
    Insert regions(db, "region_slice", 5);
    for (const Profile::Slice& s : profile.slices) {
      if (s.op == region_op) {
        regions.number(s.comm).number(s.rank).count(s.slot).count(s.calls).count(s.time).row();
        continue;
      }
      insert.number(s.comm).number(s.op).number(s.rank).count(s.slot).count(s.calls).count(s.time);
      insert.count(s.bytes_sent).count(s.bytes_received).row();
    }
  }
  {
    Insert insert(db, "position", 8);
    for (const Profile::LastCall& p : profile.last_calls) {
      insert.number(p.rank).number(p.thread).number(p.inside ? 1 : 0).number(p.op).number(p.comm).number(p.site);
      insert.count(p.since).number(p.region).row();
    }
  }
  Insert insert(db, "overhead", 3);
  for (const Profile::Rank& r : profile.ranks) {
    insert.number(r.facts.rank).text("call").count(r.facts.own_call_ns).row();
    insert.number(r.facts.rank).text("calls").count(r.facts.own_call_ns * r.calls).row();
    insert.number(r.facts.rank).text("collect").count(r.facts.own_collect_ns).row();
    insert.number(r.facts.rank).text("init").count(r.facts.own_init_ns).row();
    insert.number(r.facts.rank).text("wait").count(r.facts.own_wait_ns).row();
  }
  if (phases.begin == 0) return;
  const int writer = profile.ranks.empty() ? 0 : profile.ranks.front().facts.rank;
  const TickScale scale = TickScale::since_start();
  const Ticks built = phases.clock();
  insert.number(writer).text("gather").count(scale.ns(phases.gathered - phases.collected)).row();
  insert.number(writer).text("agree").count(scale.ns(phases.agreed - phases.gathered)).row();
  insert.number(writer).text("write").count(scale.ns(built - phases.agreed)).row();
  insert.number(writer).text("store").count(gap.open(built)).row();
}

// Fills the tables of regions, with rows per rank.
void fill_regions(Database& db, const Profile& profile) {
  const auto place = [](Insert& insert, const auto& row) -> Insert& {
    return insert.number(row.within.region).number(row.within.execution);
  };
  {
    Insert insert(db, "region_time", 11);
    for (const Profile::RegionRow& r : profile.region_rows) {
      place(insert, r).number(r.within.iteration).number(r.rank).count(r.calls).count(r.open).count(r.time);
      insert.count(r.time_min).count(r.time_max).count(r.nested).count(r.mpi).row();
    }
  }
  {
    Insert insert(db, "loop_time", 10);
    for (const Profile::RegionRow& r : profile.loop_rows) {
      place(insert, r).number(r.within.iteration).number(r.rank).count(r.calls).count(r.time);
      insert.count(r.time_min).count(r.time_max).count(r.nested).count(r.mpi).row();
    }
  }
  {
    Insert insert(db, "loop_bin", 5);
    for (const Profile::LoopRow& r : profile.loop_bins) {
      for (std::size_t bin = 0; bin < r.bins.size(); ++bin) {
        if (r.bins[bin] != 0) place(insert, r).number(r.rank).count(bin).count(r.bins[bin]).row();
      }
    }
  }
  Insert insert(db, "metric_value", 11);
  for (const Profile::MetricRow& r : profile.metric_rows) {
    place(insert.number(r.metric), r).number(r.within.iteration).number(r.rank).count(r.count).real(r.sum);
    for (const double d : {r.min, r.max, r.last}) r.count == 0 ? insert.null() : insert.real(d);
    insert.count(r.not_finite).row();
  }
}

// Fills the communication matrix.
void fill_peers(Database& db, const Profile& profile) {
  Insert insert(db, "peer", 13);
  for (const Profile::PeerRow& r : profile.peer_rows) {
    insert.number(r.comm).number(static_cast<int>(r.flow)).number(r.op);
    r.call == 0 ? insert.null() : insert.number(r.call - 1);
    insert.number(r.region).count(r.slice).number(r.rank);
    r.peer >= 0 ? insert.number(r.peer) : insert.null();
    r.peer >= 0 || r.first == no_peer ? insert.null() : insert.number(r.first);
    insert.number(r.peers).number(r.bin).count(r.messages).count(r.bytes).row();
  }
}

const char* name_of(Profile::Counter counter) {
  constexpr const char* names[] = {"calls",          "time_ns",       "time_min_ns",  "time_max_ns", "bytes_sent",
                                   "bytes_received", "noncontiguous", "init_ns",      "app_ns",      "mpi_ns",
                                   "outside_ns",     "threads",       "lost_calls",   "own_init_ns", "own_collect_ns",
                                   "own_call_ns",    "own_calls_ns",  "exclusive_ns", "own_wait_ns"};
  static_assert(std::size(names) == static_cast<std::size_t>(Profile::Counter::own_wait) + 1);
  return names[static_cast<std::size_t>(counter)];
}

// Fills the distributions of a summary.
void fill_lines(Database& db, const Profile& profile) {
  Insert insert(db, "scope", 9);
  Insert spread(db, "spread", 13);
  for (std::size_t i = 0; i < profile.lines.size(); ++i) {
    const Profile::Line& l = profile.lines[i];
    insert.count(i).known(l.family).known(l.comm).known(l.op);
    l.bin == static_cast<int>(v_bin) ? insert.number(-1) : insert.known(l.bin);
    insert.known(l.site);
    l.key < 0 ? insert.null() : insert.number(id_of(profile, static_cast<std::size_t>(l.key)));
    insert.known(l.members).known(l.region).row();
    for (const auto& [counter, s] : l.counters) {
      if (s.max == 0) continue;
      const bool is_extreme = counter == Profile::Counter::time_min || counter == Profile::Counter::time_max;
      spread.count(i).text(name_of(counter)).count(s.ranks);
      is_extreme ? spread.null() : spread.count(s.sum);
      spread.count(s.min).number(s.min_rank).count(s.max).number(s.max_rank);
      for (const double share : {0.05, 0.25, 0.5, 0.75, 0.95})
        s.min == s.max ? spread.null() : spread.count(s.at(share));
      spread.row();
    }
  }
}

}  // namespace

Totals::Totals(const Profile& profile)
    : ranks(profile.ranks.size()),
      slice_ns(profile.slice_ns),
      slices_folded(profile.slices_folded),
      is_summary(profile.is_summary),
      oddities(profile.oddities) {
  for (const Profile::Rank& r : profile.ranks) {
    elapsed = std::max(elapsed, r.facts.app_ns);
    nodes.insert(r.facts.node);
  }
}

Meta with_totals(Meta begin, const Totals& totals, int ranks) {
  begin.emplace_back("schema_version", std::to_string(schema_version));
  begin.emplace_back("elapsed_ns", std::to_string(totals.elapsed));
  begin.emplace_back("ranks", std::to_string(ranks));
  begin.emplace_back("ranks_collected", std::to_string(totals.ranks));
  begin.emplace_back("slice_ns", std::to_string(totals.slice_ns));
  begin.emplace_back("slice_of", totals.slices_folded ? "family" : "communicator");
  begin.emplace_back("nodes", std::to_string(totals.nodes.size()));
  begin.emplace_back("detail", totals.is_summary ? "summary" : "full");
  for (const char* const empty : {"shard", "open_calls"}) begin.emplace_back(empty, "");
  return begin;
}

namespace {

// The bytes of a database, as in a file.
class Image {
 public:
  explicit Image(Database& db) {
    if (db.ok()) bytes_ = sqlite3_serialize(db.handle(), "main", &size_, 0);
    if (bytes_ == nullptr) error = "cannot build the profile: " + (db.ok() ? "out of memory" : db.error());
  }
  ~Image() { sqlite3_free(bytes_); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  unsigned char* bytes() const { return bytes_; }
  std::size_t size() const { return static_cast<std::size_t>(size_); }
  Content content() const { return {bytes(), size()}; }
  std::string error;  // empty: none

 private:
  unsigned char* bytes_ = nullptr;
  sqlite3_int64 size_ = 0;
};

// Inserts the views as rows of the schema.  To create a view, SQLite parses it twice and searches the whole schema for
// its name.  That took most of the time that the profile of a small job needs.  Readers of the profile parse the views
// anyway.
void add_views(Database& db) {
  constexpr std::string_view create = "CREATE VIEW ", end = ";\n";
  const std::string_view all = views_sql;
  db.run("PRAGMA writable_schema = ON");
  {
    Insert insert(db, "sqlite_schema", 5);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t next = std::min(all.find(create, at + 1), all.size());
      const std::string_view statement = all.substr(at, next - at - end.size());
      const std::string_view rest = statement.substr(create.size());
      const std::string name(rest.substr(0, rest.find_first_of(" (\n")));
      insert.text("view").text(name).text(name).number(0).text(std::string(statement)).row();
      at = next;
    }
  }
  db.run("PRAGMA writable_schema = OFF");
}

// Builds one file of a profile.  Each table takes a page even if it is empty, so files that are small have small pages:
// summaries, and shards, of which there may be thousands.  A shard has neither views nor the comments of the schema;
// the index has them.
template <class Fill>
Image built(Part part, bool is_small, Fill fill) {
  Database db;
  db.run(is_small ? "PRAGMA page_size = 1024" : "PRAGMA page_size = 4096");
  db.run(part == Part::shard ? bare_tables_sql : tables_sql);
  db.run("BEGIN");
  if (part != Part::shard) add_views(db);
  fill(db);
  db.run("COMMIT");
  return Image(db);
}

// The CRC-32 that zlib computes, so that readers can check it.
std::uint32_t crc32(const unsigned char* bytes, std::size_t size) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t i = 0; i < t.size(); ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  std::uint32_t crc = ~std::uint32_t{0};
  for (std::size_t i = 0; i < size; ++i) crc = table[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
}

}  // namespace

bool store_shard(const Profile& profile, const Meta& meta, const std::string& directory, const Phases& phases,
                 mode_t mode, Shard& shard) {
  Meta own = meta;
  for (auto& [key, value] : own) {
    if (key == "shard") value = std::to_string(shard.number);
  }
  Gap gap(phases.clock);
  const Image image = built(Part::shard, true, [&](Database& db) {
    fill(db, profile, own, Part::shard);
    fill_rows(db, profile, phases, gap);
    fill_regions(db, profile);
    fill_peers(db, profile);
  });
  const BlockedSignal file_size_limit(SIGXFSZ);
  Stored stored{"", image.error};
  if (image.error.empty()) {
    gap.find(image.bytes(), image.size());
    const std::string name = "shard." + std::to_string(shard.number) + ".db";
    stored = write_part(image.content(), directory, name, mode, gap.filling());
  }
  shard.error = stored.error;
  shard.file = base_name(stored.path);
  shard.ranks = profile.ranks.size();
  shard.cells = profile.rows.size();
  shard.bytes = image.size();
  if (stored.path.empty()) return false;
  shard.crc32 = crc32(image.bytes(), image.size());
  return true;
}

Stored store_index(const Profile& profile, const Meta& meta, const std::vector<Shard>& shards,
                   const std::string& directory, mode_t mode) {
  const Image image = built(Part::index, false, [&](Database& db) {
    fill(db, profile, meta, Part::index);
    Insert insert(db, "shard", 7);
    for (const Shard& s : shards) {
      insert.count(s.number).text_or_null(s.file).count(s.first_rank).count(s.ranks).count(s.cells).count(s.bytes);
      insert.count(s.crc32).row();
    }
  });
  if (!image.error.empty()) return {"", image.error};
  const BlockedSignal file_size_limit(SIGXFSZ);
  return write_part(image.content(), directory, "index.db", mode, nullptr);
}

Stored store(const Profile& profile, const Meta& meta, const std::string& name, const Phases& phases, mode_t mode) {
  Gap gap(phases.clock);
  const Image image = built(Part::whole, profile.is_summary, [&](Database& db) {
    fill(db, profile, meta, Part::whole);
    fill_rows(db, profile, phases, gap);
    fill_regions(db, profile);
    fill_peers(db, profile);
    fill_lines(db, profile);
  });
  if (!image.error.empty()) return {"", image.error};
  const BlockedSignal file_size_limit(SIGXFSZ);
  gap.find(image.bytes(), image.size());
  Stored result = write_file(image.content(), name, mode, gap.filling());
  if (result.path.empty()) {
    const Stored second = write_file(image.content(), name_elsewhere(name), mode, gap.filling());
    if (second.path.empty()) {
      result.error += "; " + second.error;
    } else {
      result.path = second.path;
    }
  }
  return result;
}

}  // namespace commlens::out
