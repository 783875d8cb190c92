/* SPDX-License-Identifier: Apache-2.0
 * What the program of test_wrong_arguments.py is made of: one call a case, each in a process of its own, a copy of this
 * one, so that one that dies of its arguments takes no other with it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[65536], more[65536], text[65536];
static int zeros[64], ones[64];
static MPI_Aint far[64];
static MPI_Count many[64];
static MPI_Offset offset;
static MPI_Comm comm;
static MPI_Datatype type, types[64];
static MPI_Errhandler handler;
static MPI_File file, made_file;
static MPI_Group group, made_group;
static MPI_Info info, infos[4];
static MPI_Message message;
static MPI_Op op;
static MPI_Request request, requests[8];
static MPI_Status status, statuses[8];
static MPI_Win win, made_win;

typedef int call(void);

static void try_all(int n, char const* const* names, call* const* calls) {
  for (int i = 0; i < n; ++i) {
    fflush(stdout);
    pid_t const child = fork();
    if (child == 0) {
      alarm(2);
      int class = 0;
      int const code = calls[i]();
      if (code != MPI_SUCCESS) PMPI_Error_class(code, &class);
      _exit(class);
    }
    int how;
    waitpid(child, &how, 0);
    printf("%s: %s %d\n", names[i], WIFEXITED(how) ? "class" : "signal",
           WIFEXITED(how) ? WEXITSTATUS(how) : WTERMSIG(how));
  }
}

static void begin(int argc, char** argv) {
  struct rlimit const none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int i = 0; i < 64; ++i) {
    ones[i] = 1;
    many[i] = 1;
    types[i] = MPI_INT;
  }
  for (int i = 0; i < 8; ++i) requests[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < 4; ++i) infos[i] = MPI_INFO_NULL;
  request = MPI_REQUEST_NULL;
  message = MPI_MESSAGE_NO_PROC;
  MPI_Comm_group(MPI_COMM_SELF, &group);
  MPI_Win_create(more, sizeof more, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_File_open(MPI_COMM_SELF, "wrong.dat", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                &file);
  MPI_File_write(file, buffer, sizeof buffer, MPI_BYTE, &status); /* or what is read depends on what was written */
}

static void end(void) {
  MPI_File_close(&file);
  MPI_Win_free(&win);
  MPI_Group_free(&group);
  MPI_Finalize();
}
