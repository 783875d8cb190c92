// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/base/unwind_chain.h"

#include <alloca.h>
#include <execinfo.h>
#include <unwind.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#if defined(__GNUC__) && !defined(__clang__)
#define WITH_OPTION(option) __attribute__((noinline, optimize(option)))
#else
#define WITH_OPTION(option) __attribute__((noinline))
#endif

#if defined(__aarch64__)
asm(R"(
        .text
        .globl commlens_test_capture
        .type commlens_test_capture, %function
commlens_test_capture:
        .cfi_startproc
        mov x1, sp
        stp x30, x1, [x0]
        str x29, [x0, 16]
        ret
        .cfi_endproc
        .size commlens_test_capture, . - commlens_test_capture
)");
#elif defined(__x86_64__)
asm(R"(
        .text
        .globl commlens_test_capture
        .type commlens_test_capture, @function
commlens_test_capture:
        .cfi_startproc
        movq (%rsp), %rax
        movq %rax, (%rdi)
        leaq 8(%rsp), %rax
        movq %rax, 8(%rdi)
        movq %rbp, 16(%rdi)
        ret
        .cfi_endproc
        .size commlens_test_capture, . - commlens_test_capture
)");
#endif

namespace commlens {

Probed probed;
int depth_asked = Probed::most_returns;
void (*at_probe)() = nullptr;

namespace {

const std::vector<int>* path;

__attribute__((noinline)) int next(int depth);

// Keeps a call from becoming a jump, and an array in memory.
void use(volatile void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

__attribute__((noinline)) int plain(int depth) { return next(depth + 1) + 1; }

WITH_OPTION("omit-frame-pointer") int without_frame_pointer(int depth) { return next(depth + 1) * 2 + depth; }

WITH_OPTION("no-omit-frame-pointer") int with_frame_pointer(int depth) { return next(depth + 1) * 3 + depth; }

// The memory keeps what earlier calls left there, return addresses among it.
__attribute__((noinline)) int with_alloca(int depth) {
  void* const memory = alloca(static_cast<std::size_t>(16 + rand() % 700));
  use(memory);
  const int result = next(depth + 1);
  use(memory);
  return result + 1;
}

__attribute__((noinline)) int with_variable_array(int depth) {
  const std::size_t size = static_cast<std::size_t>(1 + rand() % 40) * 16;
  auto* const memory = static_cast<char*>(__builtin_alloca_with_align(size, 256));
  use(memory);
  const int result = next(depth + 1);
  use(memory);
  return result + 2;
}

__attribute__((noinline)) int with_aligned_local(int depth) {
  alignas(64) char local[128];
  use(local);
  const int result = next(depth + 1);
  use(local);
  return result + 3;
}

#if defined(__x86_64__)
#define WITH_ALIGNED_STACK __attribute__((noinline, force_align_arg_pointer))
#else
#define WITH_ALIGNED_STACK __attribute__((noinline))
#endif

WITH_ALIGNED_STACK int with_aligned_stack(int depth) { return next(depth + 1) + 4; }

__attribute__((noinline)) int with_large_frame(int depth) {
  char local[2000];
  use(local);
  const int result = next(depth + 1);
  use(local);
  return result + 5;
}

int sort_depth;

int compare(const void*, const void*) {
  const int depth = sort_depth;
  if (depth >= 0) {
    sort_depth = -1;  // only from the first comparison
    next(depth);
  }
  return 0;
}

__attribute__((noinline)) int with_sort(int depth) {
  int numbers[2] = {2, 1};
  sort_depth = depth + 1;
  qsort(numbers, 2, sizeof numbers[0], compare);
  use(numbers);
  return numbers[0];
}

struct Cleanup {
  int depth;
  explicit Cleanup(int at) : depth(at) {}
  ~Cleanup() { next(depth + 1); }
};

__attribute__((noinline)) int throwing(int depth) {
  Cleanup cleanup(depth);
  use(&cleanup);
  if (depth >= 0) throw depth;
  return depth;
}

// The rest of the chain runs while an exception is under way.
__attribute__((noinline)) int with_exception(int depth) {
  try {
    return throwing(depth);
  } catch (int thrown) {
    return thrown;
  }
}

__attribute__((noinline)) int recursive(int depth, int times) {
  return times == 0 ? next(depth + 1) + 1 : recursive(depth, times - 1) + times;
}

__attribute__((noinline)) int with_recursion(int depth) { return recursive(depth, rand() % 4) + 1; }

__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h, int depth) {
  return next(depth + 1) + a + b + c + d + e + f + g + h;
}

__attribute__((noinline)) int with_stack_arguments(int depth) {
  return many(1, 2, 3, 4, depth, 6, depth, 8, depth) + depth;
}

__attribute__((noinline)) int with_function_object(int depth) {
  const std::function<int(int)> call = [&](int number) { return next(depth + 1) + number; };
  return call(depth) + 1;
}

__attribute__((noinline)) int with_alloca_and_alignment(int depth) {
  alignas(128) char local[256];
  void* const memory = alloca(static_cast<std::size_t>(16 + rand() % 300));
  use(local);
  use(memory);
  const int result = next(depth + 1);
  use(local);
  use(memory);
  return result + 6;
}

__attribute__((noinline)) int odd(int depth, int times);
__attribute__((noinline)) int even(int depth, int times) {
  return times == 0 ? next(depth + 1) : odd(depth, times - 1) + 1;
}
__attribute__((noinline)) int odd(int depth, int times) {
  return times == 0 ? next(depth + 1) : even(depth, times - 1) + 2;
}

__attribute__((noinline)) int with_mutual_recursion(int depth) { return even(depth, rand() % 4) + 1; }

int (*const volatile functions[frame_kinds])(int) = {plain,
                                                     without_frame_pointer,
                                                     with_frame_pointer,
                                                     with_alloca,
                                                     with_variable_array,
                                                     with_aligned_local,
                                                     with_aligned_stack,
                                                     with_large_frame,
                                                     with_sort,
                                                     with_exception,
                                                     with_recursion,
                                                     with_stack_arguments,
                                                     with_function_object,
                                                     with_alloca_and_alignment,
                                                     with_mutual_recursion};

int next(int depth) {
  const auto at = static_cast<std::size_t>(depth);
  int result = at < path->size() ? functions[(*path)[at]](depth) : probe();
  use(&result);
  return result;
}

_Unwind_Reason_Code add(_Unwind_Context* context, void* out) {
  const std::uint64_t address = _Unwind_GetIP(context);
  if (address != 0) static_cast<Addresses*>(out)->push_back(address);
  return _URC_NO_REASON;
}

}  // namespace

Addresses Probed::expected(int count) const {
  const auto most = std::min(libgcc.size(), static_cast<std::size_t>(count));
  return {libgcc.begin(), libgcc.begin() + static_cast<std::ptrdiff_t>(most)};
}

__attribute__((noinline)) Addresses libgcc_addresses() {
  Addresses result;
  _Unwind_Backtrace(add, &result);
  result.erase(result.begin());  // this function
  return result;
}

__attribute__((noinline)) Addresses glibc_addresses() {
  void* found[256];
  const int count = backtrace(found, 256);
  Addresses result;
  for (int i = 1; i < count; ++i) result.push_back(reinterpret_cast<std::uint64_t>(found[i]));
  return result;
}

__attribute__((noinline)) int probe() {
  commlens_test_capture(&probed.frame);
  probed.unwound = unwind(probed.frame, probed.returns, depth_asked, probed.words, Probed::most_words);
  probed.libgcc = libgcc_addresses();
  probed.libgcc.erase(probed.libgcc.begin());  // this function
  if (at_probe != nullptr) at_probe();
  return 1;
}

void call_chain(const std::vector<int>& kinds) {
  path = &kinds;
  int result = next(0);
  use(&result);
}

}  // namespace commlens
