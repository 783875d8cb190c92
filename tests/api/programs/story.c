/* SPDX-License-Identifier: Apache-2.0 */
/* The story that every language tells, here in C. */
#include <commlens/commlens.h>
#include <stdio.h>
#include <string.h>

static int early(int value) {
  commlens_begin("early");
  if (value > 0) {
    commlens_end("early");
    return value;
  }
  commlens_end("early");
  return 0;
}

int main(void) {
  const commlens_region_t solve = commlens_region("solve");
  const commlens_metric_t residual = commlens_metric("residual", "1"), cells = commlens_metric("cells", "");
  char endless[1001];
  memset(endless, 'x', sizeof endless - 1);
  endless[sizeof endless - 1] = '\0';

  commlens_begin("main");
  commlens_loop_begin("time steps", COMMLENS_LOOP_EACH);
  for (int step = 0; step < 3; ++step) {
    commlens_loop_iteration();
    commlens_begin_region(solve);
    commlens_record(residual, 1.0 / (1 << step));
    commlens_end_region(solve);
  }
  commlens_loop_end("time steps");
  commlens_loop_begin("sweeps", COMMLENS_LOOP_SUM);
  commlens_loop_iteration();
  commlens_record(cells, 4096);
  commlens_loop_end("sweeps");

  commlens_begin("padded");
  commlens_tag("kind", "IO");
  commlens_end("padded");
  commlens_begin("Größe µ/\xe6\xb5\x81");
  commlens_end("Größe µ/\xe6\xb5\x81");
  commlens_begin("");
  commlens_end("");
  commlens_begin(endless);
  commlens_end(endless);
  const int answer = early(42);
  commlens_begin("thrown");
  commlens_end("thrown");

  commlens_pause();
  commlens_resume();
  commlens_reset();
  const int error = commlens_flush();
  commlens_end("main");
  printf("answer %d\n", answer);
  fprintf(stderr, "version '%s' active %d written %d\n", commlens_version(), commlens_active(), error == 0);
  return 0;
}
