/* SPDX-License-Identifier: Apache-2.0
 *
 * Caliper has no interface for other tools that works without its headers and its build.  This library is therefore
 * preloaded and defines the functions that Caliper's annotation macros call.  Each calls the next definition,
 * Caliper's own, so Caliper works as it does without us.  Calls that Caliper makes itself meanwhile are not counted. */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "adapters/adapter.h"

typedef uint64_t cali_id_t;

/* Returns the definition that `caller` would have reached without us, or null. */
static void* next(_Atomic(void*)* place, const char* name, const void* caller) {
  void* found = atomic_load_explicit(place, memory_order_relaxed);
  if (found != NULL) return found;
  found = dlsym(RTLD_NEXT, name);
  if (found == NULL) {
    /* A plug-in or a Python module loaded Caliper for itself only. */
    Dl_info where;
    struct link_map* map = NULL;
    void* const plugin = dladdr1(caller, &where, (void**)&map, RTLD_DL_LINKMAP) != 0 && map != NULL
                             ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD)
                             : NULL;
    if (plugin == NULL) return NULL;
    found = dlsym(plugin, name);
    dlclose(plugin);
  }
  atomic_store_explicit(place, found, memory_order_relaxed);
  return found;
}
#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

static _Thread_local unsigned inside;

/* Defines the function `name`, which calls Caliper's and executes `before` before that and `after` after it. */
#define WRAP(name, parameters, arguments, before, after)           \
  ADAPTER_EXPORT void name parameters;                             \
  void name parameters {                                           \
    static _Atomic(void*) place;                                   \
    void(*const caliper) parameters = next(&place, #name, CALLER); \
    const bool is_outermost = inside++ == 0;                       \
    if (is_outermost) {                                            \
      before;                                                      \
    }                                                              \
    if (caliper != NULL) caliper arguments;                        \
    if (is_outermost) {                                            \
      after;                                                       \
    }                                                              \
    --inside;                                                      \
  }

/* ---- C ---- */

/* Attributes that nest, such as function, loop and phase, are regions; others are values. */
enum { attribute_is_nested = 256 };

static const char* name_of(cali_id_t attribute, const void* caller) {
  static _Atomic(void*) place;
  const char* (*const get)(cali_id_t) = next(&place, "cali_attribute_name", caller);
  const char* const name = get == NULL ? NULL : get(attribute);
  return name == NULL ? "" : name;
}

static bool is_nested(cali_id_t attribute, const void* caller) {
  static _Atomic(void*) place;
  int (*const get)(cali_id_t) = next(&place, "cali_attribute_properties", caller);
  return get != NULL && (get(attribute) & attribute_is_nested) != 0;
}

static cali_id_t attribute_called(const char* name, const void* caller) {
  static _Atomic(void*) place;
  cali_id_t (*const find)(const char*) = next(&place, "cali_find_attribute", caller);
  return find == NULL ? 0 : find(name);
}

static const void* owner_of(cali_id_t attribute) { return (const void*)(uintptr_t)attribute; }

static void enter(cali_id_t attribute, const char* value, const void* caller) {
  if (!is_nested(attribute, caller)) return;
  if (strcmp(name_of(attribute, caller), "loop") == 0) {
    adapter_enter_loop(owner_of(attribute), adapter_name(NULL, value));
  } else {
    adapter_enter(owner_of(attribute), adapter_name(NULL, value));
  }
}

static void iterate(cali_id_t attribute, const void* caller) {
  if (strncmp(name_of(attribute, caller), "iteration#", 10) == 0) adapter_iterate();
}

static const char region[] = "region", phase[] = "phase", comm_region[] = "comm.region";

WRAP(cali_begin_region, (const char* name), (name), , adapter_enter(region, adapter_name(NULL, name)))
WRAP(cali_end_region, (const char* name), (name), adapter_leave(region), )
WRAP(cali_begin_phase, (const char* name), (name), , adapter_enter(phase, adapter_name(NULL, name)))
WRAP(cali_end_phase, (const char* name), (name), adapter_leave(phase), )
WRAP(cali_begin_comm_region, (const char* name), (name), , adapter_enter(comm_region, adapter_name(NULL, name)))
WRAP(cali_end_comm_region, (const char* name), (name), adapter_leave(comm_region), )

WRAP(cali_begin_string, (cali_id_t attribute, const char* value), (attribute, value), , enter(attribute, value, CALLER))
WRAP(cali_begin_int, (cali_id_t attribute, int value), (attribute, value), , iterate(attribute, CALLER))
WRAP(cali_end, (cali_id_t attribute), (attribute), adapter_leave(owner_of(attribute)), )
WRAP(cali_safe_end_string, (cali_id_t attribute, const char* value), (attribute, value),
     adapter_leave(owner_of(attribute)), )

WRAP(cali_begin_string_byname, (const char* name, const char* value), (name, value), ,
     enter(attribute_called(name, CALLER), value, CALLER))
WRAP(cali_end_byname, (const char* name), (name), adapter_leave(owner_of(attribute_called(name, CALLER))), )

/* ---- C++: cali::Function, cali::ScopeAnnotation and cali::Loop, as compilers call their functions ---- */

WRAP(_ZN4cali8FunctionC1EPKc, (void* self, const char* name), (self, name), ,
     adapter_enter(self, adapter_name(NULL, name)))
WRAP(_ZN4cali8FunctionD1Ev, (void* self), (self), adapter_leave(self), )
WRAP(_ZN4cali15ScopeAnnotationC1EPKc, (void* self, const char* name), (self, name), ,
     adapter_enter(self, adapter_name(NULL, name)))
WRAP(_ZN4cali15ScopeAnnotationD1Ev, (void* self), (self), adapter_leave(self), )
WRAP(_ZN4cali4LoopC1EPKc, (void* self, const char* name), (self, name), ,
     adapter_enter_loop(self, adapter_name(NULL, name)))
WRAP(_ZN4cali4Loop3endEv, (void* self), (self), adapter_leave(self), )
WRAP(_ZN4cali4LoopD1Ev, (void* self), (self), adapter_leave(self), )

/* Loop::iteration(int): the result is built at address `result`, which is returned. */
ADAPTER_EXPORT void* _ZNK4cali4Loop9iterationEi(void* result, const void* self, int i);
void* _ZNK4cali4Loop9iterationEi(void* result, const void* self, int i) {
  static _Atomic(void*) place;
  void* (*const caliper)(void*, const void*, int) = next(&place, "_ZNK4cali4Loop9iterationEi", CALLER);
  ++inside;
  if (caliper != NULL) caliper(result, self, i);
  if (--inside == 0) adapter_iterate();
  return result;
}
