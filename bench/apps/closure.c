/* SPDX-License-Identifier: Apache-2.0
 * REPEATS times Warshall's algorithm: who reaches whom in a graph with VERTICES vertices, as a matrix of bits.  Each
 * rank has some of the rows, and gives the others a row when it is its turn.  The vertices stand in a line, and edges
 * lead three and five places on only, so it is known what follows. */
#include <string.h>

#include "app.h"

static size_t words;

static void set(uint64_t* row, long bit) { row[bit / 64] |= UINT64_C(1) << bit % 64; }
static int get(const uint64_t* row, long bit) { return (int)(row[bit / 64] >> bit % 64 & 1); }

/* From one vertex to another in the line, in which number n / 2 comes first: a rank needs rows from either side. */
static long distance(long i, long j, long n) { return (j + n - n / 2) % n - (i + n - n / 2) % n; }
static int edge(long places) { return places == 3 || places == 5; }
/* Sums of threes and fives: all but 1, 2, 4 and 7. */
static int reached(long places) { return edge(places) || places == 6 || places >= 8; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "closure VERTICES REPEATS");
  const long n = arguments[0], repeats = arguments[1];
  const long first = n * rank / ranks, end = n * (rank + 1) / ranks;
  words = (size_t)(n + 63) / 64;
  uint64_t *const rows = app_array((size_t)(end - first) + 1, words * sizeof *rows), *const row =
                                                                                         app_array(words, sizeof *row);
  long pairs = 0;
  for (long repeat = 0; repeat < repeats; ++repeat) {
    memset(rows, 0, (size_t)(end - first) * words * sizeof *rows);
    for (long i = first; i < end; ++i)
      for (long j = 0; j < n; ++j)
        if (edge(distance(i, j, n))) set(&rows[(size_t)(i - first) * words], j);
    for (int owner = 0; owner < ranks; ++owner)
      for (long k = n * owner / ranks; k < n * (owner + 1) / ranks; ++k) {
        if (rank == owner) memcpy(row, &rows[(size_t)(k - first) * words], words * sizeof *row);
        MPI_Bcast(row, (int)words, MPI_UINT64_T, owner, MPI_COMM_WORLD);
        for (long i = first; i < end; ++i) {
          uint64_t* const mine = &rows[(size_t)(i - first) * words];
          if (!get(mine, k)) continue;
          for (size_t word = 0; word < words; ++word) mine[word] |= row[word];
        }
      }
    pairs = 0;
    for (long i = first; i < end; ++i)
      for (long j = 0; j < n; ++j) {
        const int is = get(&rows[(size_t)(i - first) * words], j);
        app_check(is == reached(distance(i, j, n)));
        pairs += is;
      }
  }
  free(rows), free(row);
  return app_end((double)pairs);
}
