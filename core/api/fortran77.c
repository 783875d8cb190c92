/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of commlens.h for Fortran 77: `call commlens_begin_f('solve')`.  fortran/commlens.f90 provides `call
 * commlens_begin('solve')` on top of it.  Part of libcommlens-api and of the profiler.
 *
 * The names end with _f because a compiler that adds no underscore would otherwise call the C functions.  Each
 * procedure is defined under all names that compilers derive from it.  These are the name itself, with one
 * underscore at the end (gfortran, ifx, nvfortran, flang), with two (-fsecond-underscore), and in upper case.
 *
 * The lengths of texts follow the other arguments.  They have 64 bits or, from old compilers, 32 bits with undefined
 * upper bits.  Reading an int is right for both: integers take whole registers, and places of 8
 * bytes on the stack.  Handles are INTEGER*8, other integers INTEGER*4. */
#include <limits.h>
#include <string.h>
#pragma GCC visibility push(default)
#include "include/commlens/commlens.h"

#ifdef COMMLENS_PROFILER
#include "core/api/place.h"
#define commlens_begin(name) commlens_begin_at(name, __builtin_return_address(0))
#define commlens_end(name) commlens_end_at(name, __builtin_return_address(0))
#define commlens_begin_region(region) commlens_begin_region_at(region, __builtin_return_address(0))
#define commlens_end_region(region) commlens_end_region_at(region, __builtin_return_address(0))
#define commlens_loop_begin(name, mode) commlens_loop_begin_at(name, mode, __builtin_return_address(0))
#define commlens_loop_iteration() commlens_loop_iteration_at(__builtin_return_address(0))
#define commlens_loop_end(name) commlens_end_at(name, __builtin_return_address(0))
#define commlens_iteration_begin(name, mode, number) \
  commlens_iteration_begin_at(name, mode, number, __builtin_return_address(0))
#else
#define commlens_watch_number(comm, kind) commlens_watch(0, kind)
int commlens_reorder_number(int comm, int* newcomm, const void* place);
#endif

/* One byte more than the profiler keeps, so that the profiler notices a text that is too long. */
enum { text_size = 256 + 1 };

/* Returns the length of a Fortran text without the blanks at its end.  The text may also end with a zero. */
static size_t length_of(const char* text, int length) {
  size_t size = length > 0 ? (size_t)length : 0;
  const char* const end = memchr(text, '\0', size);
  if (end != NULL) size = (size_t)(end - text);
  while (size > 0 && text[size - 1] == ' ') --size;
  return size;
}

/* Converts a Fortran text to a C string. */
static const char* c_text(char* to, const char* text, int length) {
  size_t size = length_of(text, length);
  if (size > text_size - 1) size = text_size - 1;
  memcpy(to, text, size);
  to[size] = '\0';
  return to;
}

#define PROCEDURE(name, UPPER, parameters)                \
  void name parameters;                                   \
  void name##_ parameters __attribute__((alias(#name)));  \
  void name##__ parameters __attribute__((alias(#name))); \
  void UPPER parameters __attribute__((alias(#name)));    \
  void name parameters

PROCEDURE(commlens_begin_f, COMMLENS_BEGIN_F, (const char* name, int length)) {
  char text[text_size];
  commlens_begin(c_text(text, name, length));
}

PROCEDURE(commlens_end_f, COMMLENS_END_F, (const char* name, int length)) {
  char text[text_size];
  commlens_end(c_text(text, name, length));
}

PROCEDURE(commlens_region_f, COMMLENS_REGION_F, (const char* name, commlens_region_t* region, int length)) {
  char text[text_size];
  *region = commlens_region(c_text(text, name, length));
}

PROCEDURE(commlens_begin_region_f, COMMLENS_BEGIN_REGION_F, (const commlens_region_t* region)) {
  commlens_begin_region(*region);
}

PROCEDURE(commlens_end_region_f, COMMLENS_END_REGION_F, (const commlens_region_t* region)) {
  commlens_end_region(*region);
}

PROCEDURE(commlens_loop_begin_f, COMMLENS_LOOP_BEGIN_F, (const char* name, const int* mode, int length)) {
  char text[text_size];
  commlens_loop_begin(c_text(text, name, length), *mode);
}

PROCEDURE(commlens_loop_iteration_f, COMMLENS_LOOP_ITERATION_F, (void)) { commlens_loop_iteration(); }

PROCEDURE(commlens_loop_end_f, COMMLENS_LOOP_END_F, (const char* name, int length)) {
  char text[text_size];
  commlens_loop_end(c_text(text, name, length));
}

PROCEDURE(commlens_iteration_begin_f, COMMLENS_ITERATION_BEGIN_F,
          (const char* name, const int* mode, const int* number, int length)) {
  char text[text_size];
  commlens_iteration_begin(c_text(text, name, length), *mode, *number);
}

PROCEDURE(commlens_metric_f, COMMLENS_METRIC_F,
          (const char* name, const char* unit, commlens_metric_t* metric, int name_length, int unit_length)) {
  char name_text[text_size], unit_text[text_size];
  *metric = commlens_metric(c_text(name_text, name, name_length), c_text(unit_text, unit, unit_length));
}

PROCEDURE(commlens_record_f, COMMLENS_RECORD_F, (const commlens_metric_t* metric, const double* value)) {
  commlens_record(*metric, *value);
}

PROCEDURE(commlens_tag_f, COMMLENS_TAG_F, (const char* name, const char* value, int name_length, int value_length)) {
  char name_text[text_size], value_text[text_size];
  commlens_tag(c_text(name_text, name, name_length), c_text(value_text, value, value_length));
}

/* Pads the version with blanks. */
PROCEDURE(commlens_version_f, COMMLENS_VERSION_F, (char* version, int length)) {
  if (length <= 0) return;
  const char* const known = commlens_version();
  const size_t size = strlen(known), room = (size_t)length;
  memset(version, ' ', room);
  memcpy(version, known, size < room ? size : room);
}

PROCEDURE(commlens_active_f, COMMLENS_ACTIVE_F, (int* active)) { *active = commlens_active(); }
PROCEDURE(commlens_pause_f, COMMLENS_PAUSE_F, (void)) { commlens_pause(); }
PROCEDURE(commlens_resume_f, COMMLENS_RESUME_F, (void)) { commlens_resume(); }
PROCEDURE(commlens_reset_f, COMMLENS_RESET_F, (void)) { commlens_reset(); }
PROCEDURE(commlens_flush_f, COMMLENS_FLUSH_F, (int* error)) { *error = commlens_flush(); }

PROCEDURE(commlens_flush_to_f, COMMLENS_FLUSH_TO_F, (const char* folder, int* error, int length)) {
  char text[PATH_MAX];
  const size_t size = length_of(folder, length);
  *error = 1;
  if (size >= sizeof text) return;
  memcpy(text, folder, size);
  text[size] = '\0';
  *error = commlens_flush_to(text);
}

PROCEDURE(commlens_watch_f, COMMLENS_WATCH_F, (const int* comm, const int* kind, commlens_watch_t* watch)) {
  *watch = commlens_watch_number(*comm, *kind);
}
PROCEDURE(commlens_watch_start_f, COMMLENS_WATCH_START_F, (const commlens_watch_t* watch)) {
  commlens_watch_start(*watch);
}
PROCEDURE(commlens_watch_stop_f, COMMLENS_WATCH_STOP_F, (const commlens_watch_t* watch)) {
  commlens_watch_stop(*watch);
}
PROCEDURE(commlens_watch_reset_f, COMMLENS_WATCH_RESET_F, (const commlens_watch_t* watch)) {
  commlens_watch_reset(*watch);
}
PROCEDURE(commlens_watch_snapshot_f, COMMLENS_WATCH_SNAPSHOT_F,
          (const commlens_watch_t* watch, commlens_watch_t* snapshot)) {
  *snapshot = commlens_watch_snapshot(*watch);
}
PROCEDURE(commlens_watch_size_f, COMMLENS_WATCH_SIZE_F, (const commlens_watch_t* watch, int* size)) {
  *size = commlens_watch_size(*watch);
}
PROCEDURE(commlens_watch_read_f, COMMLENS_WATCH_READ_F,
          (const commlens_watch_t* watch, unsigned long* messages, unsigned long* bytes)) {
  commlens_watch_read(*watch, messages, bytes);
}
PROCEDURE(commlens_watch_free_f, COMMLENS_WATCH_FREE_F, (commlens_watch_t * watch)) {
  commlens_watch_free(*watch);
  *watch = 0;
}

PROCEDURE(commlens_reorder_f, COMMLENS_REORDER_F, (const int* comm, int* newcomm, int* outcome)) {
  *outcome = commlens_reorder_number(*comm, newcomm, __builtin_return_address(0));
}
