// SPDX-License-Identifier: Apache-2.0
// Calls MPI on random call paths through functions whose frames are of different kinds, and prints how many calls each
// path had.  Arguments: number of calls, then "threads" for calls of a second thread, too, or "kill" for an end by
// SIGKILL.
// WITHOUT_LIBRARIES: no frame of a library lies between two frames of the program.
#include <alloca.h>
#include <mpi.h>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define APART extern "C" __attribute__((noinline, noclone, no_icf))
#define KEEP asm volatile("" ::: "memory")  // behind a call, so that it is no jump

enum { longest = 10, scripts = 200, kinds = 10 };
struct Script {
  int length, step[longest];
  long calls[2];
};
static Script script[scripts];
struct Walk {
  const int *at, *end;
  unsigned random;
  int op;
};
typedef void Function(Walk*);
extern Function* const function[kinds];

static unsigned next_random(unsigned* state) { return *state = *state * 1664525u + 1013904223u, *state >> 8; }

// A macro, because the call must be in the function itself.
#define GO(walk)                                                                          \
  do {                                                                                    \
    if ((walk)->at < (walk)->end) {                                                       \
      function[*(walk)->at++](walk);                                                      \
    } else {                                                                              \
      int one = 1, sum;                                                                   \
      if ((walk)->op == 0) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF); \
      if ((walk)->op == 1) MPI_Barrier(MPI_COMM_SELF);                                    \
      if ((walk)->op == 2) MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE);                  \
    }                                                                                     \
    KEEP;                                                                                 \
  } while (0)

static void touch(volatile char* memory, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i += 64) memory[i] = 1;
}

APART void plain(Walk* walk) { GO(walk); }
APART __attribute__((optimize("no-omit-frame-pointer"))) void pointed(Walk* walk) { GO(walk); }
APART void other(Walk* walk) {
  volatile char much[333];
  much[0] = 1;
  GO(walk);
  much[332] = 2;
}
// Not touched: the memory contains what calls before have left there, return addresses too.
APART void allocating(Walk* walk) {
  volatile char* const memory = static_cast<char*>(alloca(8 + next_random(&walk->random) % 600));
  memory[0] = 1;
  GO(walk);
  memory[0] = 2;
}
APART void varying(Walk* walk) {
  const unsigned bytes = 1 + next_random(&walk->random) % 100;
  volatile char* const memory = static_cast<char*>(alloca(bytes));
  touch(memory, bytes);
  GO(walk);
}
APART void aligned(Walk* walk) {
  alignas(64) volatile char line[64];
  asm volatile("" ::"r"(line) : "memory");
  line[0] = 1;
  GO(walk);
  line[1] = 2;
}
APART __attribute__((force_align_arg_pointer)) void realigned(Walk* walk) { GO(walk); }

static __thread Walk* sorted;
APART int compare(const void*, const void*) {
  if (sorted != nullptr) {
    Walk* const walk = sorted;
    sorted = nullptr;
    GO(walk);
  }
  return 0;
}
APART void sorting(Walk* walk) {
  int two[2] = {1, 2};
  sorted = walk;
#ifdef WITHOUT_LIBRARIES
  compare(two, two + 1);
#else
  qsort(two, 2, sizeof *two, compare);
#endif
  KEEP;
}

APART void at_end(Walk* walk) { GO(walk); }
struct Guard {
  Walk* walk;
  ~Guard() { at_end(walk); }
};
APART void fail() { throw 1; }
APART void throwing(Walk* walk) {
  try {
    Guard guard{walk};
    fail();
  } catch (int) {
    KEEP;
  }
}
APART void jumping(Walk* walk) {
  static __thread jmp_buf back[4];
  static __thread int depth;
  if (depth == 4) {
    GO(walk);
    return;
  }
  if (setjmp(back[depth++]) == 0) {
    GO(walk);
    longjmp(back[depth - 1], 1);
  }
  --depth;
}
Function* const function[kinds] = {plain,   pointed,   other,   allocating, varying,
                                   aligned, realigned, sorting, throwing,   jumping};

// A stack of its own: the path begins here.
static __thread Walk* elsewhere;
APART void on_own_stack() { GO(elsewhere); }
APART void on_stack(Walk* walk) {
  static __thread ucontext_t here, there;
  static __thread char* stack;
  if (stack == nullptr) stack = static_cast<char*>(malloc(1 << 17));
  elsewhere = walk;
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = 1 << 17;
  there.uc_link = &here;
  makecontext(&there, on_own_stack, 0);
  swapcontext(&here, &there);
  KEEP;
}

static long wanted;
APART void* run(void* second) {
  unsigned random = second == nullptr ? 1 : 2;
  for (long i = 0; i < wanted; ++i) {
    const int n = static_cast<int>(next_random(&random) % scripts);
    Script& s = script[n];
    Walk walk{s.step, s.step + s.length, random, n % 3};
    ++s.calls[second == nullptr ? 0 : 1];
    if (n % 10 == 9) {
      on_stack(&walk);
    } else {
      GO(&walk);
    }
  }
  return nullptr;
}

int main(int argc, char** argv) {
  int provided, rank;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  wanted = atol(argv[1]);
  unsigned random = 7;
  for (Script& s : script) {
    s.length = 1 + static_cast<int>(next_random(&random) % longest);
    for (int& step : s.step) step = static_cast<int>(next_random(&random) % kinds);
  }
  pthread_t second;
  const char* const how = argc > 2 ? argv[2] : "";
  const bool has_second = strcmp(how, "threads") == 0 && provided == MPI_THREAD_MULTIPLE;
  if (has_second) pthread_create(&second, nullptr, run, script);
  run(nullptr);
  if (has_second) pthread_join(second, nullptr);
  for (int n = 0; rank == 0 && n < scripts; ++n) {
    const Script& s = script[n];
    printf("path %d %ld %ld", n, s.calls[0], s.calls[1]);
    for (int i = 0; i < s.length; ++i) printf(" %d", s.step[i]);
    printf("\n");
  }
  fflush(stdout);
  if (strcmp(how, "kill") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    sleep(1);  // until the launcher has read the output of rank 0
    raise(SIGKILL);
  }
  MPI_Finalize();
  return 0;
}
