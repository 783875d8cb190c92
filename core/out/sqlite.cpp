// SPDX-License-Identifier: Apache-2.0
#include "core/out/sqlite.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/cold/blocked_signal.h"
#include "core/out/output_name.h"
#include "core/out/utf8.h"
#include "generated/procedures.h"
#include "generated/schema_sql.h"
#include "third_party/sqlite/sqlite3.h"

namespace commlens::out {
namespace {

// A database in memory; after the first error it does nothing more and keeps the message.
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

// Inserts rows into one table.  Values are given in the order of its columns.
class Insert {
 public:
  Insert(Database& db, const char* table, int columns) : db_(db) {
    std::string sql = std::string("INSERT INTO ") + table + " VALUES (?";
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

void fill(Database& db, const Profile& profile, const Meta& meta) {
  {
    Insert insert(db, "meta", 2);
    for (const auto& [key, value] : meta) insert.text(key).text(value).row();
  }
  {
    Insert insert(db, "rank", 12);
    for (const Profile::Rank& r : profile.ranks) {
      insert.number(r.facts.rank).count(r.facts.world).text(r.facts.node).number(r.facts.pid).text(r.facts.cpus);
      insert.count(r.facts.init_ns).count(r.facts.app_ns).count(r.mpi_ns).number(r.facts.threads);
      insert.count(r.calls).count(r.lost_calls).text("finalized").row();
    }
  }
  {
    Insert insert(db, "comm", 17);
    Insert set(db, "comm_set", 2);
    for (std::size_t i = 0; i < profile.comms.size(); ++i) {
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
    std::int64_t id = 0;
    for (const OpFacts& op : op_facts) insert.number(id++).text(op.name).text(op.klass).row();
  }
  Insert(db, "region", 3).number(0).null().text("").row();
  {
    Insert insert(db, "coverage", 6);
    for (const auto& [name, imported] : profile.coverage) {
      const auto [state, reason] = explained(name.first, imported.treatment);
      insert.text(name.first).text(name.second).text(procedure_of(name.first)).text(state).text_or_null(reason);
      insert.number(imported.ranks).row();
    }
  }
  {
    Insert insert(db, "callsite", 4);
    for (std::size_t i = 0; i < profile.sites.size(); ++i) {
      const Profile::SiteFacts& s = profile.sites[i];
      insert.count(i).text(s.module).text(s.build_id).count(s.offset).row();
    }
  }
  {
    Insert insert(db, "key", 6);
    for (std::size_t i = 0; i < profile.keys.size(); ++i) {
      const Profile::KeyFacts& k = profile.keys[i];
      insert.count(i).number(k.comm).number(k.op).number(k.bin == v_bin ? -1 : static_cast<int>(k.bin));
      insert.number(k.region).number(k.site).row();
    }
  }
  {
    Insert insert(db, "cell", 9);
    for (const Profile::Row& r : profile.rows) {
      insert.number(r.key).number(r.rank).count(r.calls).count(r.time).count(r.time_min).count(r.time_max);
      insert.count(r.bytes_sent).count(r.bytes_received).count(r.noncontiguous).row();
    }
  }
}

void fill_overhead(Database& db, const Profile& profile, Ticks building) {
  Insert insert(db, "overhead", 3);
  for (const Profile::Rank& r : profile.ranks) {
    insert.number(r.facts.rank).text("call").count(r.facts.own_call_ns).row();
    insert.number(r.facts.rank).text("calls").count(r.facts.own_call_ns * r.calls).row();
    insert.number(r.facts.rank).text("collect").count(r.facts.own_collect_ns).row();
    insert.number(r.facts.rank).text("init").count(r.facts.own_init_ns).row();
  }
  if (profile.ranks.empty()) return;
  insert.number(profile.ranks.front().facts.rank)
      .text("write")
      .count(TickScale::since_start().ns(now() - building))
      .row();
}

std::string failed(const char* doing, const std::string& path) {
  return std::string("cannot ") + doing + " " + path + ": " + std::strerror(errno);
}

// Writes all of it under a temporary name and links it to the first free name.
Stored write_file(const unsigned char* bytes, std::size_t size, const std::string& name) {
  // Process ids repeat across nodes and containers that share the directory: a name that exists is another's.
  std::string temporary;
  int file = -1;
  for (int n = 0; file < 0; ++n) {
    temporary = name + ".tmp." + std::to_string(getpid()) + "." + std::to_string(n);
    file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) return {"", failed("create", temporary)};
  }
  Stored result;
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = write(file, bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      result.error = failed("write", temporary);
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  if (result.error.empty() && fsync(file) != 0 && errno != EINVAL) result.error = failed("write", temporary);
  if (close(file) != 0 && result.error.empty()) result.error = failed("write", temporary);
  for (int n = 0; result.error.empty() && result.path.empty(); ++n) {
    const std::string wanted = n == 0 ? name : numbered_name(name, n);
    if (link(temporary.c_str(), wanted.c_str()) == 0) {
      result.path = wanted;
    } else if (errno == EEXIST) {
      continue;
    } else {
      // No hard links on this file system: take the name first, then replace our own empty file.
      const int own = open(wanted.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (own < 0 && errno == EEXIST) continue;
      if (own < 0) {
        result.error = failed("create", wanted);
      } else {
        close(own);
        if (rename(temporary.c_str(), wanted.c_str()) == 0) return {wanted, ""};
        result.error = failed("rename to", wanted);
        unlink(wanted.c_str());
      }
    }
  }
  unlink(temporary.c_str());
  return result;
}

}  // namespace

Stored store(const Profile& profile, const Meta& meta, const std::string& name, Ticks building) {
  Database db;
  db.run("PRAGMA page_size = 4096");
  db.run(schema_sql);
  db.run("BEGIN");
  fill(db, profile, meta);
  fill_overhead(db, profile, building);
  db.run("COMMIT");
  sqlite3_int64 size = 0;
  unsigned char* const bytes = db.ok() ? sqlite3_serialize(db.handle(), "main", &size, 0) : nullptr;
  if (bytes == nullptr) return {"", "cannot build the profile: " + (db.ok() ? "out of memory" : db.error())};

  const BlockedSignal file_size_limit(SIGXFSZ);
  Stored result = write_file(bytes, static_cast<std::size_t>(size), name);
  if (result.path.empty()) {
    const char* const directory = std::getenv("TMPDIR");
    const std::string other = std::string(directory != nullptr && *directory != '\0' ? directory : "/tmp");
    const Stored second = write_file(bytes, static_cast<std::size_t>(size), other + "/" + base_name(name));
    if (second.path.empty()) {
      result.error += "; " + second.error;
    } else {
      result.path = second.path;
    }
  }
  sqlite3_free(bytes);
  return result;
}

}  // namespace commlens::out
