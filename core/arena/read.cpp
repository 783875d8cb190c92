// SPDX-License-Identifier: Apache-2.0
#include "core/arena/read.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <vector>

#include "core/arena/arena.h"
#include "core/cold/coverage.h"
#include "core/cold/memory.h"
#include "core/cold/wire.h"
#include "core/hot/thread.h"
#include "generated/procedures.h"

namespace commlens::arena {
namespace {

// Where a segment stands in the bytes that were read.
struct Segment {
  const SegmentHead* head;
  const char* content;
};

// Memory on a page boundary: an arena has cache lines in it.
struct Bytes {
  explicit Bytes(std::size_t n) : at(n == 0 ? nullptr : static_cast<char*>(map_memory(n))), size(n) {}
  ~Bytes() {
    if (at != nullptr) unmap_memory(at, size);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  char* at;
  std::size_t size;
};

std::string text_of(const char* text, std::size_t bytes) { return {text, strnlen(text, bytes)}; }

template <class T>
T copy_of(const void* from) {
  T value;
  std::memcpy(static_cast<void*>(&value), from, sizeof value);
  return value;
}

// What a thread has noted of its slices; what it has counted since, up to `totals`, is of the slice under way.
Sliced slices_of(const std::vector<const SliceBlock*>& blocks, const std::map<Key, SliceEntry>& totals,
                 const SliceLog& log) {
  Sliced sliced;
  std::uint64_t newest = 0;
  for (const SliceBlock* block : blocks) newest = std::max(newest, block->generation);
  std::map<Key, SliceEntry> noted;
  for (const SliceBlock* block : blocks) {
    if (block->generation != newest) continue;
    sliced.width = block->width;
    const auto* const entries = reinterpret_cast<const SliceEntry*>(block + 1);
    for (std::uint64_t i = 0; i < block->count.load(std::memory_order_relaxed); ++i) {
      if (entries[i].slot >= max_slices) continue;
      sliced.entries.push_back(entries[i]);
      SliceEntry& sum = noted[slice_key(entries[i].key)];
      sum.calls += entries[i].calls;
      sum.time += entries[i].time;
      sum.bytes_sent += entries[i].bytes_sent;
      sum.bytes_received += entries[i].bytes_received;
    }
  }
  const auto rest = [](std::uint64_t all, std::uint64_t part) { return all > part ? all - part : 0; };
  for (const auto& [key, total] : totals) {
    const SliceEntry& sum = noted[key];
    sliced.entries.push_back({key, std::min<std::uint64_t>(log.slot, max_slices - 1), rest(total.calls, sum.calls),
                              rest(total.time, sum.time), rest(total.bytes_sent, sum.bytes_sent),
                              rest(total.bytes_received, sum.bytes_received)});
  }
  return sliced;
}

}  // namespace

std::string name_of(std::uint32_t state, bool is_running) {
  if (state >= static_cast<std::uint32_t>(State::signal)) {
    const char* const name = sigabbrev_np(static_cast<int>(state - static_cast<std::uint32_t>(State::signal)));
    return name == nullptr ? "signal" : std::string("SIG") + name;
  }
  switch (static_cast<State>(state)) {
    case State::finalized: return "finalized";
    case State::exited: return "exited";
    case State::aborted: return "aborted";
    default: return is_running ? "running" : "ended";
  }
}

bool Reader::read(const std::string& path) {
  const auto failed = [&](const std::string& what) {
    error = path + ": " + what;
    return false;
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return failed(std::strerror(errno));
  struct stat facts;
  const bool is_file = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
  const auto size = is_file ? static_cast<std::size_t>(facts.st_size) : 0;
  const Bytes bytes(size);
  // Read, not mapped: a page of a file that is cut off meanwhile would end us.
  std::size_t done = 0;
  for (ssize_t n; bytes.at != nullptr && done < size && (n = ::read(descriptor, bytes.at + done, size - done)) > 0;) {
    done += static_cast<std::size_t>(n);
  }
  close(descriptor);
  if (!is_file) return failed("not a file");
  if (size > 0 && bytes.at == nullptr) return failed("no memory to read it");
  if (done < header_bytes) return failed("too short for an arena");
  const Header& header = *reinterpret_cast<const Header*>(bytes.at);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0) return failed("not an arena of commlens");
  if (header.version != version || header.layout != layout() || header.header_bytes != header_bytes) {
    return failed("written by another version of commlens; only that one can read it");
  }
  return read_bytes(bytes.at, done) || failed(error);
}

bool Reader::read_bytes(const char* bytes, std::uint64_t size) {
  const Header& header = *reinterpret_cast<const Header*>(bytes);
  process_ = header.process;
  state_ = header.state.load(std::memory_order_relaxed);
  is_running_ = is_alive(process_);
  const Process here = this_process();
  is_of_this_boot_ = process_.boot[0] == here.boot[0] && process_.boot[1] == here.boot[1];

  std::vector<Segment> segments;
  const std::uint64_t used = std::min(header.used.load(std::memory_order_relaxed), size);
  for (std::uint64_t at = header_bytes; at + sizeof(SegmentHead) <= used;) {
    const auto* const head = reinterpret_cast<const SegmentHead*>(bytes + at);
    at += sizeof(SegmentHead);
    if (head->bytes > used - at || head->bytes % alignment != 0) break;  // cut off
    segments.push_back({head, bytes + at});
    at += head->bytes;
  }
  const auto each = [&segments](Kind kind, auto visit) {
    for (const Segment& segment : segments) {
      if (segment.head->kind == kind) visit(segment);
    }
  };

  comms_.emplace_back();  // "no communicator"; the journal has the others
  job_.rank = -1;
  each(Kind::journal, [this](const Segment& s) {
    read_journal(s.content, std::min(s.head->filled.load(std::memory_order_relaxed), s.head->bytes));
  });
  if (job_.rank < 0) {
    error = "its process had not come out of MPI_Init";
    return false;
  }
  std::uint32_t first = 0;
  each(Kind::comms, [&](const Segment& s) {
    const auto n = static_cast<std::uint32_t>(s.head->bytes / sizeof(CommState));
    take_states(reinterpret_cast<const CommState*>(s.content), n, first);
    first += n;
  });

  // On the machine and in the uptime that counted, its clock still runs: the longer the distance, the better.
  clock_is_tsc = header.clock_is_tsc != 0;
  const Reading last = is_of_this_boot_ ? reading() : header.last;
  if (clock_is_tsc) counted_.scale = TickScale::between(header.first, last);
  counted_.started = job_.started;
  last_seen_ = std::max(is_running_ ? last.ticks : header.last.ticks, job_.started);

  std::map<std::uint32_t, std::map<Key, SliceEntry>> totals;  // of each thread: what its slices must add up to
  const auto take_cell = [&](const Cell& cell, std::uint32_t thread) {
    add_cell_to(counted_.cells, cell);
    SliceEntry& total = totals[thread][slice_key(cell.key)];
    total.calls += cell.calls;
    total.time += cell.time;
    total.bytes_sent += cell.bytes_sent;
    total.bytes_received += cell.bytes_received;
  };
  each(Kind::cells, [&](const Segment& s) {
    for (std::uint64_t at = 0; at + sizeof(Cell) <= s.head->bytes; at += sizeof(Cell)) {
      const Cell cell = copy_of<Cell>(s.content + at);
      if (cell.key != 0) take_cell(cell, s.head->number);
    }
  });
  std::map<std::uint32_t, std::vector<const SliceBlock*>> blocks;  // of each thread
  each(Kind::slices, [&](const Segment& s) {
    const auto* const block = reinterpret_cast<const SliceBlock*>(s.content);
    if (s.head->bytes < sizeof(SliceBlock) || block->width == 0 || block->generation == 0) return;
    const std::uint64_t room = (s.head->bytes - sizeof(SliceBlock)) / sizeof(SliceEntry);
    if (block->count.load(std::memory_order_relaxed) <= room) blocks[s.head->number].push_back(block);
  });
  std::vector<Sliced> slices;
  each(Kind::thread, [&](const Segment& s) {
    if (s.head->bytes < sizeof(Thread)) return;
    const Thread& thread = *reinterpret_cast<const Thread*>(s.content);
    const Cell overflow = copy_of<Cell>(&thread.table.overflow);
    counted_.lost += overflow.calls;
    if (overflow.calls != 0) take_cell(overflow, s.head->number);
    take_position(thread);
    slices.push_back(slices_of(blocks[s.head->number], totals[s.head->number], thread.slices));
  });
  counted_.slices = added_up(slices);
  for (SliceEntry& entry : counted_.slices.entries) {
    if (comm_of_key(entry.key) >= comms_.size()) entry.key &= ~(Key{max_comm} << 37);
  }
  // A cell may be of a communicator whose journal entry was never finished.
  Cells known;
  for (const auto& [key, cell] : counted_.cells) {
    Cell moved = cell;
    if (comm_of_key(cell.key) >= comms_.size()) moved.key = cell.key & ~(Key{max_comm} << 37);
    add_cell_to(known, moved);
  }
  counted_.cells = std::move(known);
  for (const CommRecord& record : comms_) counted_.comms.push_back(&record);
  counted_.place = [this](Site site) {
    const auto found = sites_.find(site);
    return found == sites_.end() ? SiteFacts{"", "", site} : found->second;
  };

  RankFacts& facts = counted_.facts;
  const TickScale& scale = counted_.scale;
  facts.rank = job_.rank;
  facts.node = job_.node;
  facts.pid = static_cast<int>(process_.pid);
  facts.cpus = job_.cpus;
  facts.init_ns = scale.ns(job_.init);
  facts.app_ns = scale.ns(last_seen_ - job_.started);
  facts.threads = static_cast<int>(std::max<std::size_t>(totals.size(), 1));
  facts.own_init_ns = scale.ns(job_.own_init);
  facts.own_call_ns = scale.ns(job_.own_call);
  facts.state = name_of(state_, is_running_);
  facts.coverage = written({});
  return true;
}

// Stops at what is garbled: what stands before it counts.
bool Reader::read_journal(const char* begin, std::uint64_t bytes) {
  using journal::Entry;
  using journal::EntryHead;
  for (std::uint64_t at = 0; at + sizeof(EntryHead) <= bytes;) {
    const auto head = copy_of<EntryHead>(begin + at);
    at += sizeof head;
    if (head.bytes > bytes - at) return false;
    WireReader in(begin + at, head.bytes);
    at += head.bytes;
    if (head.entry == Entry::job) {
      journal::JobEntry job;
      if (!journal::read(in, job)) return false;
      job_ = std::move(job);
    } else if (head.entry == Entry::comm) {
      CommRecord record;
      if (!journal::read(in, record) || record.view.index != comms_.size()) return false;
      if (record.parent >= comms_.size()) record.parent = 0;
      comms_.push_back(std::move(record));
    } else if (head.entry == Entry::site) {
      journal::SiteEntry site;
      if (!journal::read(in, site)) return false;
      sites_[site.site] = {site.module, site.build_id, site.offset};
    } else {
      return false;
    }
  }
  return true;
}

void Reader::take_states(const CommState* states, std::uint64_t n, std::uint32_t first) {
  for (std::uint64_t i = 0; i < n && first + i < comms_.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(first + i);
    const CommState& state = states[i];
    CommRecord& record = comms_[index];
    record.freed = state.freed.load(std::memory_order_relaxed);
    record.communicators = std::max(state.communicators.load(std::memory_order_relaxed), 1u);
    record.user_name = text_of(state.user_name, sizeof state.user_name);
    const std::uint64_t handle = state.handle.load(std::memory_order_relaxed);
    if (handle != 0 && record.freed == 0) handles_[handle] = index;
  }
}

void Reader::take_position(const Thread& thread) {
  const Doing doing = copy_of<Doing>(&thread.doing);
  if (doing.since == 0) return;  // not a single call
  Position position;
  position.thread = static_cast<int>(thread.number);
  position.inside = copy_of<char*>(&thread.outermost) != nullptr;
  position.op = doing.op < std::size(op_facts) ? doing.op : 0;
  position.site = doing.site;
  position.since = doing.since;
  last_seen_ = std::max(last_seen_, doing.since);
  if (doing.what == Doing::index) {
    position.comm = static_cast<std::uint32_t>(doing.where);
  } else if (doing.what == Doing::handle) {
    const auto found = handles_.find(doing.where);
    position.comm = found == handles_.end() ? 0 : found->second;
  }
  if (position.comm >= comms_.size()) position.comm = 0;
  counted_.positions.push_back(position);
}

}  // namespace commlens::arena
