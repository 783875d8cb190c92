/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes to a file, so that ROMIO calls MPI inside the calls, and counts how often process_vm_readv is called
 * meanwhile: the kernel refuses it from a filter on, with a signal.  With an argument, the program has an error
 * handler. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t calls;

static void refused(int signal, siginfo_t* info, void* context) {
  ucontext_t* const state = context;
  (void)signal, (void)info;
  ++calls;
#if defined(__x86_64__)
  state->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
  state->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#else
  (void)state;
#endif
}

static int count_calls(void) {
  struct sigaction action;
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  memset(&action, 0, sizeof action);
  action.sa_sigaction = refused;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, NULL);
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void returns(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code; }

static void write_some(MPI_File file, int times) {
  char data[64] = {0};
  for (int i = 0; i < times; ++i) {
    MPI_File_write_at(file, (MPI_Offset)(i % 8) * 64, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, (MPI_Offset)(i % 8) * 64, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  MPI_File file;
  MPI_Init(&argc, &argv);
  if (argc > 2) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(returns, &handler);
    MPI_Errhandler_free(&handler);
  }
  MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                &file);
  write_some(file, 10);
  if (!count_calls()) {
    printf("no filter\n");
  } else {
    calls = 0;
    write_some(file, 1000);
    printf("process_vm_readv: %d\n", (int)calls);
    syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0);
    printf("after one more: %d\n", (int)calls);
  }
  fflush(stdout);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
