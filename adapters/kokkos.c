/* SPDX-License-Identifier: Apache-2.0
 *
 * Kokkos Tools: Kokkos loads this library (KOKKOS_TOOLS_LIBS) and calls the hooks that the library defines.  A hook
 * that is not defined costs nothing, so the hooks of kernels are in a library of their own,
 * COMMLENS_ADAPTER_KERNELS. */
#include <stdatomic.h>
#include <stddef.h>

#include "adapters/adapter.h"

/* Kokkos_Tools_ToolSettings of Kokkos' C interface. */
struct tool_settings {
  bool requires_global_fencing;
  bool padding[255];
};

ADAPTER_EXPORT void kokkosp_request_tool_settings(uint32_t count, struct tool_settings* settings);
ADAPTER_EXPORT void kokkosp_push_profile_region(const char* name);
ADAPTER_EXPORT void kokkosp_pop_profile_region(void);
ADAPTER_EXPORT void kokkosp_create_profile_section(const char* name, uint32_t* section);
ADAPTER_EXPORT void kokkosp_destroy_profile_section(uint32_t section);
ADAPTER_EXPORT void kokkosp_start_profile_section(uint32_t section);
ADAPTER_EXPORT void kokkosp_stop_profile_section(uint32_t section);

/* Without this, Kokkos would wait for the device around every hook, which would change the program. */
void kokkosp_request_tool_settings(uint32_t count, struct tool_settings* settings) {
  (void)count;
  settings->requires_global_fencing = false;
}

static const char regions[] = "pushRegion";

void kokkosp_push_profile_region(const char* name) { adapter_enter(regions, adapter_name(NULL, name)); }
void kokkosp_pop_profile_region(void) { adapter_leave(regions); }

/* A section without a name is free. */
enum { most_sections = 1024 };
static struct {
  _Atomic(const struct adapter_name*) name;
  uint64_t span;
} sections[most_sections];

void kokkosp_create_profile_section(const char* name, uint32_t* section) {
  const struct adapter_name* const its_name = adapter_name(NULL, name);
  for (*section = 0; *section < most_sections; ++*section) {
    const struct adapter_name* none = NULL;
    if (atomic_compare_exchange_strong(&sections[*section].name, &none, its_name)) return;
  }
}

void kokkosp_destroy_profile_section(uint32_t section) {
  if (section < most_sections) sections[section].name = NULL;
}

void kokkosp_start_profile_section(uint32_t section) {
  if (section < most_sections) sections[section].span = adapter_begin_span(sections[section].name);
}

void kokkosp_stop_profile_section(uint32_t section) {
  if (section < most_sections) adapter_end_span(sections[section].span);
}

#ifdef COMMLENS_ADAPTER_KERNELS

/* Kokkos_Profiling_SpaceHandle. */
struct space {
  char name[64];
};

static const char kernels[] = "kernel";

#define KERNEL(kind)                                                                             \
  ADAPTER_EXPORT void kokkosp_begin_##kind(const char* name, uint32_t device, uint64_t* kernel); \
  ADAPTER_EXPORT void kokkosp_end_##kind(uint64_t kernel);                                       \
  void kokkosp_begin_##kind(const char* name, uint32_t device, uint64_t* kernel) {               \
    (void)device;                                                                                \
    *kernel = 0;                                                                                 \
    adapter_enter(kernels, adapter_name(#kind " ", name));                                       \
  }                                                                                              \
  void kokkosp_end_##kind(uint64_t kernel) {                                                     \
    (void)kernel;                                                                                \
    adapter_leave(kernels);                                                                      \
  }
KERNEL(parallel_for)
KERNEL(parallel_reduce)
KERNEL(parallel_scan)
KERNEL(fence)

ADAPTER_EXPORT void kokkosp_begin_deep_copy(struct space to, const char* to_name, const void* to_data,
                                            struct space from, const char* from_name, const void* from_data,
                                            uint64_t bytes);
ADAPTER_EXPORT void kokkosp_end_deep_copy(void);

/* Named by the destination, because the source is often a copy without a name. */
void kokkosp_begin_deep_copy(struct space to, const char* to_name, const void* to_data, struct space from,
                             const char* from_name, const void* from_data, uint64_t bytes) {
  (void)to, (void)to_data, (void)from, (void)from_name, (void)from_data, (void)bytes;
  adapter_enter(kernels, adapter_name("deep_copy ", to_name));
}
void kokkosp_end_deep_copy(void) { adapter_leave(kernels); }

#endif
