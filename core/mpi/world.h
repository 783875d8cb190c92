// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/collect/group.h"

namespace [[gnu::visibility("hidden")]] commlens {

// late: some rank did not arrive in time.  through_files: a rank that ended has written its part.
enum class Arrivals { all, late, through_files };

// All processes of MPI_COMM_WORLD, in MPI_Finalize.  One such object at a time.
//
// Up to `most_ranks` processes collect by non-blocking collective operations on MPI_COMM_WORLD, which match no message
// of the application (docs/decisions/0038-collective-steps.md).  Messages between two processes could match a receive
// that the application has left behind; they take a communicator of our own, which takes several rounds to create.
class World : public Group {
 public:
  World() = default;
  ~World() override;

  int rank() const override;
  int size() const override;
  bool connect() override;
  bool send(int to, const void* bytes, std::size_t size) override;
  bool receive(int from, void* bytes, std::size_t size) override;
  CollectiveResult exchange(const void* own, std::size_t size, const char*& all) override;
  CollectiveResult gather(std::vector<char>& own) override;
  std::string_view gathered(int rank) const override;
  bool broadcast(char& answer) override;
  Ticks waited() const override { return waited_; }

  // The outcome of exchange(): not `all` if it was broken because other ranks did not arrive.
  Arrivals arrivals() const { return arrivals_; }

 private:
  bool is_small() const;
  CollectiveResult arrive(const void* own, std::size_t size, const char*& all);

  MPI_Comm own_comm_{};
  bool is_connected_ = false;
  std::unique_ptr<char[]> room_;  // on rank 0, for the packages of all
  Arrivals arrivals_ = Arrivals::all;
  Ticks begin_ = 0, waited_ = 0;
};

}  // namespace commlens
