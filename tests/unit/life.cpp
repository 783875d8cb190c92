// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/life.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/arena/arena.h"
#include "core/base/clock.h"
#include "core/state/journal.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

void note_job(int rank) {
  journal::JobEntry job;
  job.rank = rank;
  job.size = 4;
  job.launch = 77;
  job.started = now();
  job.node = "node0";
  job.output = "/tmp/x.db";
  job.meta = {{"program", "life"}};
  journal::note(job);
}

}  // namespace

int live(const std::string& folder, const std::function<void(Registry&)>& life) {
  const pid_t child = fork();
  if (child == 0) {
    clock_is_tsc = false;
    std::string error;
    if (arena::open({folder}, error).empty()) _exit(99);
    Registry registry;
    note_job(1);
    add_world(registry, 1, 4);
    life(registry);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace commlens
