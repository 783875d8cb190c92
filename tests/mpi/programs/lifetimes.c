// SPDX-License-Identifier: Apache-2.0
// Barriers and messages for which some rank comes late, where processes, sessions and communicators come and go, and a
// trace of them: `lifetimes FOLDER CASE [its arguments]`, 2 ranks, `crowd` 3; the children of `spawn` have the case
// `child`.
//
// Each process writes its calls into a file that it has mapped, FOLDER/w0, w1, and c0, c1 of children, so that they
// outlive it: the times of entry and return by CLOCK_MONOTONIC_RAW, and how long the process waited for a processor in
// between: so far apart the trace and commlens may have looked at the clock.  A label tells calls of one communicator
// and direction from others; communicators that are looked up in the profile have a name.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_calls = 200000, calls = 40, late_us = 2000, tag = 7 };
enum kind { BARRIER, SEND, RECEIVE };  // RECEIVE: any call that completes a receive
enum label { WORLD, MERGED, TO_PARENT, TO_CHILD, FROM_PARENT, FROM_CHILD, KEPT, LAST, SESSION, TURNED, first_of_loop };

struct trace {
  int64_t pid, begun, done;
  struct {
    double entered, left, without_processor;
    int32_t kind, label;
  } of[most_calls];
};

static volatile struct trace* trace;
static const char* folder;
static int rank, scheduler = -1;

static void open_trace(const char* world) {
  char name[4096];
  snprintf(name, sizeof name, "%s/%s%d", folder, world, rank);
  const int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || ftruncate(file, sizeof *trace) != 0) abort();
  trace = mmap(NULL, sizeof *trace, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  trace->pid = getpid();
  scheduler = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Returns for how long the kernel let this process wait for a processor until now, in ns; 0 if it does not say.
static double without_processor(void) {
  char text[64] = "";
  long long running, waiting = 0;
  if (scheduler < 0 || pread(scheduler, text, sizeof text - 1, 0) < 0) return 0;
  return sscanf(text, "%lld %lld", &running, &waiting) == 2 ? (double)waiting : 0;
}

static void spend(long us) {
  const struct timespec t = {us / 1000000, us % 1000000 * 1000};
  nanosleep(&t, NULL);
}

#define TRACED(a_kind, a_label, call)                               \
  do {                                                              \
    const int64_t at = trace->begun;                                \
    trace->of[at].kind = a_kind;                                    \
    trace->of[at].label = a_label;                                  \
    trace->begun = at + 1;                                          \
    const double before = without_processor();                      \
    trace->of[at].entered = now();                                  \
    call;                                                           \
    trace->of[at].left = now();                                     \
    trace->of[at].without_processor = without_processor() - before; \
    trace->done = at + 1;                                           \
  } while (0)

static void barrier(MPI_Comm comm, int label) { TRACED(BARRIER, label, MPI_Barrier(comm)); }
static void send(int to, MPI_Comm comm, int label) { TRACED(SEND, label, MPI_Send(&rank, 1, MPI_INT, to, tag, comm)); }
static void receive(int from, MPI_Comm comm, int label) {
  int in;
  TRACED(RECEIVE, label, MPI_Recv(&in, 1, MPI_INT, from, tag, comm, MPI_STATUS_IGNORE));
}

// For each time, rank `late` of the communicator lets the other one wait in a barrier, and then for a message.
static void steps(MPI_Comm comm, int label, int late, int times, long us) {
  int mine;
  MPI_Comm_rank(comm, &mine);
  for (int i = 0; i < times; ++i) {
    if (mine == late) spend(us);
    barrier(comm, label);
    if (mine == late) spend(us);
    if (mine == late) send(1 - late, comm, label);
    if (mine == 1 - late) receive(late, comm, label);
  }
}

// -- spawn

// The parents are 0 and 1 of the merged communicator, the children 2 and 3.  All messages have one tag.
static void merged_steps(MPI_Comm merged) {
  int mine;
  MPI_Comm_rank(merged, &mine);
  for (int i = 0; i < calls; ++i) {
    if (mine == 3) spend(late_us);
    barrier(merged, MERGED);
    if (mine == 0 || mine == 2) spend(late_us);
    if (mine == 0) send(2, merged, TO_CHILD);
    if (mine == 0) send(1, merged, FROM_PARENT);
    if (mine == 1) receive(0, merged, FROM_PARENT);
    if (mine == 2) send(3, merged, FROM_CHILD);
    if (mine == 2) receive(0, merged, TO_CHILD);
    if (mine == 3) receive(2, merged, FROM_CHILD);
    if (mine == 3) send(1, merged, TO_PARENT);
    if (mine == 1) receive(3, merged, TO_PARENT);
  }
}

// Between the calls on MPI_COMM_WORLD, messages to the other group that have the same ranks and the same tag.
static void related(MPI_Comm other, int late, int is_child) {
  MPI_Comm merged;
  for (int i = 0; i < calls; ++i) {
    int out = i, in;
    steps(MPI_COMM_WORLD, WORLD, late, 1, late_us);
    MPI_Sendrecv(&out, 1, MPI_INT, 1 - rank, tag, &in, 1, MPI_INT, 1 - rank, tag, other, MPI_STATUS_IGNORE);
  }
  MPI_Intercomm_merge(other, is_child, &merged);
  MPI_Comm_set_name(merged, "merged");
  merged_steps(merged);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&other);
}

static void spawn(char* runner, char* self) {
  MPI_Comm children;
  char* arguments[] = {self, (char*)folder, "child", NULL};
  MPI_Comm_spawn(runner, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
  related(children, 0, 0);
}

// -- sessions

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
static MPI_Comm of_session(MPI_Session session, int is_turned, const char* name) {
  MPI_Group world, turned;
  MPI_Comm comm;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
  MPI_Group_incl(world, 2, is_turned ? (int[]){1, 0} : (int[]){0, 1}, &turned);
  MPI_Comm_create_from_group(turned, "one tag for all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_set_name(comm, name);
  MPI_Group_free(&turned);
  MPI_Group_free(&world);
  return comm;
}

// The inner session begins, is used and ends while the communicator of the outer one is in use.  Rank 0 of the turned
// communicator is rank 1 of the world.
static void sessions(void) {
  MPI_Session outer, inner;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &outer);
  MPI_Comm comm = of_session(outer, 0, "session");
  MPI_Comm_rank(comm, &rank);
  open_trace("w");
  steps(comm, SESSION, 0, calls / 2, late_us);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &inner);
  MPI_Comm turned = of_session(inner, 1, "turned");
  for (int i = 0; i < calls; ++i) {
    steps(turned, TURNED, 0, 1, late_us);
    if (i % 2) steps(comm, SESSION, 0, 1, late_us);
  }
  MPI_Comm_free(&turned);
  MPI_Session_finalize(&inner);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&outer);
}
#endif

// -- communicators

// Returns the next of a loop: the duplicates have the order of the world, the others the reverse.
static MPI_Comm next_of(int i) {
  MPI_Comm comm;
  MPI_Group world, turned;
  if (i % 3 == 0) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (i % 3 == 1) MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
  if (i % 3 == 2) {
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, (int[]){1, 0}, &turned);
    MPI_Comm_create_group(MPI_COMM_WORLD, turned, tag, &comm);
    MPI_Group_free(&turned);
    MPI_Group_free(&world);
  }
  return comm;
}

// Each communicator has a late rank of its own, and a receive that is completed after its handle was given back.
static void reuse(int number) {
  for (int i = 0; i < number; ++i) {
    MPI_Comm comm = next_of(i);
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    MPI_Comm_set_name(comm, name);
    printf("handle %d %d %llx\n", i, rank, (unsigned long long)(uintptr_t)comm);
    const int late = i / 2 % 2;
    steps(comm, first_of_loop + i, late, 2, late_us);
    int mine, in;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_rank(comm, &mine);
    if (mine != late) MPI_Irecv(&in, 1, MPI_INT, late, tag + 1, comm, &request);
    if (mine == late) spend(late_us);
    if (mine == late) TRACED(SEND, -1 - i, MPI_Send(&rank, 1, MPI_INT, 1 - late, tag + 1, comm));
    MPI_Comm_free(&comm);
    if (mine != late) TRACED(RECEIVE, -1 - i, MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
}

// Two groups of one process each, and the communicator of both, in which rank 1 comes first.  On the intercommunicator
// both are rank 0.
static void merge(void) {
  MPI_Comm between, merged;
  MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, tag, &between);
  MPI_Intercomm_merge(between, rank == 0, &merged);
  MPI_Comm_set_name(merged, "merged");
  for (int i = 0; i < calls; ++i) {
    if (rank == 0) MPI_Send(&i, 1, MPI_INT, 0, tag, between);
    int in;
    if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, tag, between, MPI_STATUS_IGNORE);
    MPI_Barrier(between);
    steps(merged, MERGED, 0, 1, late_us);
  }
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
}

static long peak_kib(void) {
  char line[256];
  long kib = 0;
  FILE* const in = fopen("/proc/self/status", "r");
  while (in != NULL && kib == 0 && fgets(line, sizeof line, in) != NULL) sscanf(line, "VmHWM: %ld", &kib);
  if (in != NULL) fclose(in);
  return kib;
}

// Copies the arenas of the job as they are now.
static void copy_arenas(void) {
  char command[4096];
  MPI_Barrier(MPI_COMM_WORLD);
  snprintf(command, sizeof command, "cp -r --sparse=always \"$COMMLENS_ARENA_DIR\" \"%s/arenas\"", folder);
  if (rank == 0 && system(command) != 0) abort();
  MPI_Barrier(MPI_COMM_WORLD);
}

// One communicator is used all the time, one is made of it at the end, and `number` of the world between them.
static void many(int number) {
  MPI_Comm kept, last;
  MPI_Comm_dup(MPI_COMM_WORLD, &kept);
  MPI_Comm_set_name(kept, "kept");
  for (int i = 0; i < number; ++i) {
    MPI_Comm comm;
    int in = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    if (rank == 0) MPI_Send(&in, 1, MPI_INT, 1, tag, comm);
    if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, tag, comm, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
    if (i % (number / calls) == 0) steps(kept, KEPT, 0, 1, late_us);
  }
  MPI_Comm_split(kept, 0, -rank, &last);
  MPI_Comm_set_name(last, "last");
  steps(last, LAST, 0, calls, late_us);
  copy_arenas();
  printf("peak %d %ld\n", rank, peak_kib());
  MPI_Comm_free(&kept);
  MPI_Comm_free(&last);
}

// Ranks 1 and 2 have so many communicators, sizes and messages that the memory for samples does not suffice.  Rank 0
// has only the communicator that it shares with rank 1.
static void crowd(int number) {
  MPI_Comm kept, others;
  enum { bins = 16, each = 3 };
  static char data[1 << bins], result[1 << bins];
  MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &kept);
  MPI_Comm_split(MPI_COMM_WORLD, rank > 0 ? 0 : MPI_UNDEFINED, rank, &others);
  if (rank < 2) MPI_Comm_set_name(kept, "kept");
  for (int i = 0; i < number; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);  // so that rank 1 is not the late one
    if (rank < 2) steps(kept, KEPT, 0, 1, late_us);
    if (rank == 0) continue;
    MPI_Comm comm;
    MPI_Comm_dup(others, &comm);
    for (int bin = 0; bin < bins; ++bin) {
      MPI_Allreduce(data, result, 1 << bin, MPI_CHAR, MPI_MAX, comm);
      MPI_Bcast(data, 1 << bin, MPI_CHAR, 0, comm);
    }
    for (int n = 0; n < each * bins; ++n)
      MPI_Sendrecv(data, 1, MPI_CHAR, 2 - rank, n, result, 1, MPI_CHAR, 2 - rank, n, comm, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
  }
  copy_arenas();
  printf("peak %d %ld\n", rank, peak_kib());
}

// -- child processes

// What a child does before it ends: calls that no other process takes part in.
static void in_child(int how) {
  char in, out = 1;
  for (int i = 0; i < 3 && how == 3; ++i) {
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Sendrecv(&out, 1, MPI_CHAR, MPI_PROC_NULL, tag, &in, 1, MPI_CHAR, MPI_PROC_NULL, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  if (how == 0) _exit(0);
  if (how == 1) execlp("true", "true", (char*)NULL);
  if (how == 4) spend(20 * late_us);  // while the parent goes on
  exit(0);
}

static void children(void) {
  for (int i = 0; i < calls; ++i) {
    steps(MPI_COMM_WORLD, WORLD, 0, 1, late_us);
    if (i % 4 != 3) continue;
    const int how = i / 4 % 5;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) in_child(how);
    if (how != 4) waitpid(child, NULL, 0);
  }
  while (wait(NULL) > 0) continue;
}

// -- until it is killed

// A child process that has the memory of its parent lives on.
static void endless(long us) {
  MPI_Comm kept, comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &kept);
  MPI_Comm_set_name(kept, "kept");
  const pid_t child = fork();
  if (child == 0) pause();
  for (int64_t i = 0;; ++i) {
    steps(kept, KEPT, 0, 1, us);
    if (i % 8 != 0) continue;
    MPI_Comm_dup(kept, &comm);
    steps(comm, LAST, 0, 1, us);
    MPI_Comm_free(&comm);
  }
}

int main(int argc, char** argv) {
  folder = argv[1];
  const char* const what = argv[2];
  const int number = argc > 3 ? atoi(argv[3]) : 0;
  if (strcmp(what, "sessions") == 0) {
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    sessions();
    return 0;
#else
    return 77;
#endif
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm parents;
  MPI_Comm_get_parent(&parents);
  open_trace(parents == MPI_COMM_NULL ? "w" : "c");
  if (strcmp(what, "spawn") == 0) spawn(argv[3], argv[0]);
  if (strcmp(what, "child") == 0) related(parents, 1, 1);
  if (strcmp(what, "reuse") == 0) reuse(number);
  if (strcmp(what, "merge") == 0) merge();
  if (strcmp(what, "many") == 0) many(number);
  if (strcmp(what, "crowd") == 0) crowd(number);
  if (strcmp(what, "children") == 0) children();
  if (strcmp(what, "endless") == 0) endless(number);
  MPI_Finalize();
  return 0;
}
