// SPDX-License-Identifier: Apache-2.0
#include "core/base/unwind.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

#include "core/base/memory.h"
#include "core/base/unwind_walk.h"
#include "tests/unit/base/unwind_chain.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

std::string text_of(const Addresses& addresses) {
  std::ostringstream out;
  for (const std::uint64_t address : addresses) out << std::hex << address << " ";
  return out.str();
}

void check_callers(const std::string& name) {
  CHECK_EQ(name + text_of(probed.found()), name + text_of(probed.libgcc));
  CHECK(probed.unwound.frames > 0);
  CHECK(probed.unwound.words >= probed.unwound.frames);
}

void check_whole_chain(const std::string& name) {
  check_callers(name + ": ");
  CHECK(probed.unwound.end == Unwound::outermost);
}

void* chain_in_thread(void*) {
  call_chain({0, 5, 1});
  check_whole_chain("thread");
  return nullptr;
}

ucontext_t main_context, coroutine_context;

void coroutine() {
  call_chain({1, 3, 5});
  check_callers("coroutine: ");
}

void on_signal(int) {
  at_probe = [] { CHECK(are_unchanged(probed.words, probed.unwound.words)); };
  call_chain({5, 0});
  at_probe = nullptr;
}

}  // namespace

TEST(each_kind_of_frame_has_the_callers_that_libgcc_finds) {
  for (int kind = 0; kind < frame_kinds; ++kind) {
    for (int other = 0; other < frame_kinds; ++other) {
      call_chain({kind, other, kind});
      check_whole_chain("kinds " + std::to_string(kind) + " and " + std::to_string(other));
    }
  }
}

TEST(callers_are_those_that_backtrace_of_glibc_finds) {
  static Addresses glibc;
  at_probe = [] { glibc = glibc_addresses(); };
  call_chain({5, 3, qsort_kind, 1, 9});
  at_probe = nullptr;
  check_whole_chain("backtrace");
  CHECK(glibc.size() > probed.libgcc.size());  // begins with the functions that probe() has called
  glibc.erase(glibc.begin(), glibc.end() - probed.unwound.frames);
  CHECK_EQ(text_of(probed.found()), text_of(glibc));
}

TEST(unwinding_stops_at_the_number_of_callers_asked_for) {
  for (depth_asked = 0; depth_asked <= 5; ++depth_asked) {
    call_chain({5, 3, 1, 2, 0});
    CHECK_EQ(probed.unwound.frames, depth_asked);
    CHECK(probed.unwound.end == Unwound::full);
    CHECK_EQ(text_of(probed.found()), text_of(probed.expected(depth_asked)));
  }
  depth_asked = Probed::most_returns;
}

TEST(a_thread_ends_at_its_first_function) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, nullptr, chain_in_thread, nullptr), 0);
  pthread_join(thread, nullptr);
}

// The function returns to the first instruction of __start_context(), of which glibc's tables describe the inside only:
// the end is a cut.
TEST(a_coroutine_is_unwound_up_to_its_first_function) {
  constexpr std::size_t bytes = 256 * 1024;
  getcontext(&coroutine_context);
  coroutine_context.uc_stack.ss_sp = map_memory(bytes);
  coroutine_context.uc_stack.ss_size = bytes;
  coroutine_context.uc_link = &main_context;
  makecontext(&coroutine_context, coroutine, 0);
  probed.unwound.frames = 0;
  swapcontext(&main_context, &coroutine_context);
  CHECK(probed.unwound.frames > 3);
  CHECK(probed.unwound.end != Unwound::full);
  unmap_memory(coroutine_context.uc_stack.ss_sp, bytes);
}

TEST(a_signal_handler_is_unwound_up_to_the_signal_frame) {
  struct sigaction action{}, before{};
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  CHECK(probed.unwound.end == Unwound::cut);
  CHECK(probed.unwound.frames >= 7);  // twice next() and function, next(), call_chain(), on_signal()
  CHECK_EQ(text_of(probed.found()), text_of(probed.expected()));
}

TEST(tables_found_by_iteration_give_the_same_callers) {
  static Addresses returns;
  static Unwound unwound;
  at_probe = [] {
    StackWord words[Probed::most_words];
    returns.resize(Probed::most_returns);
    unwound = unwind_by(find_tables_by_iteration, probed.frame, returns.data(), Probed::most_returns, words,
                        Probed::most_words);
  };
  call_chain({5, 3, qsort_kind, 1});
  at_probe = nullptr;
  returns.resize(static_cast<std::size_t>(unwound.frames));
  CHECK_EQ(text_of(returns), text_of(probed.libgcc));
  CHECK(unwound.end == Unwound::outermost);
}

TEST(both_ways_to_find_tables_find_the_same_ones_and_none_outside_objects) {
  const void* const addresses[] = {reinterpret_cast<void*>(call_chain), reinterpret_cast<void*>(qsort),
                                   reinterpret_cast<void*>(find_tables)};
  for (const void* const address : addresses) {
    UnwindTables a, b;
    CHECK(find_tables(reinterpret_cast<std::uint64_t>(address), a));
    CHECK(find_tables_by_iteration(reinterpret_cast<std::uint64_t>(address), b));
    CHECK_EQ(static_cast<const void*>(a.header), static_cast<const void*>(b.header));
    CHECK_EQ(static_cast<const void*>(a.begin), static_cast<const void*>(b.begin));
    CHECK_EQ(static_cast<const void*>(a.end), static_cast<const void*>(b.end));
    CHECK(a.begin <= a.header && a.header < a.end);
  }
  UnwindTables none;
  CHECK(!find_tables(reinterpret_cast<std::uint64_t>(&none), none));
  CHECK(!find_tables_by_iteration(reinterpret_cast<std::uint64_t>(&none), none));
  CHECK(!find_tables(0, none));
}

TEST(a_stack_that_cannot_be_read_has_no_callers) {
  call_chain({0});
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = map_memory(page);
  mprotect(memory, page, PROT_NONE);
  StackFrame frame = probed.frame;
  frame.sp = frame.fp = reinterpret_cast<std::uint64_t>(memory) + 256;
  const Unwound found = unwind(frame, probed.returns, 4, probed.words, Probed::most_words);
  unmap_memory(memory, page);
  CHECK_EQ(found.frames, 0);
  CHECK_EQ(found.words, 0);
  CHECK(!found.uses_fp);
  CHECK(found.end == Unwound::cut);
}

TEST(words_below_the_end_of_the_stack_are_read_directly_with_the_same_result) {
  at_probe = [] {
    // All words, some of them, and none are read directly.
    for (const std::uint64_t bytes : {std::uint64_t{1} << 16, std::uint64_t{96}, std::uint64_t{0}}) {
      StackFrame frame = probed.frame;
      frame.stack_end = frame.sp + bytes;
      std::uint64_t returns[Probed::most_returns];
      StackWord words[Probed::most_words];
      const Unwound found = unwind(frame, returns, 8, words, Probed::most_words);
      CHECK_EQ(found.frames, 8);
      CHECK_EQ(text_of({returns, returns + 8}), text_of(probed.expected(8)));
      CHECK(are_unchanged(words, found.words));
      for (int i = 0; i < found.words; ++i) CHECK(words[i].at == probed.words[i].at);
    }
  };
  call_chain({5, 3, 6, 1, 0, 2, 4, 1});
  at_probe = nullptr;
}

// As wrong tables give, which lead to a word that is no return address.
namespace {

struct Record {
  const void* at;
  std::uint64_t return_address;
};

// Its caller's frame has room for the record, which is left as it was.
__attribute__((noinline)) Record record_of_ended_function() {
  return {__builtin_frame_address(0), reinterpret_cast<std::uint64_t>(__builtin_return_address(0))};
}

__attribute__((noinline)) FoundCaller found_from_below(Record record, StackWord* words, int most) {
  StackFrame here;
  commlens_test_capture(&here);
  const FoundCaller found = find_caller(here, record.at, record.return_address, words, most);
  CHECK(are_unchanged(words, found.words));
  return found;
}

// How many words there may be makes no difference; those that are stored have the values that decide.
Caller seen_from_below(Record record) {
  constexpr int most = 100;
  StackWord words[most];
  const FoundCaller found = found_from_below(record, words, most);
  CHECK(found.words > 0 || found.caller != Caller::is_one);
  for (const int few : {0, 1, 2}) {
    const FoundCaller again = found_from_below(record, words, few);
    CHECK(again.caller == found.caller);
    CHECK(again.words <= few);
  }
  return found.caller;
}

__attribute__((noinline)) Caller seen_from_far_below(Record record) {
  char volatile room[8192];
  room[0] = 0;
  const Caller seen = seen_from_below(record);
  room[1] = 1;
  return seen;
}

Caller seen_on_other_stack = Caller::unknown;
Record in_main_context;

void look_from_coroutine() { seen_on_other_stack = seen_from_below(in_main_context); }

}  // namespace

TEST(a_function_is_a_caller_until_it_has_ended) {
  if (!can_unwind) return;
  const Record own{__builtin_frame_address(0), reinterpret_cast<std::uint64_t>(__builtin_return_address(0))};
  CHECK(seen_from_below(own) == Caller::is_one);
  CHECK(seen_from_far_below(own) == Caller::is_one);
  CHECK(seen_from_below({own.at, own.return_address + 1}) == Caller::is_none);
  CHECK(seen_from_far_below(record_of_ended_function()) == Caller::is_none);
}

TEST(a_function_on_another_stack_is_no_caller) {
  in_main_context = {__builtin_frame_address(0), reinterpret_cast<std::uint64_t>(__builtin_return_address(0))};
  std::vector<char> stack(1 << 16);
  getcontext(&coroutine_context);
  coroutine_context.uc_stack.ss_sp = stack.data();
  coroutine_context.uc_stack.ss_size = stack.size();
  coroutine_context.uc_link = &main_context;
  makecontext(&coroutine_context, look_from_coroutine, 0);
  swapcontext(&main_context, &coroutine_context);
  CHECK(seen_on_other_stack == Caller::unknown);
}

TEST(an_address_on_the_stack_is_no_return_address) {
  at_probe = [] {
    static std::uint64_t stack[256];
    const std::uint64_t from = probed.frame.sp, moved = reinterpret_cast<std::uint64_t>(stack) - from;
    for (std::size_t i = 0; i < std::size(stack); ++i) {
      // The stack ends earlier if the process has few environment variables.
      if (!read_memory(reinterpret_cast<std::uint64_t*>(from) + i, &stack[i], sizeof stack[i])) break;
      if (stack[i] - from < sizeof stack) stack[i] += moved;
    }
    int callers = 0;
    const StackWord* third = probed.words;  // the return address of the third caller
    for (;; ++third) {
      if (third->value == probed.returns[callers] && ++callers == 3) break;
    }
    std::uint64_t& place = stack[third->at - reinterpret_cast<std::uint64_t*>(from)];
    StackFrame frame = probed.frame;
    frame.sp += moved;
    if (frame.fp - from < sizeof stack) frame.fp += moved;
    frame.stack_end = frame.sp + sizeof stack;
    std::uint64_t returns[Probed::most_returns];
    StackWord words[Probed::most_words];
    const auto frames_with = [&](std::uint64_t value) {
      place = value;
      const Unwound found = unwind(frame, returns, 4, words, Probed::most_words);
      CHECK_EQ(text_of({returns, returns + std::min(found.frames, 2)}), text_of(probed.expected(2)));
      return found.frames;
    };
    CHECK_EQ(frames_with(probed.returns[2]), 4);
    for (const std::uint64_t bad : {frame.sp, frame.sp + 8, frame.stack_end - 1}) {
      CHECK_EQ(frames_with(bad), 2);
      CHECK(unwind(frame, returns, 4, words, Probed::most_words).end == Unwound::cut);
    }
    CHECK_EQ(frames_with(frame.stack_end), 3);  // code without tables may lie anywhere else
  };
  call_chain({0, 0, 0, 0, 0});
  at_probe = nullptr;
}

TEST(too_few_words_cut_at_the_last_complete_frame) {
  at_probe = [] {
    const Probed whole = probed;
    std::uint64_t returns[Probed::most_returns];
    int previous = 0;
    for (int most_words = 0; most_words < whole.unwound.words; ++most_words) {
      std::vector<StackWord> words(static_cast<std::size_t>(most_words));
      const Unwound found = unwind(whole.frame, returns, Probed::most_returns, words.data(), most_words);
      CHECK(found.end == Unwound::cut);
      CHECK(found.frames <= most_words && found.frames >= previous && found.words <= most_words);
      CHECK_EQ(text_of({returns, returns + found.frames}), text_of(whole.expected(found.frames)));
      previous = found.frames;
    }
    CHECK(previous >= whole.unwound.frames - 1);
  };
  call_chain({5, 3, 6, 1});
  at_probe = nullptr;
}

namespace {

// The chains remembered by the frame of probe(), as the profiler does.
struct Remembered {
  StackFrame frame;
  Unwound unwound;
  std::vector<StackWord> words;
  Addresses returns;
};

std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<Remembered>> table;  // by sp and pc
int same = 0, wrong = 0, different = 0;

void look_up() {
  auto& candidates = table[{probed.frame.sp, probed.frame.pc}];
  bool is_found = false;
  for (const Remembered& r : candidates) {
    if (r.unwound.uses_fp && r.frame.fp != probed.frame.fp) continue;
    if (!are_unchanged(r.words.data(), r.unwound.words)) {
      ++different;
      continue;
    }
    is_found = true;
    ++same;
    const bool is_complete = r.unwound.end == Unwound::full || r.returns.size() == probed.libgcc.size();
    if (r.returns != probed.expected(r.unwound.frames) || !is_complete) ++wrong;
  }
  const Unwound& now = probed.unwound;
  CHECK(are_unchanged(probed.words, now.words));
  CHECK(probed.found() == probed.expected(now.frames) &&
        now.frames == std::min<int>(depth_asked, probed.libgcc.size()));
  if (!is_found) {
    candidates.push_back({probed.frame, now, {probed.words, probed.words + now.words}, probed.found()});
  }
}

}  // namespace

TEST(equal_words_prove_equal_callers_in_random_chains) {
  std::mt19937 random(4711);
  const int rounds = check::is_slow ? 3000 : 20'000;
  table.clear();
  same = wrong = different = 0;
  at_probe = look_up;
  std::srand(4711);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> kinds(1 + random() % 10);
    const bool is_short = random() % 2 == 0;  // few functions: chains repeat
    for (int& kind : kinds) kind = static_cast<int>(random() % (is_short ? 3 : frame_kinds));
    depth_asked = static_cast<int>(random() % 4 == 0 ? 64 : 12);
    call_chain(kinds);
  }
  at_probe = nullptr;
  depth_asked = Probed::most_returns;
  CHECK_EQ(wrong, 0);
  CHECK(same > rounds / 20);
  CHECK(different > rounds / 20);
}

}  // namespace commlens
