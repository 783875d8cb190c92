// SPDX-License-Identifier: Apache-2.0
// What Boost.MPI makes of MPI: serialised objects, skeletons, its own operators, groups and split communicators.
#include <boost/mpi.hpp>
#include <boost/serialization/map.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace mpi = boost::mpi;

struct Longer {
  std::string operator()(const std::string& a, const std::string& b) const { return a.size() >= b.size() ? a : b; }
};

int main(int argc, char** argv) {
  mpi::environment environment(argc, argv);
  mpi::communicator world;
  const int rank = world.rank(), size = world.size();
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;

  std::map<std::string, std::vector<int>> parcel{{"from", {rank}}, {"many", std::vector<int>(1000, rank)}}, got;
  mpi::request requests[2] = {world.isend(right, 1, parcel), world.irecv(left, 1, got)};
  mpi::wait_all(requests, requests + 2);
  std::cout << rank << " got " << got["from"][0] << " and " << got["many"].size() << "\n";

  std::cout << rank << " sum " << mpi::all_reduce(world, rank + 1, std::plus<int>()) << "\n";
  std::cout << rank << " longest "
            << mpi::all_reduce(world, std::string(static_cast<std::size_t>(rank + 1), 'x'), Longer()) << "\n";

  std::vector<std::string> names;
  mpi::gather(world, "rank " + std::to_string(rank), names, 0);
  for (const std::string& name : names) std::cout << name << "\n";
  std::string word = rank == 0 ? "broadcast" : "";
  mpi::broadcast(world, word, 0);
  std::vector<int> shares(static_cast<std::size_t>(size), rank), swapped;
  mpi::all_to_all(world, shares, swapped);
  for (const int one : swapped) std::cout << one << " ";
  std::cout << word << " " << mpi::scan(world, rank + 1, std::multiplies<int>()) << "\n";

  std::vector<double> values(10, rank);
  if (rank == 0) {
    for (int to = 1; to < size; ++to) {
      world.send(to, 2, mpi::skeleton(values));
      world.send(to, 3, mpi::get_content(values));
    }
  } else {
    world.recv(0, 2, mpi::skeleton(values));
    world.recv(0, 3, mpi::get_content(values));
  }
  std::cout << rank << " content " << values.size() << " " << values[0] << "\n";

  mpi::communicator half = world.split(rank % 2);
  std::cout << rank << " in half " << half.rank() << " of " << half.size() << "\n";
  mpi::group others = world.group().exclude(&rank, &rank + 1);
  std::cout << rank << " others " << others.size() << "\n";
  if (world.iprobe(mpi::any_source, 99)) std::cout << "a message nobody sent\n";
  world.barrier();
  return 0;
}
