/* SPDX-License-Identifier: Apache-2.0
 * Ranks in pairs: a message goes there and comes back ROUNDS times, for 1, 2, 4, … bytes up to LARGEST. */
#include "app.h"

/* The ends are enough: to write or read all of it would take as long as the message. */
static void mark(unsigned char* message, long size, long number) {
  message[0] = message[size - 1] = (unsigned char)number;
}
static int marked(const unsigned char* message, long size, long number) {
  return message[0] == (unsigned char)number && message[size - 1] == (unsigned char)number;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "pingpong ROUNDS LARGEST");
  const long rounds = arguments[0], largest = arguments[1];
  if (ranks % 2 != 0) app_refuse("needs an even number of ranks");
  unsigned char* const message = app_array((size_t)largest, 1);
  const int peer = rank ^ 1;
  double bytes = 0;
  for (long size = 1; size <= largest; size *= 2) {
    for (long i = 0; i < rounds; ++i) {
      if (rank % 2 == 0) {
        mark(message, size, i);
        MPI_Send(message, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
      }
      MPI_Recv(message, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      app_check(marked(message, size, i + 1 - rank % 2));
      if (rank % 2 != 0) {
        mark(message, size, i + 1);
        MPI_Send(message, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
      }
      bytes += (double)size;
    }
  }
  free(message);
  return app_end(bytes);
}
