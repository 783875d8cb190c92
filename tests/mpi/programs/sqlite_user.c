/* SPDX-License-Identifier: Apache-2.0
 * A program with an SQLite of its own, the system's, in use before, during and after MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* what of sqlite3.h is needed here */
typedef struct sqlite3 sqlite3;
extern int sqlite3_open(char const*, sqlite3**);
extern int sqlite3_exec(sqlite3*, char const*, int (*)(void*, int, char**, char**), void*, char**);
extern int sqlite3_close(sqlite3*);
extern int sqlite3_shutdown(void);
extern long long sqlite3_memory_used(void);
extern char const* sqlite3_libversion(void);

static int rows;
static int count(void* unused, int n, char** values, char** names) {
  (void)unused, (void)n, (void)names;
  rows = atoi(values[0]);
  return 0;
}

int main(int argc, char** argv) {
  sqlite3* db;
  int rank, one = 1, sum = 0;
  char name[32];
  if (sqlite3_open(":memory:", &db) != 0 || sqlite3_exec(db, "CREATE TABLE early(x)", NULL, NULL, NULL) != 0) return 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(name, sizeof name, "mine.%d.sqlite", rank);
  sqlite3* mine;
  if (sqlite3_open(name, &mine) != 0) return 2;
  if (sqlite3_exec(mine, "PRAGMA synchronous=OFF; CREATE TABLE t(x)", NULL, NULL, NULL) != 0) return 3;
  for (int i = 0; i < 20; ++i) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sqlite3_exec(mine, "INSERT INTO t VALUES(1)", NULL, NULL, NULL) != 0) return 4;
    if (sqlite3_exec(db, "INSERT INTO early VALUES(1)", NULL, NULL, NULL) != 0) return 5;
  }
  if (sqlite3_exec(mine, "BEGIN; INSERT INTO t VALUES(2)", NULL, NULL, NULL) != 0) return 6;
  MPI_Finalize(); /* in the middle of a transaction */
  if (sqlite3_exec(mine, "COMMIT; SELECT COUNT(*) FROM t", count, NULL, NULL) != 0) return 7;
  printf("rank %d: %d rows, ", rank, rows);
  if (sqlite3_exec(db, "SELECT COUNT(*) FROM early", count, NULL, NULL) != 0) return 8;
  sqlite3_close(mine);
  sqlite3_close(db);
  printf("%d early, %lld bytes left, %d, %s\n", rows, sqlite3_memory_used(), sqlite3_shutdown(), sqlite3_libversion());
  return 0;
}
