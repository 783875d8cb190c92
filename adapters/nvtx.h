/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of NVTX 3's binary interface, between its headers and a tool, that adapters/nvtx.c uses. */
#ifndef COMMLENS_ADAPTER_NVTX_H
#define COMMLENS_ADAPTER_NVTX_H

#include <stddef.h>
#include <stdint.h>

/* Handles of domains and registered strings: the tool defines their content. */
struct adapter_name;
typedef const struct adapter_name* nvtx_domain;

enum { nvtx_message_ascii = 1, nvtx_message_wide = 2, nvtx_message_registered = 3 };

struct nvtx_attributes {
  uint16_t version, bytes;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* wide;
    const struct adapter_name* registered;
  } message;
};

enum { nvtx_export_callbacks = 1 };

struct nvtx_callbacks {
  size_t bytes;
  int (*function_table)(int module, void (****table)(void), unsigned* size); /* returns 1: success */
};

enum { nvtx_module_core = 1, nvtx_module_core2 = 5 };

/* Indices into the function table of module core. */
enum {
  nvtx_range_start_event = 4,
  nvtx_range_start_ascii = 5,
  nvtx_range_start_wide = 6,
  nvtx_range_end = 7,
  nvtx_range_push_event = 8,
  nvtx_range_push_ascii = 9,
  nvtx_range_push_wide = 10,
  nvtx_range_pop = 11,
};

/* Indices into the function table of module core2. */
enum {
  nvtx_domain_range_start = 2,
  nvtx_domain_range_end = 3,
  nvtx_domain_range_push = 4,
  nvtx_domain_range_pop = 5,
  nvtx_domain_register_ascii = 10,
  nvtx_domain_register_wide = 11,
  nvtx_domain_create_ascii = 12,
  nvtx_domain_create_wide = 13,
};

#endif
