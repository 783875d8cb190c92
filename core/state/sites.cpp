// SPDX-License-Identifier: Apache-2.0
#include "core/state/sites.h"

#include <link.h>

#include <deque>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/base/locks.h"
#include "core/state/journal.h"
#include "core/state/paths.h"

namespace commlens {
namespace {

// Never destroyed: threads may call MPI while the program exits.
struct Sites {
  unsigned long long loads = 0, unloads = 0;  // the dynamic linker's counts when `loaded` was read
  std::vector<Module> loaded;
  std::deque<Module> named;  // modules that contain a call site
  std::unordered_map<std::uint64_t, const Module*> module_of;
};
Sites& sites() {
  static Sites* const all = new Sites;
  return *all;
}

void read_modules_again() {
  unsigned long long counts[2] = {0, 0};
  const auto first = [](dl_phdr_info* info, std::size_t, void* out) {
    static_cast<unsigned long long*>(out)[0] = info->dlpi_adds;
    static_cast<unsigned long long*>(out)[1] = info->dlpi_subs;
    return 1;
  };
  dl_iterate_phdr(first, counts);
  if (counts[0] == sites().loads && counts[1] == sites().unloads) return;
  sites().loaded = loaded_modules();
  sites().loads = counts[0];
  sites().unloads = counts[1];
}

const Module* named_module(const Module& m) {
  for (const Module& known : sites().named) {
    if (known.base == m.base && known.path == m.path) return &known;
  }
  sites().named.push_back(m);
  journal::note(journal::ModuleEntry{{m.path, m.build_id, m.begin - m.base}, m.begin, m.end});
  return &sites().named.back();
}

}  // namespace

const Module* module_of_site(Site site) noexcept try {
  const Site address = address_of(site), caller = caller_of(site);
  if (address == 0) return nullptr;
  const std::lock_guard<std::mutex> lock(locks::modules);
  const auto entry = sites().module_of.find(site);
  if (entry != sites().module_of.end()) return entry->second;
  read_modules_again();
  const Module* const m = module_at(sites().loaded, address);
  const Module* const named = m == nullptr ? nullptr : named_module(*m);
  sites().module_of.emplace(site, named);  // last, so that a later call tries again if there is no memory now
  if (m != nullptr) journal::note(journal::SiteEntry{site, caller, {m->path, m->build_id, address - m->base}});
  return named;
} catch (const std::bad_alloc&) {
  return nullptr;  // the call site remains a plain address
}

}  // namespace commlens
