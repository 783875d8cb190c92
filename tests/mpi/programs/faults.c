/* SPDX-License-Identifier: Apache-2.0
 * Programs that end badly, or do what a profiler may not expect: `faults CASE`, 2 ranks. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank;

static void work(int n) {
  int one = 1, sum = 0;
  for (int i = 0; i < n; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("sum %d\n", sum);
    fflush(stdout);
  }
}

static void print_state_and_version(char const* when) {
  int initialized, finalized, version, subversion, length;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  MPI_Get_version(&version, &subversion);
  MPI_Get_library_version(text, &length);
  printf("%s %d %d %d.%d %zu\n", when, initialized, finalized, version, subversion, strlen(text));
  fflush(stdout);
}

/* Ends this process, or the job, in the cases that do so before MPI_Finalize. */
static void end_badly(char const* what) {
  if (strcmp(what, "exit0") == 0) exit(0);
  if (strcmp(what, "exit3") == 0) exit(3);
  if (strcmp(what, "_exit0") == 0) _exit(0);
  if (strcmp(what, "one_exits") == 0 && rank == 1) exit(0);
  if (strcmp(what, "abort") == 0) {
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    for (;;) pause();
  }
  if (strcmp(what, "segv") == 0) {
    if (rank == 1) raise(SIGSEGV);
    for (;;) pause();
  }
  /* while the other one is in MPI_Finalize already */
  if (strcmp(what, "late_abort") == 0 && rank == 1) usleep(500000), MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(what, "late_segv") == 0 && rank == 1) usleep(500000), raise(SIGSEGV);
  if (strcmp(what, "kill") == 0) {
    if (rank == 1) raise(SIGKILL);
    for (;;) pause();
  }
}

static void start_children(void) {
  for (int how = 0; how < 2; ++how) {
    pid_t const child = fork();
    if (child == 0) {
      if (how == 0) exit(11); /* runs what was registered with atexit */
      execlp("sh", "sh", "-c", "exit 12", (char*)NULL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (rank == 0) printf("child %d\n", WEXITSTATUS(status));
  }
  int const status = system("exit 13");
  if (rank == 0) printf("child %d\n", WEXITSTATUS(status));
  work(5);
}

static void limit_file_size(void) {
  /* enough for a profile that is too large for the limit */
  for (int i = 0; i < 1000; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
  }
  struct rlimit const limit = {16384, 16384};
  setrlimit(RLIMIT_FSIZE, &limit);
}

static void print_handlers(void) {
  /* nobody else may own the application's signals or leave another working directory behind */
  unsigned seen = 0;
  for (int number = 1; number < 32; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL) seen |= 1u << number;
  }
  printf("handlers %x umask %o\n", seen, (unsigned)umask(0));
  fflush(stdout);
}

static void idup_to_the_end(void) {
  /* when there are no more, the variable is left with what is no communicator */
  MPI_Comm made = MPI_COMM_NULL;
  int failed = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 70000 && !failed; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    failed = MPI_Comm_idup(MPI_COMM_WORLD, &made, &request) != MPI_SUCCESS ||
             MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  }
  printf("failed %d\n", failed);
}

int main(int argc, char** argv) {
  char const* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "outside") == 0) print_state_and_version("before");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  work(10);
  if (what[0] != '\0') {
    /* what rank 0 printed has to be out before another rank ends the job */
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(300000);
  }
  if (strcmp(what, "return") == 0) return 0;
  end_badly(what);
  if (strcmp(what, "fork") == 0) start_children();
  if (strcmp(what, "chdir") == 0 && chdir("/") != 0) return 1;
  if (strcmp(what, "limit") == 0) limit_file_size();
  if (strcmp(what, "handlers") == 0) print_handlers();
  if (strcmp(what, "no_files") == 0) /* the last file descriptor is taken */
    while (dup(2) >= 0) {
    }
  if (strcmp(what, "no_stderr") == 0) {
    /* whoever writes to stderr now writes into a file of the application */
    close(2);
    if (open(rank == 0 ? "data.0" : "data.1", O_CREAT | O_RDWR, 0600) != 2 || write(2, "data\n", 5) != 5) return 1;
  }
  if (strcmp(what, "idup_to_the_end") == 0) idup_to_the_end();
  if (strcmp(what, "one_sided_barrier") == 0 && rank == 0) {
    /* a fault that MPI libraries let pass: nobody else comes, and nobody waits for it */
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
  }
  if (strcmp(what, "init_twice") == 0) MPI_Init(&argc, &argv);
  MPI_Finalize();
  if (strcmp(what, "finalize_twice") == 0) MPI_Finalize();
  if (strcmp(what, "limit") == 0) {
    sigset_t pending;
    sigpending(&pending);
    printf("after %d\n", sigismember(&pending, SIGXFSZ));
  }
  if (strcmp(what, "outside") == 0) print_state_and_version("after");
  return strcmp(what, "return5") == 0 ? 5 : 0;
}
