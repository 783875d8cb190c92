/* SPDX-License-Identifier: Apache-2.0
 * Calls commlens_reorder() for handles 1 to 4 and 0, also as Fortran does, with what lies behind the new handle.  With
 * an argument, it first loads this MPI library for itself only, as Python does. */
#include <commlens/commlens.h>
#include <dlfcn.h>
#include <stdio.h>

#ifdef POINTERS
typedef struct comm* handle;
#define NUMBER(h) ((long)(h) == 9 ? 9 : (int)((long)(h) & 0xffff))
#define HANDLE(n) ((handle)(0x7fff00000000 | (n)))
#define UNCHANGED ((handle)9)
#else
typedef int handle;
#define NUMBER(h) (h)
#define HANDLE(n) (n)
#define UNCHANGED 9
#endif

void commlens_reorder_f_(const int* comm, int* newcomm, int* outcome);

int main(int argc, char** argv) {
  if (argc > 1 && dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == 0) return 1;
  for (int n = 1; n <= 5; ++n) {
    struct {
      handle before, made, behind;
    } box = {UNCHANGED, UNCHANGED, UNCHANGED};
    const handle comm = HANDLE(n % 5);
    const int outcome = commlens_reorder(&comm, &box.made);
    printf("%d: %d %d\n", n % 5, outcome, NUMBER(box.made));
    if (box.before != UNCHANGED || box.behind != UNCHANGED) printf("written beside\n");
  }
  int number = 1, made = 9, outcome = 9;
  commlens_reorder_f_(&number, &made, &outcome);
  printf("Fortran: %d %d\n", outcome, made);
  printf("null: %d\n", commlens_reorder(0, 0));
  return 0;
}
