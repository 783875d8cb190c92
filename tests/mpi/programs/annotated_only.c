/* SPDX-License-Identifier: Apache-2.0
 * Annotates and never calls MPI; `annotated_only PROGRAM ...` becomes that program in the middle of it. */
#include <commlens.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const commlens_metric_t metric = commlens_metric("value", "");
  commlens_begin("alone");
  commlens_record(metric, 1);
  commlens_loop_begin("loop", COMMLENS_LOOP_EACH);
  commlens_loop_iteration();
  if (argc > 1) execv(argv[1], argv + 1);
  commlens_end(NULL);
  commlens_end("nothing");
  printf("done, active %d, flush %d\n", commlens_active(), commlens_flush());
  return 7;
}
