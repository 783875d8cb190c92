// SPDX-License-Identifier: Apache-2.0
#include "core/state/thread_owners.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/state/threads.h"

namespace commlens {
namespace {

bool keeps_apart = false;

// Reads the name of a thread of this process.  The kernel writes a line feed behind it.
void read_name(ThreadOwner& owner) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/comm", static_cast<int>(owner.id));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char name[sizeof owner.name] = "";
  const ssize_t size = read(file, name, sizeof name);
  close(file);
  if (size <= 0) return;
  name[size - 1] = '\0';
  std::memcpy(owner.name, name, sizeof name);
}

}  // namespace

void choose_threads(bool each) noexcept { keeps_apart = each; }

void note_owner(Thread& thread) noexcept {
  if (!keeps_apart) return;
  ThreadOwner& owner = thread.owner;
  const bool is_alone = thread.number < most_threads_apart;
  owner.threads += 1;
  owner.id = static_cast<std::int32_t>(syscall(SYS_gettid));
  owner.is_main = owner.id == getpid() ? 1 : 0;
  __atomic_store_n(&owner.kind, is_alone ? ThreadOwner::one : ThreadOwner::others, __ATOMIC_RELEASE);
  note_own_name(thread);
}

void note_own_name(Thread& thread) noexcept {
  if (thread.owner.kind != ThreadOwner::one) return;
  char name[sizeof thread.owner.name] = "";
  const int saved = errno;
  if (syscall(SYS_prctl, PR_GET_NAME, name) == 0) std::memcpy(thread.owner.name, name, sizeof name);
  errno = saved;
}

void note_names() noexcept {
  for (Thread* t = first_thread(); t != nullptr; t = t->next) {
    if (t->owner.kind == ThreadOwner::one && !t->has_ended) read_name(t->owner);
  }
}

}  // namespace commlens
