/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into programs that run Python: counts the system calls by which commlens reads their memory, and writes the
 * number into the file READS_FILE at the end. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static unsigned long reads;

ssize_t process_vm_readv(pid_t pid, const struct iovec* to, unsigned long to_count, const struct iovec* from,
                         unsigned long from_count, unsigned long flags) {
  __atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
  return syscall(SYS_process_vm_readv, pid, to, to_count, from, from_count, flags);
}

__attribute__((destructor)) static void write_reads(void) {
  const char* name = getenv("READS_FILE");
  FILE* file = name ? fopen(name, "w") : NULL;
  if (!file) return;
  fprintf(file, "%lu\n", reads);
  fclose(file);
}
