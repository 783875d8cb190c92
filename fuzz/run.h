/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated programs of program.py stand on: handles, buffers, threads, and the calls whose number depends
 * on timing.  Every MPI call made here is in the scripts too: the profile is compared call by call, so nothing else
 * may call MPI.  Those loops write one line per call to the log, saying which requests that call completed; the
 * model reads it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* A strand has handles of its own, `Writer` says which, and a log of its own. */
enum { STRANDS = 5, HANDLES = STRANDS * 256, REQUESTS = STRANDS * 20000, ROW = 256, PROCESSOR_SECONDS = 2 };

static MPI_Comm c[HANDLES];
static MPI_Datatype t[HANDLES];
static MPI_Win w[HANDLES];
static MPI_File f[HANDLES];
static MPI_Group g[HANDLES];
static MPI_Request r[REQUESTS];
static FILE* logs[STRANDS];

static __thread MPI_Message message;
static __thread MPI_Status status;
static __thread MPI_Status statuses[ROW];
static __thread int flag;
static __thread void* memory;
static __thread FILE* log_file;
static __thread int strand;
static const char* folder;
static int rank;

/* Every line of a generated program starts with AT, so that a program that hangs can say where. */
#define AT line[strand] = __LINE__;
static volatile sig_atomic_t line[STRANDS];

static void stuck(int number) {
  (void)number;
  char text[96];
  int length = snprintf(text, sizeof text, "stuck: rank %d, lines %d %d %d %d %d\n", rank, (int)line[0], (int)line[1],
                        (int)line[2], (int)line[3], (int)line[4]);
  if (write(STDERR_FILENO, text, (size_t)length)) sleep(1); /* let the others speak before the launcher ends them */
  _exit(3);
}

/* Room for one buffer.  Buffers of pending operations must not overlap: a ring comes round only long after.
 * SLACK: derived datatypes here start up to that many bytes before their buffer address. */
static void* room(size_t bytes) {
  enum { SLACK = 64, RING = 1 << 26 };
  static __thread char* ring;
  static __thread size_t used;
  if (ring == NULL) ring = calloc(1, RING);
  if (used + bytes + 2 * SLACK > RING) used = 0;
  char* start = ring + used + SLACK;
  used += (bytes + 2 * SLACK + 63) / 64 * 64;
  return start;
}

/* A copy of an array literal, which ends with its block, that lives as long as a buffer. */
#define KEPT(...) memcpy(room(sizeof(__VA_ARGS__)), (__VA_ARGS__), sizeof(__VA_ARGS__))

static const char* path(const char* name) {
  static __thread char full[4096];
  snprintf(full, sizeof full, "%s/%s", folder, name);
  return full;
}

/* The requests of one completion call stand in one array; `which` says where they come from. */
static __thread MPI_Request row[ROW];
static void gather(int n, const int* which) {
  for (int i = 0; i < n; ++i) row[i] = which[i] < 0 ? MPI_REQUEST_NULL : r[which[i]];
}
static void scatter(int n, const int* which) {
  for (int i = 0; i < n; ++i)
    if (which[i] >= 0) r[which[i]] = row[i];
}

/* Nothing completed; the partner may need this core. */
static void log_none(void) {
  fputs("\n", log_file);
  sched_yield();
}
static void log_one(int index) { fprintf(log_file, "%d\n", index); }
static void log_some(int n, const int* indices) {
  if (n == 0 || n == MPI_UNDEFINED) {
    log_none();
    return;
  }
  for (int i = 0; i < n; ++i) fprintf(log_file, "%d ", indices[i]);
  fputs("\n", log_file);
}

/* MPI libraries give one handle to all requests that were complete when they were made.  Nobody can tell those apart,
 * and the profile's rule for them is another one (docs/bytes.md), so the model must know which they are. */
#if defined(OPEN_MPI)
extern char ompi_request_empty[];
static void learn_shared(void) {}
static int is_shared(MPI_Request request) { return (char*)request == ompi_request_empty; }
#else
static MPI_Request shared_requests[4];
static int shared_count;

/* Two requests at a time with one handle: it is that of all their kind. */
static void learn_pair(MPI_Request first, MPI_Request second, int (*wait)(MPI_Request*, MPI_Status*)) {
  if (first == second) shared_requests[shared_count++] = first;
  wait(&first, MPI_STATUS_IGNORE);
  wait(&second, MPI_STATUS_IGNORE);
}

/* By the functions of the library itself, which the profile does not see. */
static void learn_shared(void) {
  Dl_info info;
  dladdr(dlsym(RTLD_DEFAULT, "PMPI_Get_library_version"), &info);
  void* const library = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
#define THEIRS(name) __typeof__(&name) const their_##name = (__typeof__(&name))dlsym(library, #name)
  THEIRS(MPI_Isend);
  THEIRS(MPI_Irecv);
  THEIRS(MPI_Ibarrier);
  THEIRS(MPI_Rput);
  THEIRS(MPI_Wait);
  THEIRS(MPI_Win_create);
  THEIRS(MPI_Win_lock);
  THEIRS(MPI_Win_unlock);
  THEIRS(MPI_Win_free);
  MPI_Request pair[2];
  for (int i = 0; i < 2; ++i) their_MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &pair[i]);
  learn_pair(pair[0], pair[1], their_MPI_Wait);
  for (int i = 0; i < 2; ++i) their_MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &pair[i]);
  learn_pair(pair[0], pair[1], their_MPI_Wait);
  for (int i = 0; i < 2; ++i) their_MPI_Ibarrier(MPI_COMM_SELF, &pair[i]);
  learn_pair(pair[0], pair[1], their_MPI_Wait);
  MPI_Win win;
  their_MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
  their_MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  for (int i = 0; i < 2; ++i) their_MPI_Rput(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, 0, MPI_BYTE, win, &pair[i]);
  learn_pair(pair[0], pair[1], their_MPI_Wait);
  their_MPI_Win_unlock(0, win);
  their_MPI_Win_free(&win);
}
static int is_shared(MPI_Request request) {
  for (int i = 0; i < shared_count; ++i) {
    if (request == shared_requests[i]) return 1;
  }
  return 0;
}
#endif
static void made(MPI_Request request) { fprintf(log_file, "%d\n", is_shared(request)); }

/* `active` of the n requests are active, the others null or inactive.  Without any active one there is one call,
 * which completes nothing. */
static void Waitany(int n, const int* which, int active) {
  gather(n, which);
  do {
    int index;
    MPI_Waitany(n, row, &index, MPI_STATUS_IGNORE);
    index == MPI_UNDEFINED ? log_none() : log_one(index);
  } while (--active > 0);
  scatter(n, which);
}

static void Waitsome(int n, const int* which, int active) {
  int done, indices[ROW];
  gather(n, which);
  do {
    MPI_Waitsome(n, row, &done, indices, statuses);
    log_some(done, indices);
  } while ((active -= done) > 0 && done != MPI_UNDEFINED);
  scatter(n, which);
}

static void Test(int n, const int* which, int active) {
  gather(n, which);
  do {
    MPI_Test(row, &flag, &status);
    flag&& active ? log_one(0) : log_none();
  } while (!flag);
  scatter(n, which);
}

static void Testany(int n, const int* which, int active) {
  gather(n, which);
  do {
    int index;
    MPI_Testany(n, row, &index, &flag, MPI_STATUS_IGNORE);
    flag&& active ? log_one(index) : log_none();
    active -= flag;
  } while (active > 0);
  scatter(n, which);
}

static void Testsome(int n, const int* which, int active) {
  int done, indices[ROW];
  gather(n, which);
  do {
    MPI_Testsome(n, row, &done, indices, statuses);
    log_some(done, indices);
  } while ((active -= done) > 0 && done != MPI_UNDEFINED);
  scatter(n, which);
}

/* `live`: the indices of the active requests, what a successful Testall completes. */
static void Testall(int n, const int* which, int active, const int* live) {
  gather(n, which);
  do {
    MPI_Testall(n, row, &flag, statuses);
    flag ? log_some(active, live) : log_none();
  } while (!flag);
  scatter(n, which);
}

static void Iprobe(int source, int tag, MPI_Comm comm) {
  for (flag = 0; !flag;) {
    MPI_Iprobe(source, tag, comm, &flag, MPI_STATUS_IGNORE);
    flag ? log_one(0) : log_none();
  }
}

static void Improbe(int source, int tag, MPI_Comm comm, MPI_Message* taken) {
  for (flag = 0; !flag;) {
    MPI_Improbe(source, tag, comm, &flag, taken, MPI_STATUS_IGNORE);
    flag ? log_one(0) : log_none();
  }
}

static void Win_test(MPI_Win win) {
  for (flag = 0; !flag;) {
    MPI_Win_test(win, &flag);
    flag ? log_one(0) : log_none();
  }
}

/* What one thread of one rank does from one meeting of the threads to the next. */
struct part {
  void (*work)(void);
  int strand;
};
/* `parts`: for each rank that of the main thread, for each meeting those of all threads, again one of the main thread;
 * without threads that of the main thread. */
struct program {
  int threads, meetings;
  struct part const* parts;
};

static struct program const* program;
static struct part const* mine; /* of this rank */
static pthread_barrier_t meeting_point;

static void work(struct part const* part) {
  strand = part->strand;
  log_file = logs[strand];
  part->work();
}

static void* thread(void* argument) {
  struct part const* part = argument;
  for (int meeting = 0; meeting < program->meetings; ++meeting) {
    work(part + meeting * program->threads);
    pthread_barrier_wait(&meeting_point);
  }
  return NULL;
}

static int run(int argc, char** argv, struct program const* const* programs) {
  program = programs[atoi(argv[2])];
  int provided = MPI_THREAD_MULTIPLE;
  if (program->threads == 0)
    MPI_Init(&argc, &argv);
  else
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 1);
  folder = argv[1];
  c[0] = MPI_COMM_WORLD;
  c[1] = MPI_COMM_SELF;
  for (int i = 0; i < REQUESTS; ++i) r[i] = MPI_REQUEST_NULL;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* the only call that is in no text; `MainThread.begin` knows */
  for (int i = 0; i <= program->threads; ++i) {
    char name[32];
    snprintf(name, sizeof name, "log.%d.%d", rank, i);
    logs[i] = fopen(path(name), "w");
    if (logs[i] == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  learn_shared();
  /* Who waits for MPI uses the processor, so its time says that a program hangs, however busy the machine is. */
  struct itimerval const limit = {{0, 0}, {PROCESSOR_SECONDS, 0}};
  signal(SIGPROF, stuck);
  setitimer(ITIMER_PROF, &limit, NULL);

  int const between = program->threads * program->meetings;
  mine = program->parts + rank * (between == 0 ? 1 : between + 2);
  work(mine);
  if (between != 0) {
    pthread_t threads[STRANDS];
    pthread_barrier_init(&meeting_point, NULL, (unsigned)program->threads);
    for (int i = 0; i < program->threads; ++i) pthread_create(&threads[i], NULL, thread, (void*)(mine + 1 + i));
    for (int i = 0; i < program->threads; ++i) pthread_join(threads[i], NULL);
    work(mine + 1 + between);
  }
  for (int i = 0; i <= program->threads; ++i) fclose(logs[i]);
  MPI_Finalize();
  return 0;
}
