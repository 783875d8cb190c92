// SPDX-License-Identifier: Apache-2.0
// Finds out whether all ranks have the same rules, without disturbing a rank that runs without commlens.  The messages
// go through Open MPI's point-to-point layer with a negative tag, which neither a receive of the application nor
// MPI_ANY_TAG matches.  To a rank without commlens they are lost, and nobody waits for it without limit:
//
//   rank 0 says hello to all, and waits for their answers, up to a time limit
//   another rank waits for the hello, up to the limit; without it, it never answers
//   having answered, it waits for the verdict, which rank 0 sends in any case
//
// So the verdict "equal" requires the answers of all, and all that have answered receive it.
#include "core/mpi/agreement.h"

#include <mpi.h>
#include <sched.h>

#include <cstdio>

#include "core/base/memory.h"
#include "core/job/job.h"
#include "core/mpi/api.h"
#include "core/mpi/bind.h"
#include "core/process/symbols.h"

namespace commlens {

#if defined(OPEN_MPI)

namespace {

constexpr int tag = -5;  // Open MPI's own tags begin at -10; -1 is MPI_ANY_TAG
constexpr int standard_mode = 4;

struct Layer {
  int (*recv)(void*, std::size_t, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) = nullptr;
  int (*send)(const void*, std::size_t, MPI_Datatype, int, int, int, MPI_Comm) = nullptr;
  int (*iprobe)(int, int, MPI_Comm, int*, MPI_Status*) = nullptr;
};

// Takes a function of the table if it has the expected name.
template <class Function>
bool take(Function& function, void* entry, const char* component, const char* name) noexcept {
  char full[64];
  std::snprintf(full, sizeof full, "mca_pml_%s_%s", component, name);
  if (entry == nullptr || find_symbol_beside(entry, full) != entry) return false;
  function = reinterpret_cast<Function>(entry);
  return true;
}

// Finds the functions in mca_pml, in the positions of Open MPI 4 and 5 (as pml_hook.cpp does).
bool find_layer(Layer& layer) noexcept {
  const void* const table = data_definition("mca_pml");
  void* copy[20];
  if (table == nullptr || !read_memory(table, copy, sizeof copy)) return false;
  for (const char* const component : {"ob1", "ucx"}) {
    for (const int first : {6, 7}) {
      if (take(layer.recv, copy[first + 2], component, "recv") &&
          take(layer.send, copy[first + 5], component, "send") &&
          take(layer.iprobe, copy[first + 6], component, "iprobe"))
        return true;
    }
  }
  return false;
}

class World {
 public:
  World(const Layer& layer, int seconds) : layer_(layer), end_(now_in_ns() + std::uint64_t(seconds) * 1000000000u) {}
  void send(int rank, std::uint64_t word) noexcept {
    layer_.send(&word, sizeof word, api.byte, rank, tag, standard_mode, api.comm_world);
  }
  // Returns false if no message comes until the limit.
  bool receive(int rank, std::uint64_t& word, bool is_limited) noexcept {
    for (int is_there = 0; is_there == 0;) {
      MPI_Status status;
      if (layer_.iprobe(rank, tag, api.comm_world, &is_there, &status) != MPI_SUCCESS) return false;
      if (is_there != 0) break;
      if (is_limited && now_in_ns() > end_) return false;
      sched_yield();
    }
    return layer_.recv(&word, sizeof word, api.byte, rank, tag, api.comm_world, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  }

 private:
  static std::uint64_t now_in_ns() noexcept {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
  }
  const Layer& layer_;
  const std::uint64_t end_;
};

}  // namespace

Agreement agree_in_world(std::uint64_t number, int seconds) noexcept {
  Layer layer;
  if (!find_layer(layer)) return Agreement::impossible;
  World world(layer, seconds);
  std::uint64_t word = 0;
  if (job.rank != 0) {
    if (!world.receive(0, word, true)) return Agreement::unheard;
    world.send(0, number);
    return world.receive(0, word, false) ? static_cast<Agreement>(word) : Agreement::missing;
  }
  for (int rank = 1; rank < job.size; ++rank) world.send(rank, number);
  Agreement verdict = Agreement::all_equal;
  for (int rank = 1; rank < job.size; ++rank) {
    if (!world.receive(rank, word, true)) {
      verdict = Agreement::missing;
    } else if (word != number && verdict == Agreement::all_equal) {
      verdict = Agreement::different;
    }
  }
  for (int rank = 1; rank < job.size; ++rank) world.send(rank, static_cast<std::uint64_t>(verdict));
  return verdict;
}

#else

Agreement agree_in_world(std::uint64_t, int) noexcept { return Agreement::impossible; }

#endif

}  // namespace commlens
