// SPDX-License-Identifier: Apache-2.0
#include <ucontext.h>

#include <thread>
#include <vector>

#include "core/base/unwind.h"
#include "core/hot/thread.h"
#include "core/state/threads.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

// Lasts for a test.
class ErrorHandlers {
 public:
  ErrorHandlers() { note_error_handler(); }
  ~ErrorHandlers() {
    has_error_handlers = false;
    forget_callers();
  }
  ErrorHandlers(const ErrorHandlers&) = delete;
  ErrorHandlers& operator=(const ErrorHandlers&) = delete;
};

// As the wrapper of an MPI call asks; twice, because the second answer may be a kept one.
__attribute__((noinline)) bool is_inside(const Thread& thread) {
  const auto* const frame = static_cast<const char*>(__builtin_frame_address(0));
  const bool first = thread.is_inside(frame);
  CHECK_EQ(thread.is_inside(frame), first);
  return first;
}

__attribute__((noinline)) bool is_inside_from_deeper(const Thread& thread, int levels) {
  char volatile room[256];
  room[0] = 0;
  const bool is = levels == 0 ? is_inside(thread) : is_inside_from_deeper(thread, levels - 1);
  room[1] = 1;
  return is;
}

// Its room leaves the frame of a call that has ended as it was.
__attribute__((noinline)) bool is_inside_from_room(const Thread& thread) {
  char volatile room[8192];
  room[0] = 0;
  const bool is = is_inside(thread);
  room[1] = 1;
  return is;
}

// An MPI call that calls back, and does not end its own count, as after a jump.
template <class Callback>
__attribute__((noinline)) void call(Thread& thread, Callback callback) {
  thread.enter(static_cast<char*>(__builtin_frame_address(0)));
  callback();
  asm volatile("");
}

void check_calls(Thread& thread) {
  for (int i = 0; i < 3; ++i) {
    call(thread, [&] {
      CHECK(is_inside(thread));
      CHECK(is_inside_from_deeper(thread, 1));
      CHECK(is_inside_from_deeper(thread, 100));  // more words than are kept
      CHECK(is_inside_from_room(thread));
    });
  }
}

Thread* of_fiber;
ucontext_t here, fiber;
bool was_inside;

}  // namespace

TEST(a_call_in_a_callback_is_inside) {
  Thread thread{};
  CHECK(!is_inside(thread));
  check_calls(thread);
  const ErrorHandlers some;
  check_calls(thread);
  std::thread other([] {
    Thread own{};
    check_calls(own);
    forget_callers();
  });
  other.join();
}

TEST(a_call_after_a_jump_is_not_inside) {
  if (!can_unwind) return;
  const ErrorHandlers some;
  Thread thread{};
  for (int i = 0; i < 3; ++i) {
    call(thread, [] {});
    CHECK(!is_inside_from_room(thread));
    call(thread, [&] { CHECK(is_inside_from_room(thread)); });
    CHECK(!is_inside_from_room(thread));
  }
}

// The stack of the fiber lies below that of the main thread.
TEST(a_call_in_a_callback_is_inside_on_another_stack_too) {
  const ErrorHandlers some;
  Thread thread{};
  of_fiber = &thread;
  std::vector<char> stack(1 << 16);
  call(thread, [&] {
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack.data();
    fiber.uc_stack.ss_size = stack.size();
    fiber.uc_link = &here;
    makecontext(&fiber, [] { was_inside = is_inside(*of_fiber); }, 0);
    swapcontext(&here, &fiber);
  });
  CHECK(was_inside);
}

}  // namespace commlens
