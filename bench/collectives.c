/* SPDX-License-Identifier: Apache-2.0
 * Calls collectives on communicators of the first 2, 3, … ranks, for each block size and root, and writes what the
 * monitoring components of Open MPI count of each call.  bench/algorithms.py starts it.
 *
 *     collectives DIRECTORY COLLECTIVE:ROOTS:RANKS:BLOCK[:BLOCK...]...
 *
 * ROOTS is 1 where only rank 0 is root, 2 for rank 0 and the middle one; RANKS those of the largest communicator. BLOCK
 * is bytes; -N for parts of different sizes, which some collectives allow: N times 0, 1 or 2 bytes, in turns; rank by
 * rank, and in an all-to-all by the sum of both ranks.  Each size, block and root has a communicator of its own, "SIZE
 * BLOCK ROOT" by name, on which each collective is called once.  Every rank writes DIRECTORY/RANK, a line for each peer
 * it sent to in a call: collective, size, block, root, peer, messages, bytes, and the size histogram as BIN:MESSAGES.
 *
 * The components say what they have counted when they end; what comes before in one run cannot be told apart then.  So
 * this program stands between the component that sees a message and the counters: it notes what is counted, and hands
 * it on. In the end a copy of the process ends the components, and what they say they have counted in all must be what
 * was noted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BINS = 66, MOST = 256, WAYS = 64 };

typedef struct {
  long long messages, bytes, bins[BINS];
} Sent;

static int rank, ranks;
static const char* directory;

static void give_up(const char* why) {
  fprintf(stderr, "collectives: %s\n", why);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Of the components' own library: a module of Open MPI 4, part of the MPI library since 5. */
static void* library_function(const char* name) {
  void* module = dlopen("libmca_common_monitoring.so.50", RTLD_NOLOAD | RTLD_LAZY);
  void* found = module != NULL ? dlsym(module, name) : dlsym(RTLD_NEXT, name);
  if (found == NULL) give_up("Open MPI has no monitoring component");
  return found;
}

/* By rank in MPI_COMM_WORLD.  What the program itself sends would be here, too; it sends nothing.  The component cannot
 * tell that from what is sent inside collectives: messages that are started rather than sent have lost their tag. */
static Sent* noted;

static int bin_of(size_t bytes) {
  int bin = 0;
  for (; bytes > 0; bytes >>= 1) bin++;
  return bin;
}

/* Called by the monitoring component instead of the function of the same name in its library. */
void mca_common_monitoring_record_pml(int peer, size_t bytes, int tag);
void mca_common_monitoring_record_pml(int peer, size_t bytes, int tag) {
  static void (*hand_on)(int, size_t, int);
  if (hand_on == NULL) hand_on = (void (*)(int, size_t, int))library_function("mca_common_monitoring_record_pml");
  if (noted == NULL) noted = calloc(MOST, sizeof *noted);
  if (peer < MOST && noted != NULL) {
    noted[peer].messages++;
    noted[peer].bytes += (long long)bytes;
    noted[peer].bins[bin_of(bytes)]++;
  }
  hand_on(peer, bytes, tag);
}

/* Compares what the components have counted with what was noted. */
static void check_counters(void) {
  char name[4096];
  snprintf(name, sizeof name, "%s/stock.%d.prof", directory, rank);
  pid_t copy = fork();
  if (copy == 0) {
    void (*end_monitoring)(void) = (void (*)(void))library_function("mca_common_monitoring_finalize");
    for (int i = 0; i < 16 && access(name, F_OK) != 0; i++) end_monitoring();
    _exit(0);
  }
  int status;
  if (copy < 0 || waitpid(copy, &status, 0) != copy) give_up("no process to read the counters in");
  FILE* file = fopen(name, "r");
  if (file == NULL) give_up("the monitoring component wrote nothing");
  long long messages_left[MOST], bytes_left[MOST];
  for (int to = 0; to < MOST; to++) {
    messages_left[to] = noted[to].messages;
    bytes_left[to] = noted[to].bytes;
  }
  char* line = NULL;
  size_t room = 0;
  while (getline(&line, &room, file) > 0) {
    char kind;
    int from, to;
    long long bytes, messages;
    if (sscanf(line, "%c\t%d\t%d\t%lld bytes\t%lld msgs", &kind, &from, &to, &bytes, &messages) != 5) continue;
    if (kind != 'E' && kind != 'I') continue;
    if (from != rank || to < 0 || to >= MOST) give_up("a line of another rank");
    messages_left[to] -= messages;
    bytes_left[to] -= bytes;
  }
  for (int to = 0; to < MOST; to++)
    if (messages_left[to] != 0 || bytes_left[to] != 0) give_up("the monitoring component has counted something else");
  free(line);
  fclose(file);
}

static char* memory(size_t bytes) {
  char* found = calloc(bytes + 1, 1);
  if (found == NULL) give_up("out of memory");
  return found;
}

static int* numbers(int size) {
  int* list = malloc(sizeof *list * (size_t)size);
  if (list == NULL) give_up("out of memory");
  return list;
}

/* Bytes of a rank's part; `more` is the other rank in an all-to-all. */
static int part(int block, int of, int more) { return block >= 0 ? block : -block * ((of + more) % 3); }

static void call(const char* what, MPI_Comm comm, int size, int block, int root) {
  const MPI_Datatype byte = MPI_BYTE;
  const MPI_Op op = MPI_BXOR;
  size_t all = (size_t)abs(block) * (size_t)size * 2;
  char *in = memory(all), *out = memory(all);
  int to_all = !strncmp(what, "alltoall", 8), *displs = numbers(size), *counts = numbers(size);
  MPI_Datatype* types = malloc(sizeof *types * (size_t)size);
  for (int i = 0, at = 0; i < size; i++) {
    counts[i] = part(block, i, to_all ? rank : 0);
    displs[i] = at;
    at += counts[i];
    types[i] = byte;
  }
  int mine = part(block, rank, 0);
  if (!strcmp(what, "barrier"))
    MPI_Barrier(comm);
  else if (!strcmp(what, "bcast"))
    MPI_Bcast(in, block, byte, root, comm);
  else if (!strcmp(what, "reduce"))
    MPI_Reduce(in, out, block, byte, op, root, comm);
  else if (!strcmp(what, "allreduce"))
    MPI_Allreduce(in, out, block, byte, op, comm);
  else if (!strcmp(what, "gather"))
    MPI_Gather(in, block, byte, out, block, byte, root, comm);
  else if (!strcmp(what, "gatherv"))
    MPI_Gatherv(in, mine, byte, out, counts, displs, byte, root, comm);
  else if (!strcmp(what, "scatter"))
    MPI_Scatter(in, block, byte, out, block, byte, root, comm);
  else if (!strcmp(what, "scatterv"))
    MPI_Scatterv(in, counts, displs, byte, out, mine, byte, root, comm);
  else if (!strcmp(what, "allgather"))
    MPI_Allgather(in, block, byte, out, block, byte, comm);
  else if (!strcmp(what, "allgatherv"))
    MPI_Allgatherv(in, mine, byte, out, counts, displs, byte, comm);
  else if (!strcmp(what, "alltoall"))
    MPI_Alltoall(in, block, byte, out, block, byte, comm);
  else if (!strcmp(what, "alltoallv"))
    MPI_Alltoallv(in, counts, displs, byte, out, counts, displs, byte, comm);
  else if (!strcmp(what, "alltoallw"))
    MPI_Alltoallw(in, counts, displs, types, out, counts, displs, types, comm);
  else if (!strcmp(what, "reduce_scatter"))
    MPI_Reduce_scatter(in, out, counts, byte, op, comm);
  else if (!strcmp(what, "reduce_scatter_block"))
    MPI_Reduce_scatter_block(in, out, block, byte, op, comm);
  else if (!strcmp(what, "scan"))
    MPI_Scan(in, out, block, byte, op, comm);
  else if (!strcmp(what, "exscan"))
    MPI_Exscan(in, out, block, byte, op, comm);
  else
    give_up("no such collective");
  free(types);
  free(counts);
  free(displs);
  free(out);
  free(in);
}

static int root_of(int number, int size) { return number == 0 ? 0 : size / 2; }

/* A block size and which root: of each communicator size there is one communicator for it, null where it is not needed.
 */
typedef struct {
  int block, root, most;
  MPI_Comm comms[MOST + 1];
} Way;

typedef struct {
  char what[64];
  int ranks, number;
  Way* ways[WAYS];
} Job;

static Way ways[WAYS];

static Way* way_of(int block, int root, int most) {
  for (int i = 0; i < WAYS; i++) {
    Way* one = &ways[i];
    if (one->most > 0 && (one->block != block || one->root != root)) continue;
    one->block = block;
    one->root = root;
    if (one->most < most) one->most = most;
    return one;
  }
  give_up("too many sizes of blocks");
  return NULL;
}

static Job job_of(const char* text) {
  Job job = {.number = 0};
  int roots, used = 0;
  if (sscanf(text, "%63[^:]:%d:%d%n", job.what, &roots, &job.ranks, &used) != 3 || job.ranks > ranks)
    give_up("not COLLECTIVE:ROOTS:RANKS:BLOCK");
  for (const char* rest = text + used; *rest == ':';) {
    char* end;
    int block = (int)strtol(rest + 1, &end, 10);
    for (int root = 0; root < roots; root++) {
      if (job.number == WAYS) give_up("too many blocks");
      job.ways[job.number++] = way_of(block, root, job.ranks);
    }
    rest = end;
  }
  return job;
}

/* Of the first ranks; the others have no part in it. */
static void make_communicators(void) {
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int tag = 0;
  for (int size = 2; size <= ranks; size++)
    for (Way* one = ways; one < ways + WAYS; one++, tag++) {
      if (size > one->most || rank >= size) continue;
      int range[1][3] = {{0, size - 1, 1}};
      MPI_Group first;
      char name[64];
      MPI_Group_range_incl(world, 1, range, &first);
      MPI_Comm_create_group(MPI_COMM_WORLD, first, tag, &one->comms[size]);
      snprintf(name, sizeof name, "%d %d %d", size, one->block, root_of(one->root, size));
      MPI_Comm_set_name(one->comms[size], name);
      MPI_Group_free(&first);
    }
  MPI_Group_free(&world);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3) give_up("usage: collectives DIRECTORY COLLECTIVE:ROOTS:RANKS:BLOCK[:BLOCK...]...");
  directory = argv[1];
  if (ranks > MOST) give_up("too many ranks");
  Job* jobs = malloc(sizeof *jobs * (size_t)(argc - 2));
  Sent* before = malloc(sizeof *before * MOST);
  char name[4096];
  snprintf(name, sizeof name, "%s/%d", directory, rank);
  FILE* out = fopen(name, "w");
  if (jobs == NULL || out == NULL || before == NULL) give_up("cannot write, or out of memory");
  for (int i = 2; i < argc; i++) jobs[i - 2] = job_of(argv[i]);
  if (noted == NULL) noted = calloc(MOST, sizeof *noted);
  if (noted == NULL) give_up("out of memory");
  make_communicators();

  for (Job* job = jobs; job < jobs + argc - 2; job++)
    for (int size = rank < 2 ? 2 : rank + 1; size <= job->ranks; size++)
      for (int i = 0; i < job->number; i++) {
        Way* way = job->ways[i];
        int root = root_of(way->root, size);
        memcpy(before, noted, sizeof *before * MOST);
        call(job->what, way->comms[size], size, way->block, root);
        for (int to = 0; to < ranks; to++) {
          if (noted[to].messages == before[to].messages) continue;
          fprintf(out, "%s %d %d %d %d %lld %lld", job->what, size, way->block, root, to,
                  noted[to].messages - before[to].messages, noted[to].bytes - before[to].bytes);
          for (int bin = 0; bin < BINS; bin++)
            if (noted[to].bins[bin] != before[to].bins[bin])
              fprintf(out, " %d:%lld", bin, noted[to].bins[bin] - before[to].bins[bin]);
          fputc('\n', out);
        }
      }
  check_counters();
  fclose(out);
  MPI_Finalize();
  return 0;
}
