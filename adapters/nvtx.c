/* SPDX-License-Identifier: Apache-2.0
 *
 * NVTX: at the first call, its headers load this library (NVTX_INJECTION64_PATH), which fills in the functions that
 * it wants to be called.  Each shared object of a program that was compiled with the headers does so for itself.
 *
 * The part of the interface that is used here is declared once more, so that the build needs no NVIDIA package.
 * tests/mpi/programs/nvtx.c compares the two declarations. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "adapters/adapter.h"
#include "adapters/nvtx.h"

/* ---- names ---- */

/* Converts wide characters, which are code points on Linux, to UTF-8 in the memory of the caller. */
enum { most_bytes = 256 };
static const char* narrow(const wchar_t* text, char utf8[most_bytes]) {
  size_t at = 0;
  for (; text != NULL && *text != 0 && at + 4 < most_bytes; ++text) {
    const uint32_t c = (uint32_t)*text;
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    utf8[at++] = (char)(first[more] | (c >> (6 * more) & 0x7f));
    for (int i = more - 1; i >= 0; --i) utf8[at++] = (char)(0x80 | (c >> (6 * i) & 0x3f));
  }
  utf8[at] = '\0';
  return utf8;
}

/* A domain is a prefix of names: our handle of a domain is the name "domain:".  Null is the default domain. */
static const char* prefix_of(nvtx_domain domain) { return domain == NULL ? NULL : domain->text; }

static const struct adapter_name* named(nvtx_domain domain, const char* text) {
  return adapter_name(prefix_of(domain), text);
}
static const struct adapter_name* named_wide(nvtx_domain domain, const wchar_t* text) {
  char utf8[most_bytes];
  return named(domain, narrow(text, utf8));
}
static const struct adapter_name* named_by(nvtx_domain domain, const struct nvtx_attributes* event) {
  if (event == NULL) return named(domain, NULL);
  switch (event->message_type) {
    case nvtx_message_ascii: return named(domain, event->message.ascii);
    case nvtx_message_wide: return named_wide(domain, event->message.wide);
    case nvtx_message_registered:
      if (event->message.registered != NULL) return event->message.registered;
  }
  return named(domain, NULL);
}

/* ---- functions that the program calls ---- */

/* push and pop return the same values as without a tool. */
enum { no_levels = -2 };
static int push(nvtx_domain domain, const struct adapter_name* name) {
  adapter_enter(domain == NULL ? (const void*)prefix_of : domain, name);
  return no_levels;
}
static int domain_pop(nvtx_domain domain) {
  adapter_leave(domain == NULL ? (const void*)prefix_of : domain);
  return no_levels;
}

static int push_ascii(const char* text) { return push(NULL, named(NULL, text)); }
static int push_wide(const wchar_t* text) { return push(NULL, named_wide(NULL, text)); }
static int push_event(const struct nvtx_attributes* event) { return push(NULL, named_by(NULL, event)); }
static int pop(void) { return domain_pop(NULL); }
static int domain_push(nvtx_domain domain, const struct nvtx_attributes* event) {
  return push(domain, named_by(domain, event));
}

static uint64_t start_ascii(const char* text) { return adapter_begin_span(named(NULL, text)); }
static uint64_t start_wide(const wchar_t* text) { return adapter_begin_span(named_wide(NULL, text)); }
static uint64_t start_event(const struct nvtx_attributes* event) { return adapter_begin_span(named_by(NULL, event)); }
static uint64_t domain_start(nvtx_domain domain, const struct nvtx_attributes* event) {
  return adapter_begin_span(named_by(domain, event));
}
static void end(uint64_t range) { adapter_end_span(range); }
static void domain_end(nvtx_domain domain, uint64_t range) {
  (void)domain;
  adapter_end_span(range);
}

static nvtx_domain create_domain(const char* text) {
  if (text == NULL) text = "";
  char name[most_bytes];
  const size_t bytes = strnlen(text, sizeof name - 2);
  memcpy(name, text, bytes);
  strcpy(name + bytes, ":");
  return adapter_name(NULL, name);
}
static nvtx_domain create_domain_wide(const wchar_t* text) {
  char utf8[most_bytes];
  return create_domain(narrow(text, utf8));
}

/* ---- in ---- */

typedef void (*any_function)(void);

static bool fill(const struct nvtx_callbacks* callbacks, int module, const any_function* ours, unsigned count) {
  any_function** table = NULL;
  unsigned size = 0;
  if (callbacks->function_table(module, &table, &size) != 1 || table == NULL) return false;
  for (unsigned i = 0; i < count && i < size; ++i) {
    if (ours[i] != NULL && table[i] != NULL) *table[i] = ours[i];
  }
  return true;
}

ADAPTER_EXPORT int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t));

int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  static const any_function core[] = {
      [nvtx_range_start_event] = (any_function)start_event, [nvtx_range_start_ascii] = (any_function)start_ascii,
      [nvtx_range_start_wide] = (any_function)start_wide,   [nvtx_range_end] = (any_function)end,
      [nvtx_range_push_event] = (any_function)push_event,   [nvtx_range_push_ascii] = (any_function)push_ascii,
      [nvtx_range_push_wide] = (any_function)push_wide,     [nvtx_range_pop] = (any_function)pop,
  };
  static const any_function core2[] = {
      [nvtx_domain_range_start] = (any_function)domain_start,
      [nvtx_domain_range_end] = (any_function)domain_end,
      [nvtx_domain_range_push] = (any_function)domain_push,
      [nvtx_domain_range_pop] = (any_function)domain_pop,
      [nvtx_domain_register_ascii] = (any_function)named,
      [nvtx_domain_register_wide] = (any_function)named_wide,
      [nvtx_domain_create_ascii] = (any_function)create_domain,
      [nvtx_domain_create_wide] = (any_function)create_domain_wide,
  };
  if (!adapter_has_profiler()) return 0;
  const struct nvtx_callbacks* const callbacks = export_table(nvtx_export_callbacks);
  if (callbacks == NULL || callbacks->bytes < sizeof *callbacks) return 0;
  return fill(callbacks, nvtx_module_core, core, sizeof core / sizeof *core) &&
         fill(callbacks, nvtx_module_core2, core2, sizeof core2 / sizeof *core2);
}
