// SPDX-License-Identifier: Apache-2.0
#include "core/recover/read.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/arena/arena.h"
#include "core/base/signals.h"
#include "core/base/wire.h"
#include "core/collect/part.h"
#include "core/hot/thread.h"
#include "core/process/coverage.h"
#include "core/process/settings.h"
#include "core/recover/segments.h"
#include "core/recover/slices.h"
#include "core/state/sums.h"
#include "generated/procedures.h"

namespace commlens::arena {
namespace {

std::string text_of(const char* text, std::size_t bytes) { return {text, strnlen(text, bytes)}; }

// The longest entries are command lines, which the kernel limits to 6 MiB.
constexpr std::uint64_t most_entry_bytes = 8 << 20;

// Peers have slices with widths of their own; as SliceRows::max_doublings (collect/package.h).
constexpr std::uint32_t most_doublings = 34;

bool is_counted(const Cell& cell) {
  return cell.calls < beyond_all && cell.time < beyond_all && cell.time_min < beyond_all &&
         cell.time_max < beyond_all && cell.bytes_sent < beyond_all && cell.bytes_received < beyond_all;
}

}  // namespace

std::string name_of(std::uint32_t state, Liveness liveness) {
  if (state >= static_cast<std::uint32_t>(State::signal)) {
    const char* const name = name_of_signal(static_cast<int>(state - static_cast<std::uint32_t>(State::signal)));
    return name == nullptr ? "signal" : std::string("SIG") + name;
  }
  switch (static_cast<State>(state)) {
    case State::finalized: return "finalized";
    case State::exited: return "exited";
    case State::aborted: return "aborted";
    default: return liveness == Liveness::gone ? "ended" : "running";
  }
}

std::string Reader::notice() const {
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (missing_ != 0) {
    add("cut short: " + std::to_string(present_) + " of " + std::to_string(present_ + missing_) +
        " bytes are present; these are used");
  }
  if (is_damaged_) add("damaged: its invalid entries are left out");
  if (is_full_) add("its folder was full: some counts of its process are missing");
  return text;
}

// Takes the process from the file name of an arena that cannot be read.  Otherwise users could not see that its process
// is gone, and the file would stay in memory forever.  pre: the file system is in memory, so the file is of this
// machine and this boot.
void Reader::take_process_from(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string prefix = file_prefix();
  if (name.compare(0, prefix.size(), prefix) != 0 || name == file_name(process_)) return;
  process_ = this_process();
  char* end = nullptr;
  process_.pid = std::strtoll(name.c_str() + prefix.size(), &end, 10);
  for (std::uint64_t* const number : {&process_.start_time, &process_.namespaces.pid})
    *number = *end == '-' ? std::strtoull(end + 1, &end, 10) : 0;
  is_of_this_boot_ = file_name(process_) == name;
  liveness_ = is_of_this_boot_ ? liveness_of(process_, true) : Liveness::unknown;
}

bool Reader::read(const std::string& path) {
  bool is_read = false;
  try {
    is_read = open(path) && (!package_.empty() || read_content(input_.content()));
  } catch (const std::exception&) {  // bad_alloc, length_error
    error = "no memory to read it";
  }
  input_.unload();
  if (is_read) return true;
  error = path + ": " + error;
  if (input_.is_in_memory() && input_.is_own()) take_process_from(path);
  return false;
}

// Checks the header before it reads anything else, so that a file that is no arena costs nothing, however large it is.
bool Reader::open(const std::string& path) {
  const auto failed = [this](const char* what) {
    error = what;
    return false;
  };
  if (!input_.open(path)) return failed(input_.error.c_str());
  alignas(Header) char head[sizeof(Header)];
  const std::uint64_t size = input_.size();
  const std::size_t present = input_.read_at(head, sizeof head, 0);
  if (std::string_view(head, std::min(present, part_magic.size())) == part_magic) {
    return take_part() || failed("a damaged part, or one of another version of commlens");
  }
  if (size < header_bytes || present < sizeof head) return failed("too short for an arena");
  const Header& header = *reinterpret_cast<const Header*>(head);
  if (const char* const fault = fault_of(header)) return failed(fault);
  if (size > most_bytes) return failed("larger than any arena");
  is_copy_ = path.substr(path.rfind('/') + 1) != file_name(header.process);
  // The rest of the last chunk is unused.  A running process may have begun another chunk meanwhile.
  const std::uint64_t used = header.used.load(std::memory_order_relaxed);
  const std::uint64_t wanted = used < header_bytes || used > size ? size : std::min(size, used + largest_chunk);
  if (!input_.load(wanted)) return failed("no memory to read it");
  if (input_.content().size < header_bytes) return failed("too short for an arena");
  process_ = reinterpret_cast<const Header*>(input_.content().bytes)->process;
  liveness_ = liveness_of(process_, input_.is_in_memory());
  is_of_this_boot_ = arena::is_of_this_boot(process_);
  return true;
}

// Reads the part of a process that has ended, of a job that may still run.
bool Reader::take_part() {
  if (!input_.load(std::min(input_.size(), most_bytes))) return false;
  std::optional<Part> part = read_part(input_.content().bytes, input_.content().size);
  if (!part) return false;
  package_.assign(part->package, part->package + part->bytes);
  job_.rank = part->head.rank;
  job_.size = part->head.ranks;
  job_.launch = part->head.launch;
  job_.node = part->head.node;
  job_.output = part->head.output;
  job_.meta = std::move(part->head.meta);
  process_.pid = part->head.pid;
  liveness_ = Liveness::gone;
  counted_.facts.rank = job_.rank;
  counted_.facts.node = job_.node;
  counted_.facts.pid = part->head.pid;
  counted_.facts.world = part->head.world;
  counted_.facts.app_ns = part->head.app_ns;
  return true;
}

bool Reader::read_content(const Content& content) {
  const Header& header = *reinterpret_cast<const Header*>(content.bytes);
  process_ = header.process;
  state_ = header.state.load(std::memory_order_relaxed);
  is_full_ = header.is_full.load(std::memory_order_relaxed) != 0;
  const std::uint64_t stated_end = header.used.load(std::memory_order_relaxed);
  present_ = content.size;
  // The arena of a running process may have grown since open() read its size.
  if (liveness_ == Liveness::gone && stated_end > content.size) missing_ = stated_end - content.size;
  if (stated_end < header_bytes || stated_end % alignment != 0 || stated_end > most_bytes) {
    is_damaged_ = true;
    missing_ = 0;
  }
  Segments segments(content, stated_end);
  is_damaged_ = is_damaged_ || segments.is_damaged;
  // If journal entries are lost, the places of their communicators stay empty.  This limits their number to that of the
  // entries the file can hold.
  most_comms_ = content.data_bytes() / sizeof(journal::EntryHead);
  comms_.emplace_back();  // "no communicator"; the journal has the others
  job_.rank = -1;
  segments.each(Kind::journal, [&](const Segments::Segment& s) {
    const std::uint64_t filled = s.head->filled.load(std::memory_order_relaxed);
    is_damaged_ = is_damaged_ || filled > s.head->bytes;
    read_journal(segments.content(s), std::min(filled, s.head->bytes));
  });
  if (job_.rank < 0) {
    error = is_damaged_     ? "damaged: it does not name its process"
            : missing_ != 0 ? "cut short: " + std::to_string(content.size) + " of " + std::to_string(stated_end) +
                                  " bytes are present"
                            : "its process was still in MPI_Init";
    return false;
  }
  std::uint64_t first = 0;
  segments.each(Kind::comms, [&](const Segments::Segment& s) {
    const std::uint64_t n = s.head->bytes / sizeof(CommState);
    take_states(reinterpret_cast<const CommState*>(segments.content(s)), n, first);
    first += n;
  });
  take_clocks(header);
  find_uncleared(segments, header.clears.load(std::memory_order_relaxed));
  segments.leave_out(uncleared_);
  take_owners(segments);
  take_cells(segments);
  take_regions(segments);
  take_series(segments);
  take_events(segments);
  take_peers(segments);
  take_samples(segments);
  take_messages(segments);
  take_threads(segments);
  for (const CommRecord& record : comms_) counted_.comms.push_back(&record);
  counted_.place = [this](Site site) { return place_of(site); };
  counted_.caller = [this](Site site) {
    const auto found = callers_.find(site);
    return found == callers_.end() ? 0 : found->second;
  };
  take_facts();
  return true;
}

// Determines the length of a tick and the time until which the process was seen.  On the machine and in the boot where
// the process ran, the clock still runs: a reading taken now gives a longer, and so more exact, interval.
void Reader::take_clocks(const Header& header) {
  clock_is_tsc = header.clock_is_tsc != 0;
  Reading last = header.last;
  if (is_of_this_boot_) {
    last = reading();
    const auto ahead = static_cast<std::uint64_t>(clock_ahead(process_));
    last.ns += ahead;
    if (!clock_is_tsc) last.ticks += ahead;
  }
  if (clock_is_tsc) counted_.scale = TickScale::between(header.first, last);
  constexpr Ticks second = 1'000'000'000;
  if (counted_.scale.ns(second) < second / 100 || counted_.scale.ns(second) > second * 100) {
    is_damaged_ = true;
    counted_.scale = {};
  }
  counted_.started = job_.started;
  // A copy ends at the time when it was made, even if its process still runs.
  last_seen_ = std::max(liveness_ == Liveness::running && !is_copy_ ? last.ticks : header.last.ticks, job_.started);
  if (last_seen_ >= beyond_all) {
    is_damaged_ = true;
    last_seen_ = job_.started;
  }
  paused_before_ = header.paused_before.load(std::memory_order_relaxed);
  pause_changes_ = header.pause_changes.load(std::memory_order_relaxed);
  held_ = header.held.load(std::memory_order_relaxed);
  forgotten_ = header.forgotten.load(std::memory_order_relaxed);
  for (Ticks* const time : {&paused_before_, &held_, &forgotten_}) {
    if (*time < beyond_all) continue;
    is_damaged_ = true;
    *time = 0;
  }
}

void Reader::take_cell(Cell cell, std::uint32_t thread) {
  if (!is_reported(cell)) return;
  // Cells never have the key of a region; only slices have.
  const bool is_of_untimed = is_untimed(cell.key);
  cell.key = is_of_region(cell.key) ? 0 : known(timed_key(cell.key));
  if (cell.key == 0 || !is_counted(cell)) {
    is_damaged_ = true;
    return;
  }
  if (is_of_untimed) cell.key = untimed_key(cell.key);
  if (datatypes_of(cell.site) >= counted_.datatypes.combinations.size()) {
    is_damaged_ = true;
    cell.site = without_datatypes(cell.site);
  }
  add_cell_to(counted_, thread_of(thread), cell);
  add_counters(totals_[thread][slice_key(cell.key)], cell);
}

void Reader::take_cells(const Segments& segments) {
  segments.each_in<Cell>(Kind::cells,
                         [this](const Cell& cell, const Segments::Segment& s) { take_cell(cell, s.head->number); });
}

void Reader::take_peers(const Segments& segments) {
  segments.each_in<PeerCell>(Kind::peers, [this](PeerCell cell, const Segments::Segment&) {
    if (cell.messages == 0) return;
    const bool is_right = cell.key >> 63 != 0 && flow_of(cell.key) < Flow::count && bin_of_peer(cell.key) <= 64 &&
                          call_of_peer(cell.site) <= 65 && op_of_peer(cell.key) < std::size(op_facts) &&
                          slice_of_peer(cell.key) >> slice_bits < most_doublings &&
                          is_region(region_of_peer(cell.site)) && cell.messages < beyond_all &&
                          cell.bytes < beyond_all && cell.world >= of_another_world;
    if (!is_right) {
      is_damaged_ = true;
      return;
    }
    if (!is_comm(comm_of_peer(cell.key))) cell.key &= ~(PeerKey{max_comm} << 27);
    add_peer_to(counted_.peers, cell);
  });
}

void Reader::take_threads(const Segments& segments) {
  using Segment = Segments::Segment;
  // By thread number.  A thread that occurs twice would count its data twice.
  std::map<std::uint32_t, const Regions*> stacks;
  segments.each(Kind::stack, [&](const Segment& s) {
    if (s.head->bytes >= sizeof(Regions))
      stacks[s.head->number] = reinterpret_cast<const Regions*>(segments.content(s));
  });
  std::map<std::uint32_t, Blocks> blocks;
  segments.each(Kind::slices, [&](const Segment& s) {
    const auto* const block = reinterpret_cast<const SliceBlock*>(segments.content(s));
    const bool has_head = s.head->bytes >= sizeof(SliceBlock);
    if (has_head && block->generation == 0) return;  // reserved for later slices
    const std::uint64_t room = has_head ? (s.head->bytes - sizeof(SliceBlock)) / sizeof(SliceEntry) : 0;
    if (room != 0 && is_slice_width(block->width) && block->count.load(std::memory_order_relaxed) <= room) {
      blocks[s.head->number].emplace_back(s.at + sizeof(SliceBlock), block);
    } else {
      is_damaged_ = true;
    }
  });
  std::map<std::uint32_t, const Thread*> threads;
  segments.each(Kind::thread, [&](const Segment& s) {
    const bool has_room = s.head->bytes >= sizeof(Thread);
    const auto* const thread = reinterpret_cast<const Thread*>(segments.content(s));
    if (!has_room || !threads.try_emplace(s.head->number, thread).second) is_damaged_ = true;
  });
  // The end of the process is not recorded.  The last actions of its threads give the time until which it existed.
  const auto was_there = [this](Ticks t) {
    if (t < beyond_all) last_seen_ = std::max(last_seen_, t);
  };
  for (const auto& [number, thread] : threads) {
    was_there(copy_of<Ticks>(&thread->current.since));
    was_there(copy_of<Ticks>(&thread->slices.logged_until));
  }
  for (const auto& [number, stack] : stacks) was_there(copy_of<Ticks>(&stack->last));
  std::vector<SliceLogContent> slices;
  for (const auto& [number, thread] : threads) {
    const auto stack = stacks.find(number);
    take_thread(number, *thread, stack == stacks.end() ? nullptr : stack->second);
    slices.push_back(take_slices(segments, blocks[number], number, copy_of<SliceLog>(&thread->slices)));
  }
  counted_.slices = added_up(slices);
  std::vector<SliceEntry>& entries = counted_.slices.entries;
  for (SliceEntry& entry : entries) entry.key = known(entry.key);
  entries.erase(std::remove_if(entries.begin(), entries.end(), [](const SliceEntry& e) { return e.key == 0; }),
                entries.end());
}

// Returns the slices of a thread.  Divides the time of the call and of the region that were in progress at the end
// among the slices after the current one, as the thread itself does when they end.
SliceLogContent Reader::take_slices(const Segments& segments, const Blocks& blocks, std::uint32_t number,
                                    const SliceLog& log) {
  const Ticks last = is_paused(pause_changes_) ? held_ + paused_before_ : last_seen_;
  const Ticks end = last > job_.started ? last - job_.started : 0;
  std::map<Key, SliceEntry>& totals = totals_[number];
  const RunningRegion& region = running_[number];
  Ticks after = std::min(after_current(log, end), region.time);
  if (after != 0) {
    Ticks& all = totals[region.key].time;
    after = std::min(after, all);
    all -= after;
  }
  SliceLogContent sliced = slices_of(segments, blocks, totals, log, is_damaged_);
  cover(sliced, end);
  if ((log.slot & slices_ended) != 0) return sliced;
  if (after != 0) spread(sliced, region.key, after, end);
  for (const OpenCall& call : open_calls_) {
    if (call.thread == number) spread(sliced, slice_key(call.key), call.time, end);
  }
  return sliced;
}

void Reader::take_thread(std::uint32_t number, const Thread& thread, const Regions* stack) {
  const bool is_cleared = uncleared_.count(number) == 0;
  const Cell overflow = is_cleared ? copy_of<Cell>(&thread.table.overflow) : Cell{};
  if (overflow.calls < beyond_all) counted_.lost += overflow.calls;
  if (overflow.calls != 0) take_cell(overflow, number);
  std::vector<Frame> frames = frames_of(stack);
  if (!is_cleared) clear(frames, copy_of<Ticks>(&thread.mpi));
  const auto inner = static_cast<std::uint32_t>(frames.size() - 1);
  const Ticks end = counted_until(last_seen_);
  const Ticks open = take_position(number, thread, frames.back().region);
  const Ticks mpi = copy_of<Ticks>(&thread.mpi) + open;
  counted_.regions.add_open(frames.data(), inner, mpi, end, pause_changes_);
  CountedThread* const own = thread_of(number);
  if (own != nullptr) own->regions.add_open(frames.data(), inner, mpi, end, pause_changes_);
  each_open(frames.data(), inner, end,
            [&](std::uint32_t region, Ticks time) { totals_[number][region_slice_key(region)].time += time; });
  std::uint32_t depth = inner;
  while (depth > 0 && frames[depth].key == 0) --depth;
  if (depth == 0) return;
  const Frame& innermost = frames[depth];
  const Ticks spent = time_in(innermost.start, end, innermost.nested);
  running_[number] = {region_slice_key(innermost.region), spent - std::min(spent, innermost.nested)};
}

void Reader::take_facts() {
  RankFacts& facts = counted_.facts;
  const TickScale& scale = counted_.scale;
  facts.rank = job_.rank;
  facts.node = job_.node;
  facts.machine = process_.boot[0] ^ process_.boot[1];
  facts.pid = static_cast<int>(process_.pid);
  facts.cpus = job_.cpus;
  facts.init_ns = scale.ns(job_.init);
  const Ticks from = std::max(job_.counted_start, forgotten_);
  const Ticks until = counted_until(last_seen_);
  facts.app_ns = scale.ns(until > from ? until - from : 0);
  facts.threads = static_cast<int>(std::max<std::size_t>(totals_.size(), 1));
  facts.own_init_ns = scale.ns(job_.own_init);
  facts.own_call_ns = scale.ns(job_.own_call);
  facts.state = name_of(state_, liveness_);
  facts.coverage = written(std::vector<ImportCoverage>{});
  std::vector<Setting> settings;
  if (read_settings(job_.settings, settings)) facts.settings = job_.settings;
}

bool Reader::is_comm(std::uint32_t index) const {
  return index < comms_.size() && (index == 0 || comms_[index].kind != CommKind::none);
}

// Returns the key without parts that are missing: the journal entry of a cell's communicator may be incomplete.
// Returns 0 if the key is invalid.
Key Reader::known(Key key) {
  if (is_of_region(key)) {
    const bool is_right = is_region(region_of_key(key));
    is_damaged_ = is_damaged_ || !is_right;
    return is_right ? region_slice_key(region_of_key(key)) : 0;
  }
  const bool is_bin = bin_of_key(key) <= 64 || bin_of_key(key) >= null_bin;
  if (key >> 63 == 0 || op_of_key(key) >= std::size(op_facts) || !is_bin) {
    is_damaged_ = true;
    return 0;
  }
  if (!is_comm(comm_of_key(key))) key &= ~(Key{max_comm} << 37);
  return is_region(region_of_key(key)) ? key : key & ~Key{max_region};
}

bool Reader::is_place(RegionKey key) { return key >> 63 != 0 && is_region(region_of(key)); }

// A profile identifies regions by parent, kind and name, so no two of a process may be equal.
bool Reader::add_region(journal::RegionEntry entry) {
  std::vector<RegionFacts>& names = counted_.regions.names;
  if (entry.number < names.size() || entry.number > most_regions) return false;
  const auto is_new = [this](const RegionFacts& region) {
    return known_regions_.emplace(region.parent, region.kind, region.name).second;
  };
  // If earlier entries are lost, so are their names: invents names for them.
  while (names.size() < entry.number) {
    RegionFacts lost{0, RegionKind::region, "?" + std::to_string(names.size())};
    while (!is_new(lost)) lost.name += "?";
    names.push_back(std::move(lost));
  }
  if (!is_new(entry.facts)) return false;
  names.push_back(std::move(entry.facts));
  return true;
}

bool Reader::add_metric(journal::MetricEntry entry) {
  std::vector<MetricFacts>& metrics = counted_.regions.metrics;
  if (entry.number < metrics.size() || entry.number > most_metrics) return false;
  const auto is_new = [this](const MetricFacts& metric) {
    return known_metrics_.emplace(metric.name, metric.unit).second;
  };
  while (metrics.size() < entry.number) {
    MetricFacts lost{"?" + std::to_string(metrics.size()), ""};
    while (!is_new(lost)) lost.name += "?";
    metrics.push_back(std::move(lost));
  }
  if (!is_new(entry.facts)) return false;
  metrics.push_back(std::move(entry.facts));
  return true;
}

// If earlier entries are lost, their places stay empty, because cells refer to communicators by index.
bool Reader::add_comm(CommRecord record) {
  if (record.view.index < comms_.size() || record.view.index > std::min<std::uint64_t>(max_comm, most_comms_)) {
    return false;
  }
  // The letter becomes part of a name, which may be printed anywhere.
  const bool is_letter = record.letter > ' ' && record.letter < 0x7f;
  constexpr int most = 1 << 30;  // processes; sums of ranks do not overflow
  const auto is_size = [](int n) { return n >= -1 && n <= most; };
  if (!is_letter || record.op >= std::size(op_facts) || !is_size(record.view.rank) || !is_size(record.view.size) ||
      !is_size(record.remote_size) || record.leader < -2) {
    return false;
  }
  while (comms_.size() < record.view.index) comms_.emplace_back();
  if (!is_comm(record.parent)) record.parent = 0;
  const auto is_lost = [this](std::uint32_t member) {
    return !is_comm(member) || comms_[member].kind == CommKind::set;
  };
  record.members.erase(std::remove_if(record.members.begin(), record.members.end(), is_lost), record.members.end());
  comms_.push_back(std::move(record));
  return true;
}

// Reads the journal and skips garbled entries.
void Reader::read_journal(const char* begin, std::uint64_t bytes) {
  using journal::Entry;
  using journal::EntryHead;
  for (std::uint64_t at = 0; at + sizeof(EntryHead) <= bytes;) {
    const auto head = copy_of<EntryHead>(begin + at);
    at += sizeof head;
    const bool is_there = head.bytes != 0 || head.check != 0;
    if (!is_there || head.bytes > bytes - at) {
      is_damaged_ = true;
      return;
    }
    WireReader in(begin + at, head.bytes);
    bool is_right =
        head.bytes <= most_entry_bytes && journal::check_of(head.entry, begin + at, head.bytes) == head.check;
    at += head.bytes;
    if (is_right && head.entry == Entry::job) {
      journal::JobEntry job;
      is_right = journal::read(in, job) && job.rank >= 0 && job.rank < job.size;
      if (is_right) job_ = std::move(job);
    } else if (is_right && head.entry == Entry::comm) {
      CommRecord record;
      is_right = journal::read(in, record) && add_comm(std::move(record));
    } else if (is_right && head.entry == Entry::site) {
      journal::SiteEntry site;
      is_right = journal::read(in, site);
      if (is_right) callers_[site.site] = site.caller;
      if (is_right) sites_[site.site] = std::move(site.facts);
    } else if (is_right && head.entry == Entry::module) {
      journal::ModuleEntry module;
      is_right = journal::read(in, module);
      if (is_right) modules_.push_back(std::move(module));
    } else if (is_right && head.entry == Entry::region) {
      journal::RegionEntry region;
      is_right = journal::read(in, region) && add_region(std::move(region));
    } else if (is_right && head.entry == Entry::metric) {
      journal::MetricEntry metric;
      is_right = journal::read(in, metric) && add_metric(std::move(metric));
    } else if (is_right && head.entry == Entry::datatype) {
      journal::DatatypeEntry datatype;
      is_right = journal::read(in, datatype) && add_datatype(std::move(datatype));
    } else if (is_right && head.entry == Entry::combination) {
      journal::CombinationEntry combination;
      is_right = journal::read(in, combination) && add_combination(combination);
    } else if (is_right && head.entry == Entry::tag) {
      TagFacts tag;
      is_right = journal::read(in, tag);
      if (is_right && is_region(tag.region)) counted_.regions.tags.push_back(std::move(tag));
    }
    is_damaged_ = is_damaged_ || !is_right;
  }
}

void Reader::take_states(const CommState* states, std::uint64_t n, std::uint64_t first) {
  for (std::uint64_t i = 0; i < n && first + i < comms_.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(first + i);
    const CommState& state = states[i];
    CommRecord& record = comms_[index];
    record.freed = state.freed.load(std::memory_order_relaxed);
    record.communicators = std::max(state.communicators.load(std::memory_order_relaxed), 1u);
    if (record.kind != CommKind::set) record.user_name = text_of(state.user_name, sizeof state.user_name);
    const std::uint64_t handle = state.handle.load(std::memory_order_relaxed);
    if (handle != 0 && record.freed == 0) handles_[handle] = index;
  }
}

}  // namespace commlens::arena
