/* SPDX-License-Identifier: Apache-2.0
 *
 * Usage: memory start | dup|split|group N [unused] | live N | cells N | requests N
 *
 * What memory a process has while it makes communicators and frees them, keeps them, makes calls of many kinds, and has
 * requests under way; bench/memory.py runs it without and with commlens.  Prints lines "WHAT N KIB", of this process:
 * what is resident, and what its files on /dev/shm hold beyond that.  One process; knows of commlens only its files. */
#include <glob.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

static long line_of(const char* file, const char* name) {
  char line[256];
  long kib = 0;
  FILE* const in = fopen(file, "r");
  while (in != NULL && fgets(line, sizeof line, in) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) kib += strtol(line + strlen(name), NULL, 10);
  }
  if (in != NULL) fclose(in);
  return kib;
}

/* Memory that a file of ours takes but that nobody has touched yet is reserved: it counts, too. */
static long reserved(void) {
  char pattern[96], line[512];
  long kib = 0;
  glob_t found;
  snprintf(pattern, sizeof pattern, "/dev/shm/commlens-*-%ld-*.arena", (long)getpid());
  if (glob(pattern, 0, NULL, &found) != 0) return 0;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    struct stat facts;
    if (stat(found.gl_pathv[i], &facts) == 0) kib += (long)facts.st_blocks / 2;
  }
  FILE* const in = fopen("/proc/self/smaps", "r");
  int is_ours = 0;
  while (in != NULL && fgets(line, sizeof line, in) != NULL) {
    if (strchr(line, '-') != NULL && strstr(line, " r") != NULL) is_ours = strstr(line, ".arena") != NULL;
    if (is_ours && strncmp(line, "Rss:", 4) == 0) kib -= strtol(line + 4, NULL, 10);
  }
  if (in != NULL) fclose(in);
  globfree(&found);
  return kib;
}

static void tell(const char* what, long n) {
  printf("%s %ld %ld\n", what, n, line_of("/proc/self/status", "VmRSS:") + reserved());
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void use(MPI_Comm comm) {
  long in = 1, out;
  MPI_Allreduce(&in, &out, 1, MPI_LONG, MPI_SUM, comm);
  MPI_Sendrecv(&in, 1, MPI_LONG, 0, 0, &out, 1, MPI_LONG, 0, 0, comm, MPI_STATUS_IGNORE);
}

/* Makes, uses and frees: copies, parts, or communicators of a group.  A line at each power of ten from 100 on; and what
 * the fastest hundred of them took, each.  For callgrind, a dump for every twenty. */
static void churn(const char* how, long most, int are_used) {
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  double best = 1e9, begin = seconds();
  const long block = 100;
  long next = 100;
  for (long i = 1; i <= most; ++i) {
    MPI_Comm made;
    if (strcmp(how, "dup") == 0) MPI_Comm_dup(MPI_COMM_WORLD, &made);
    if (strcmp(how, "split") == 0) MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made);
    if (strcmp(how, "group") == 0) MPI_Comm_create_group(MPI_COMM_WORLD, group, (int)(i % 1000), &made);
    if (are_used) use(made);
    MPI_Comm_free(&made);
    if (i % block == 0) {
      const double end = seconds();
      if (end - begin < best) best = end - begin;
      begin = seconds();
    }
    if (i % 20 == 0) {
      CALLGRIND_DUMP_STATS_AT("twenty");
      CALLGRIND_ZERO_STATS;
    }
    if (i != next) continue;
    tell(how, i);
    next *= 10;
    begin = seconds();
  }
  MPI_Group_free(&group);
  printf("ns %ld %.0f\n", most, best / (double)block * 1e9);
}

static void live(long n) {
  MPI_Comm* const made = calloc((size_t)n, sizeof *made);
  tell("live", 0);
  for (long i = 0; i < n; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &made[i]);
    use(made[i]);
  }
  tell("live", n);
  for (long i = 0; i < n; ++i) MPI_Comm_free(&made[i]);
  free(made);
}

/* Calls that are each of another communicator, procedure or size, and so count in another cell. */
static void cells(long n) {
  enum { COMMS = 64, SIZES = 20 };
  static char in[1 << SIZES];
  MPI_Comm made[COMMS];
  memset(in, 1, sizeof in);
  for (int c = 0; c < COMMS; ++c) MPI_Comm_dup(MPI_COMM_WORLD, &made[c]);
  for (int pass = 0; pass < 2; ++pass) { /* the first has the MPI library make what it needs */
    const long calls = pass == 0 ? COMMS : n;
    if (pass == 1) tell("cells", 0);
    for (long i = 0; i < calls; ++i) {
      MPI_Comm comm = made[i % COMMS];
      const int size = 1 << (i / COMMS % SIZES);
      switch (i / COMMS / SIZES) {
        case 0: MPI_Send(in, size, MPI_CHAR, MPI_PROC_NULL, 0, comm); break;
        case 1: MPI_Bsend(in, size, MPI_CHAR, MPI_PROC_NULL, 0, comm); break;
        case 2: MPI_Rsend(in, size, MPI_CHAR, MPI_PROC_NULL, 0, comm); break;
        case 3: MPI_Ssend(in, size, MPI_CHAR, MPI_PROC_NULL, 0, comm); break;
        default: MPI_Recv(in, size, MPI_CHAR, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE); break;
      }
    }
    if (pass == 1) tell("cells", n);
  }
  for (int c = 0; c < COMMS; ++c) MPI_Comm_free(&made[c]);
}

static void requests(long n) {
  MPI_Request* const under_way = calloc((size_t)n, sizeof *under_way);
  char* const in = calloc((size_t)n, 1);
  memset(under_way, 1, (size_t)n * sizeof *under_way);
  memset(in, 1, (size_t)n);
  tell("requests", 0);
  for (long i = 0; i < n; ++i) MPI_Irecv(&in[i], 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &under_way[i]);
  tell("requests", n);
  for (long i = 0; i < n; ++i) MPI_Cancel(&under_way[i]);
  for (long i = 0; i < n; ++i) MPI_Wait(&under_way[i], MPI_STATUS_IGNORE);
  free(under_way), free(in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const what = argc > 1 ? argv[1] : "start";
  const long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
  if (strcmp(what, "start") == 0) tell("start", 0);
  if (strcmp(what, "dup") == 0 || strcmp(what, "split") == 0 || strcmp(what, "group") == 0) churn(what, n, argc <= 3);
  if (strcmp(what, "live") == 0) live(n);
  if (strcmp(what, "cells") == 0) cells(n);
  if (strcmp(what, "requests") == 0) requests(n);
  MPI_Finalize();
  printf("end %ld %ld\n", n, line_of("/proc/self/status", "VmHWM:"));
  return 0;
}
