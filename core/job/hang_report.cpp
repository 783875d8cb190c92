// SPDX-License-Identifier: Apache-2.0
// Prints what `commlens hang` shows, for one process and from within that process.  Runs in a signal handler, which may
// interrupt the program anywhere.
#include "core/job/hang_report.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <iterator>

#include "core/arena/arena.h"
#include "core/base/say.h"
#include "core/base/ticks.h"
#include "core/hot/thread.h"
#include "core/state/threads.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

using arena::CommState;

// Appends text to memory of the caller.  Text that does not fit is cut off.
class Text {
 public:
  Text(char* memory, std::size_t bytes) noexcept : begin_(memory), room_(bytes - 1) { *memory = '\0'; }

  Text& operator<<(const char* text) noexcept { return add(text, std::strlen(text)); }
  Text& operator<<(char c) noexcept { return add(&c, 1); }
  Text& operator<<(std::uint64_t number) noexcept {
    char digits[20];
    std::size_t n = 0;
    do {
      digits[sizeof digits - ++n] = static_cast<char>('0' + number % 10);
    } while ((number /= 10) != 0);
    return add(digits + sizeof digits - n, n);
  }
  Text& add(const char* text, std::size_t bytes) noexcept {
    const std::size_t n = std::min(bytes, room_ - size_);
    std::memcpy(begin_ + size_, text, n);
    size_ += n;
    begin_[size_] = '\0';
    return *this;
  }
  void clear() noexcept { begin_[size_ = 0] = '\0'; }
  const char* begin() const noexcept { return begin_; }
  std::size_t size() const noexcept { return size_; }

 private:
  char* begin_;
  std::size_t room_, size_ = 0;
};

const CommState* state_of(const Registry& registry, std::uint32_t index) noexcept {
  const CommState* state = registry.newest_state();
  while (state != nullptr && state->index != index) state = state->previous;
  return state;
}

// Returns the newest communicator with this handle that is not freed, or null.  MPI reuses handles.
const CommState* state_of_handle(const Registry& registry, std::uint64_t handle) noexcept {
  const CommState* state = registry.newest_state();
  while (state != nullptr && (state->handle.load(std::memory_order_relaxed) != handle ||
                              state->freed.load(std::memory_order_relaxed) != 0)) {
    state = state->previous;
  }
  return state;
}

// The parts of a communicator's name.  operator< gives the order of the names inside the name of a communicator set.
struct Name {
  bool is_self;
  std::int64_t count;  // -1: not known
  int leader;          // -1: of another world
  char letter;
  bool is_many;

  bool operator<(const Name& other) const noexcept {
    if (is_self != other.is_self) return other.is_self;
    if (count != other.count) return count < other.count;
    return leader != other.leader ? leader < other.leader : letter < other.letter;
  }
};

Name name_from(const CommState& state, int rank) noexcept {
  Name name{state.letter == letter_self, state.count, state.leader, state.letter, false};
  name.is_many = state.communicators.load(std::memory_order_relaxed) > 1;
  if (state.letter == letter_world) {
    name.leader = 0;
  } else if (state.leader < 0) {
    name.count = -1;
  } else if (state.leader != rank) {
    name.count = arena::count_at(state.leader, state.identity.load(std::memory_order_relaxed));
  }
  return name;
}

void add_name(Text& text, const Name& name) noexcept {
  text << name.letter;
  if (name.leader < 0) {
    text << '?';
  } else {
    text << static_cast<std::uint64_t>(name.leader);
  }
  text << '.';
  if (name.count < 0) {
    text << '?';
  } else {
    text << static_cast<std::uint64_t>(name.count);
  }
  if (name.is_many) text << '+';
}

void add_set(Text& text, const Registry& registry, const CommState& set, int rank) noexcept {
  if (set.count > CommState::most_members) {
    text << '{' << std::uint64_t{set.count} << " communicators}";
    return;
  }
  static Name names[CommState::most_members];  // static: the stack of a signal handler may be small
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < set.count; ++i) {
    const CommState* const member = state_of(registry, set.members[i]);
    if (member != nullptr) names[n++] = name_from(*member, rank);
  }
  std::sort(names, names + n);
  text << '{';
  for (std::size_t i = 0; i < n; ++i) {
    if (i != 0) text << ',';
    add_name(text, names[i]);
  }
  text << (n == 0 ? "*}" : "}");
}

void add_comm(Text& text, const Registry& registry, const CommState& state, int rank) noexcept {
  if (state.is_set) {
    add_set(text, registry, state, rank);
    return;
  }
  add_name(text, name_from(state, rank));
  if (state.user_name[0] == '\0') return;
  text << " '";
  // Control characters become blanks, so that the report stays on one line.
  for (const char* c = state.user_name; c < state.user_name + sizeof state.user_name && *c != '\0'; ++c) {
    text << (static_cast<unsigned char>(*c) < ' ' ? ' ' : *c);
  }
  text << '\'';
}

void add_seconds(Text& text, Ns ns) noexcept {
  const std::uint64_t tenths = (ns + 50'000'000u) / 100'000'000u;
  text << tenths / 10 << '.' << tenths % 10 << " s";
}

// The current call of a thread.  recover/read.cpp reads the same fields, in the same way, from an arena.
struct ThreadState {
  bool is_inside;
  CurrentCall current;
};

bool is_shown(const Thread& thread) noexcept { return thread.current.since != 0 && !thread.has_ended; }

// Copies until `since` has not changed during the copy, at most four times: a call may begin or end meanwhile.
ThreadState state_of_thread(const Thread& thread) noexcept {
  ThreadState thread_state{};
  for (int tries = 0; tries < 4; ++tries) {
    const Ticks since = __atomic_load_n(&thread.current.since, __ATOMIC_ACQUIRE);
    thread_state.is_inside = __atomic_load_n(&thread.outermost, __ATOMIC_RELAXED) != nullptr;
    thread_state.current = thread.current;
    if (__atomic_load_n(&thread.current.since, __ATOMIC_ACQUIRE) == since) break;
  }
  return thread_state;
}

void add_partner(Text& line, const char* preposition, Partner partner) noexcept {
  if (partner.rank == no_partner) return;
  line << preposition;
  if (partner.rank == any_partner) {
    line << "any rank";
  } else if (partner.rank == null_partner) {
    line << "MPI_PROC_NULL";
  } else {
    line << "its rank " << static_cast<std::uint64_t>(partner.rank);
  }
  if (partner.tag == any_partner) {
    line << " with any tag";
  } else if (partner.tag != no_partner) {
    line << " with tag " << static_cast<std::uint64_t>(partner.tag);
  }
}

void add_thread(Text& line, const Registry& registry, const ThreadState& thread_state, const ReportingRank& reporter,
                const TickScale& scale, Ticks report_time) noexcept {
  const CurrentCall& current = thread_state.current;
  const bool is_measured = current.op != op::unknown && current.op < std::size(op_facts);
  const char* const op = is_measured ? op_facts[current.op].name : reporter.unmeasured;
  const CommState* comm = nullptr;
  if (current.comm_by == CurrentCall::handle) {
    comm = state_of_handle(registry, current.comm);
  } else if (current.comm_by == CurrentCall::index && current.comm != 0) {
    comm = state_of(registry, static_cast<std::uint32_t>(current.comm));
  }
  line << (thread_state.is_inside ? "in " : "outside MPI, last in ") << op;
  if (comm != nullptr && comm->index != 0) {
    line << " on ";
    add_comm(line, registry, *comm, reporter.rank);
  }
  if (is_measured) {
    // Ranks are those of the communicator, as in the source code of the application.
    const CallPartners partners = partners_of(current, reporter.constants);
    add_partner(line, " to ", partners.to);
    add_partner(line, " from ", partners.from);
  }
  line << (!thread_state.is_inside ? ", which began " : current.is_untimed != 0 ? " for at most " : " for ");
  add_seconds(line, scale.ns(report_time > current.since ? report_time - current.since : 0));
  if (!thread_state.is_inside) line << " ago";
}

}  // namespace

void name_of_comm(const Registry& registry, std::uint32_t index, int rank, char* text, std::size_t bytes) noexcept {
  Text name(text, bytes);
  const CommState* const state = state_of(registry, index);
  if (state != nullptr) add_comm(name, registry, *state, rank);
}

void print_hang_report(const Registry& registry, const ReportingRank& reporter) noexcept {
  static char line_memory[1024], lines_memory[PIPE_BUF + 1];
  const TickScale scale = TickScale::since_start();
  const Ticks report_time = now();
  Text lines(lines_memory, sizeof lines_memory);
  int shown = 0, numbered = 0;
  std::uint32_t end = 0;
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
    if (!is_shown(*t)) continue;
    ++numbered;
    end = std::max(end, t->number + 1);
  }
  const auto flush = [&] {
    if (lines.size() != 0) say_lines(lines.begin(), lines.size());
    lines.clear();
  };
  const auto begin = [&](Text& line) {
    line << "commlens: ";
    if (reporter.rank >= 0) {
      line << "rank " << static_cast<std::uint64_t>(reporter.rank);
    } else {
      line << "process " << static_cast<std::uint64_t>(getpid());
    }
  };
  for (std::uint32_t number = 0; number < end; ++number) {
    const Thread* t = first_thread();
    while (t != nullptr && t->number != number) t = t->next;
    if (t == nullptr || !is_shown(*t)) continue;
    Text line(line_memory, sizeof line_memory - 1);  // room for the end of the line
    begin(line);
    if (numbered > 1) line << ", thread " << std::uint64_t{t->number};
    line << ": ";
    add_thread(line, registry, state_of_thread(*t), reporter, scale, report_time);
    line_memory[line.size()] = '\n';
    if (lines.size() + line.size() + 1 > PIPE_BUF) flush();
    lines.add(line.begin(), line.size() + 1);
    ++shown;
  }
  if (shown == 0) {
    begin(lines);
    lines << ": outside MPI, no call yet\n";
  }
  flush();
}

}  // namespace commlens
