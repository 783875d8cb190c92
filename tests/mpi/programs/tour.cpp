// SPDX-License-Identifier: Apache-2.0
// The tour of tour.c in C++: containers, lambdas and RAII around the same calls.
#include <mpi.h>

#include <array>
#include <iostream>
#include <numeric>
#include <vector>

namespace {
class Session {
 public:
  Session(int argc, char** argv) { MPI_Init(&argc, &argv); }
  ~Session() { MPI_Finalize(); }
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;
};

class Communicator {
 public:
  Communicator() = default;
  ~Communicator() { MPI_Comm_free(&handle_); }
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;
  operator MPI_Comm() const { return handle_; }
  MPI_Comm* operator&() { return &handle_; }
  int rank() const {
    int value;
    MPI_Comm_rank(handle_, &value);
    return value;
  }

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
};

MPI_Datatype type_of(int) { return MPI_INT; }
MPI_Datatype type_of(double) { return MPI_DOUBLE; }

template <class T>
void sum(T const* from, T* to, int count, MPI_Comm comm) {
  MPI_Allreduce(from, to, count, type_of(T{}), MPI_SUM, comm);
}

class Tour {
 public:
  Tour() {
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    std::iota(ints.begin(), ints.end(), rank);
    more = ints;
    reals.assign(16, rank);
    sums = reals;
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
  }

  void walk() {
    for (int i = 0; i < 30; ++i) sum(ints.data(), more.data(), 1, world);
    Communicator half;
    MPI_Comm_split(world, rank < size / 2 ? 1 : 0, rank, &half);
    for (int i = 0; i < 100; ++i) sum(reals.data(), sums.data(), 2, half);
    int const half_rank = half.rank();
    blocking();
    nonblocking(half, 1 - half_rank);
    in_place();
    blocks_of_different_sizes();
    more_communicators(half);
    one_sided();
    shared_file(half, half_rank);
  }

  void print() const {
    if (rank == 0) std::cout << "done " << more[0] + more[2] << std::endl;
  }

 private:
  void blocking() {
    MPI_Status status;
    if (rank % 2 == 0) {
      MPI_Send(ints.data(), 5, MPI_INT, right, 3, world);
      MPI_Recv(more.data(), 64, MPI_INT, left, 4, world, &status);
      MPI_Ssend(ints.data(), 2, MPI_INT, right, 5, world);
    } else {
      MPI_Recv(more.data(), 64, MPI_INT, left, 3, world, MPI_STATUS_IGNORE);
      MPI_Send(ints.data(), 7, MPI_INT, right, 4, world);
      MPI_Recv(more.data(), 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, MPI_STATUS_IGNORE);
    }
    int const above = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, below = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    MPI_Sendrecv(reals.data(), 3, MPI_DOUBLE, above, 6, sums.data(), 16, MPI_DOUBLE, below, 6, world,
                 MPI_STATUS_IGNORE);
    MPI_Send(ints.data(), 9, MPI_INT, MPI_PROC_NULL, 7, world);
    MPI_Recv(more.data(), 9, MPI_INT, MPI_PROC_NULL, 7, world, MPI_STATUS_IGNORE);
  }

  void nonblocking(MPI_Comm half, int partner) {
    MPI_Status status;
    std::array<MPI_Request, 8> requests;
    std::array<MPI_Status, 8> statuses;
    for (int i = 0; i < 4; ++i) {
      MPI_Irecv(&more[8 * i], 8, MPI_INT, partner, i, half, &requests[i]);
      MPI_Isend(ints.data(), i + 1, MPI_INT, partner, i, half, &requests[4 + i]);
    }
    MPI_Waitall(8, requests.data(), MPI_STATUSES_IGNORE);
    MPI_Irecv(more.data(), 8, MPI_INT, partner, 8, half, &requests[0]);
    MPI_Isend(ints.data(), 6, MPI_INT, partner, 8, half, &requests[1]);
    MPI_Wait(&requests[0], &status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Irecv(more.data(), 8, MPI_INT, partner, 9, half, &requests[0]);
    MPI_Irecv(sums.data(), 8, MPI_DOUBLE, left, 9, world, &requests[1]);
    MPI_Isend(ints.data(), 3, MPI_INT, partner, 9, half, &requests[2]);
    MPI_Isend(reals.data(), 4, MPI_DOUBLE, right, 9, world, &requests[3]);
    MPI_Waitall(4, requests.data(), statuses.data());
    MPI_Iallreduce(ints.data(), more.data(), 5, MPI_INT, MPI_MAX, half, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  }

  void in_place() {
    MPI_Allreduce(MPI_IN_PLACE, more.data(), 3, MPI_INT, MPI_SUM, world);
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : ints.data(), 2, MPI_INT, rank == 0 ? more.data() : nullptr, 2, MPI_INT, 0,
               world);
    MPI_Allgather(MPI_IN_PLACE, 2, MPI_INT, more.data(), 2, MPI_INT, world);
    MPI_Reduce(rank == 1 ? MPI_IN_PLACE : reals.data(), rank == 1 ? sums.data() : nullptr, 6, MPI_DOUBLE, MPI_SUM, 1,
               world);
    MPI_Scatter(rank == 0 ? ints.data() : nullptr, 4, MPI_INT, rank == 0 ? MPI_IN_PLACE : more.data(), 4, MPI_INT, 0,
                world);
    MPI_Alltoall(MPI_IN_PLACE, 4, MPI_INT, more.data(), 4, MPI_INT, world);
  }

  void blocks_of_different_sizes() {
    std::vector<int> const counts{1, 2, 3, 4}, offsets{0, 4, 8, 12}, mine(4, rank + 1);
    MPI_Gatherv(ints.data(), rank + 1, MPI_INT, more.data(), counts.data(), offsets.data(), MPI_INT, 2, world);
    MPI_Alltoallv(ints.data(), counts.data(), offsets.data(), MPI_INT, more.data(), mine.data(), offsets.data(),
                  MPI_INT, world);
  }

  void more_communicators(MPI_Comm half) {
    {
      Communicator copy;
      MPI_Comm_dup(half, &copy);
      MPI_Comm_set_name(copy, "copy of the half");
      MPI_Bcast(reals.data(), 10, MPI_DOUBLE, 1, copy);
      MPI_Barrier(copy);
    }
    {
      Communicator grid;
      int const dims[] = {2, 2}, periodic[] = {1, 0};
      MPI_Cart_create(world, 2, dims, periodic, 0, &grid);
      int source, destination;
      MPI_Cart_shift(grid, 1, 1, &source, &destination);
      MPI_Sendrecv(ints.data(), 4, MPI_INT, destination, 1, more.data(), 4, MPI_INT, source, 1, grid,
                   MPI_STATUS_IGNORE);
      MPI_Neighbor_allgather(ints.data(), 2, MPI_INT, more.data(), 2, MPI_INT, grid);
    }
    MPI_Barrier(MPI_COMM_SELF);
  }

  void one_sided() {
    MPI_Win window;
    MPI_Win_create(more.data(), 64 * sizeof(int), 1, MPI_INFO_NULL, world, &window);
    MPI_Win_fence(0, window);
    MPI_Put(ints.data(), 2, MPI_INT, right, 0, 2, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
  }

  void shared_file(MPI_Comm half, int half_rank) {
    MPI_File file;
    MPI_File_open(half, rank < size / 2 ? "tour.low" : "tour.high", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                  &file);
    MPI_File_write_at_all(file, 16 * half_rank, ints.data(), 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_File_read_at(file, 16 * half_rank, more.data(), 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
  }

  MPI_Comm const world = MPI_COMM_WORLD;
  int rank, size, right, left;
  std::vector<int> ints = std::vector<int>(64), more;
  std::vector<double> reals, sums;
};
}  // namespace

int main(int argc, char** argv) {
  Session session(argc, argv);
  Tour tour;
  tour.walk();
  tour.print();
  return 0;
}
