/* SPDX-License-Identifier: Apache-2.0
 * The ranks as a grid: CALLS times a sum and a broadcast of one number along its rows, and the same along its columns.
 */
#include "app.h"

/* Of the ranks first, first + stride, … of MPI_COMM_WORLD. */
static void collectives(MPI_Comm line, long i, int first, int stride, int size) {
  const long mine = i + rank;
  long sum;
  MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, line);
  app_check(sum == size * (i + first) + (long)stride * size * (size - 1) / 2);
  const int root = (int)(i % size);
  long value = mine;
  MPI_Bcast(&value, 1, MPI_LONG, root, line);
  app_check(value == i + first + root * stride);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long calls = app_begin(argc, argv, "rows_columns CALLS")[0];
  const int rows = app_rows(), columns = ranks / rows, row = rank / columns, column = rank % columns;
  MPI_Comm row_comm, column_comm;
  MPI_Comm_split(MPI_COMM_WORLD, row, column, &row_comm);
  MPI_Comm_split(MPI_COMM_WORLD, column, row, &column_comm);
  for (long i = 0; i < calls; ++i) {
    collectives(row_comm, i, row * columns, 1, columns);
    collectives(column_comm, i, column, columns, rows);
  }
  MPI_Comm_free(&row_comm);
  MPI_Comm_free(&column_comm);
  return app_end((double)calls);
}
