/* SPDX-License-Identifier: Apache-2.0
 * Programs that are sent the signal of COMMLENS_HANG_SIGNAL: `hang_signal CASE FOLDER`.
 *
 * Each rank leaves its process id in FOLDER/<rank>.  Who waits, waits in a read from the FIFO FOLDER/go. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;
static char const* folder;
static volatile sig_atomic_t handled;
static sigjmp_buf back;

static void on_user(int number) { (void)number, ++handled; }
static void on_user_jump(int number) { (void)number, ++handled, siglongjmp(back, 1); }

static void take(void (*handler)(int), int flags) {
  struct sigaction const action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(SIGUSR2, &action, NULL);
}

static void tell_pid(void) {
  char name[4096], ready[4096];
  snprintf(name, sizeof name, "%s/.%d", folder, rank);
  snprintf(ready, sizeof ready, "%s/%d", folder, rank);
  FILE* const file = fopen(name, "w");
  fprintf(file, "%d", (int)getpid());
  fclose(file);
  rename(name, ready);
}

/* A system call that begins again after the signal, unless the program wants to hear of it. */
static void wait_to_go(void) {
  char name[4096], byte;
  snprintf(name, sizeof name, "%s/go", folder);
  int const file = open(name, O_RDWR);
  if (read(file, &byte, 1) != 1) printf("rank %d: read: %s\n", rank, strerror(errno));
  close(file);
}

/* Rank 1 does not come to the barrier of its row.  Only rank 0 has another communicator, so that ranks count them
 * differently; names are those of the leader. */
static void stuck(void) {
  MPI_Comm row, own = MPI_COMM_NULL;
  int one = rank + 1, sum = 0;
  if (rank == 0) MPI_Comm_dup(MPI_COMM_SELF, &own);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 3 ? 1 : 0, rank, &row);
  MPI_Comm_set_name(row, rank == 3 ? "alone" : "three");
  tell_pid();
  if (rank == 1) wait_to_go();
  if (rank != 3) MPI_Barrier(row);
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d: %d\n", rank, sum);
  MPI_Comm_free(&row);
  if (rank == 0) MPI_Comm_free(&own);
}

/* Rank 1 comes to MPI_Init later than rank 0; before it only the launcher tells who is who. */
static void be_late(void) {
  for (int i = 0; i < 2; ++i) {
    char const* const text = getenv(i == 0 ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK");
    if (text != NULL) rank = atoi(text);
  }
  take(SIG_IGN, 0); /* the signal may come before MPI_Init is called */
  tell_pid();
  if (rank == 1) wait_to_go();
}

static void* receive(void* comm) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, 1, 0, *(MPI_Comm*)comm, MPI_STATUS_IGNORE);
  return NULL;
}

/* Two threads of rank 0 wait, each in a communicator of its own, for rank 1. */
static void threads(void) {
  MPI_Comm comms[2];
  pthread_t other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  tell_pid();
  if (rank == 0) {
    pthread_create(&other, NULL, receive, &comms[1]);
    receive(&comms[0]);
    pthread_join(other, NULL);
  } else if (rank == 1) {
    wait_to_go();
    for (int i = 0; i < 2; ++i) MPI_Send(&rank, 1, MPI_INT, 0, 0, comms[i]);
  }
  printf("rank %d done\n", rank);
}

/* The effect of the signal on the program itself. */
static void send_myself(char const* what) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(what, "jumps") == 0) {
    for (volatile int i = 0; i < 3; ++i) {
      if (sigsetjmp(back, 1) == 0) raise(SIGUSR2);
    }
  } else if (strcmp(what, "child") == 0) {
    fflush(stdout);
    if (fork() == 0) {
      raise(SIGUSR2);
      _exit(0);
    }
    wait(NULL);
  } else if (rank == 0 || strcmp(what, "ends") != 0) {
    raise(SIGUSR2);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d: handled %d\n", rank, (int)handled);
}

int main(int argc, char** argv) {
  char const* const what = argv[1];
  int provided;
  folder = argv[2];
  if (strcmp(what, "before") == 0) take(on_user, 0);
  if (strcmp(what, "once") == 0) take(on_user, SA_RESETHAND);
  if (strcmp(what, "jumps") == 0) take(on_user_jump, 0);
  if (strcmp(what, "ignored") == 0) take(SIG_IGN, 0);
  if (strcmp(what, "late") == 0) be_late();
  if (strcmp(what, "forked") == 0) {
    /* MPI is called in one process, as far as that is allowed before MPI_Init, and used in another. */
    int state = 0;
#if MPI_VERSION >= 4
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_free(&info);
#endif
    pid_t const child = fork();
    if (child != 0) {
      waitpid(child, &state, 0);
      return state != 0;
    }
  }
  MPI_Init_thread(&argc, &argv, strcmp(what, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(what, "after") == 0) take(on_user, 0);
  if (strcmp(what, "stuck") == 0) {
    stuck();
  } else if (strcmp(what, "threads") == 0) {
    threads();
  } else if (strcmp(what, "late") == 0) {
    printf("rank %d done\n", rank);
  } else {
    send_myself(what);
  }
  MPI_Finalize();
  return 0;
}
