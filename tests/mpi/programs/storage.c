/* SPDX-License-Identifier: Apache-2.0
 * A job whose storage goes bad while it runs: `storage STEP...`, each an action with its arguments.  All ranks take
 * each step together, and what they compute shows in a line of rank 0 at the end. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int rank, size;
static long done;

static void work(int n) {
  for (int i = 0, one = 1, sum = 0; i < n; ++i) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    done += sum;
  }
}

/* Communicators, so that there is more and more to remember. */
static void grow(int n) {
  for (int i = 0; i < n; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
}

/* Takes all that is left of a file system. */
static void fill(const char* directory) {
  static const char block[4096];
  char name[4096];
  snprintf(name, sizeof name, "%s/filler", directory);
  int const file = open(name, O_WRONLY | O_CREAT, 0600);
  if (file < 0) return;
  for (size_t n = sizeof block; n > 0;)
    if (write(file, block, n) <= 0) n /= 2;
  close(file);
}

static void obey(size_t n, struct sock_filter* rules) {
  struct sock_fprog program = {(unsigned short)n, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    fputs("no seccomp\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 77);
  }
}
#define NUMBER(field) (unsigned)offsetof(struct seccomp_data, field)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER(field))

/* From now on this process is over its quota: the kernel refuses it pages of files.  Messages are smaller than that. */
static void quota(void) {
  struct sock_filter rules[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 3),
      LOAD(args[2]),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 4096, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 122 /* EDQUOT */),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  obey(sizeof rules / sizeof *rules, rules);
}

/* From now on the kernel refuses this process to have files brought to disk, and does not say which file system it has,
 * so that it must try. */
static void nosync(int error) {
  struct sock_filter rules[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstatfs, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 2),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 38 /* ENOSYS */),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  obey(sizeof rules / sizeof *rules, rules);
}

static void until(double seconds) {
  for (double const begin = MPI_Wtime();;) {
    int over = MPI_Wtime() - begin > seconds;
    MPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (over) return;
    usleep(1000);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 2) return MPI_Finalize(); /* not a single call more */
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int alone = 0;
  for (char** step = argv + 1; *step != NULL; ++step) {
    char const* const what = *step;
    if (strcmp(what, "quota") == 0) quota();
    if (strcmp(what, "nosync") == 0) nosync(atoi(*++step));
    if (strcmp(what, "alone") == 0) alone = 1;
    if (strcmp(what, "work") == 0) work(atoi(*++step));
    if (strcmp(what, "grow") == 0) grow(atoi(*++step));
    if (strcmp(what, "await") == 0)
      for (++step; access(*step, F_OK) != 0;) usleep(1000);
    if (strcmp(what, "until") == 0) until(atof(*++step));
    if (strcmp(what, "fill") == 0 && ++step && rank == 0) fill(*step);
    if (strcmp(what, "vanish") == 0 && ++step && rank == 0 && rmdir(*step) != 0) perror(*step);
    if (strcmp(what, "limit") == 0) {
      struct rlimit const limit = {(rlim_t)atol(*++step), RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(what, "exit") == 0) { /* without MPI_Finalize */
      printf("done %ld\n", done);
      exit(3);
    }
    if (strcmp(what, "abort") == 0 || strcmp(what, "kill") == 0 || strcmp(what, "term") == 0) {
      /* When one has died, the launcher terminates the others.  They die of their own signal all the same. */
      if (strcmp(what, "kill") == 0) signal(SIGTERM, SIG_IGN);
      /* rank 0 is heard before the end */
      if (rank == 0) printf("done %ld\n", done), fflush(stdout);
      MPI_Barrier(MPI_COMM_WORLD);
      usleep(200000);
      if (strcmp(what, "kill") == 0) raise(SIGKILL);
      if (rank == size - 1 && strcmp(what, "term") == 0) raise(SIGTERM);
      if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 7);
      for (;;) pause();
    }
  }
  if (rank == 0) printf("done %ld\n", done);
  if (alone && rank == 0) { /* a fault that MPI libraries let pass: the ranks meet through files */
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
  }
  MPI_Finalize();
  return 0;
}
