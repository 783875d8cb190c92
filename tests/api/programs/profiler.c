/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for the profiler: has the functions of commlens.h, and writes each call as a line to the file that
 * CALLS_LOG names, "THREAD CALL ARGUMENTS".  A name is the same whether it came as a text or as a handle. */
#define _GNU_SOURCE
#include <commlens/commlens.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { name_size = 255 + 1 }; /* what commlens.h promises to keep of a name */

struct commlens_name {
  char text[name_size];
  struct commlens_name* next;
};
struct commlens_metric_handle {
  char name[name_size], unit[name_size];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct commlens_name* names;
static int threads;
static _Thread_local int thread = -1;

__attribute__((format(printf, 1, 2))) static void say(const char* format, ...) {
  char line[4 * name_size];
  pthread_mutex_lock(&lock);
  if (thread < 0) thread = threads++;
  int length = snprintf(line, sizeof line, "%d ", thread);
  va_list arguments;
  va_start(arguments, format);
  length += vsnprintf(line + length, sizeof line - length - 1, format, arguments);
  va_end(arguments);
  line[length++] = '\n';
  const char* const path = getenv("CALLS_LOG");
  const int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  if (file < 0 || write(file, line, length) != length) abort();
  close(file);
  pthread_mutex_unlock(&lock);
}

static void cut(char* to, const char* text) { snprintf(to, name_size, "%s", text); }

commlens_region_t commlens_region(const char* name) {
  char text[name_size];
  cut(text, name);
  pthread_mutex_lock(&lock);
  struct commlens_name* found = names;
  while (found != NULL && strcmp(found->text, text) != 0) found = found->next;
  if (found == NULL) {
    found = malloc(sizeof *found);
    memcpy(found->text, text, sizeof text);
    found->next = names;
    names = found;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

void commlens_begin_region(commlens_region_t region) {
  if (region != NULL) say("begin %s", region->text);
}
void commlens_end_region(commlens_region_t region) {
  if (region != NULL) say("end %s", region->text);
}
void commlens_begin(const char* name) { commlens_begin_region(commlens_region(name)); }
void commlens_end(const char* name) {
  if (name != NULL) {
    commlens_end_region(commlens_region(name));
  } else {
    say("end the innermost");
  }
}

void commlens_loop_begin(const char* name, int mode) { say("loop %s %d", commlens_region(name)->text, mode); }
void commlens_loop_iteration(void) { say("iteration"); }
void commlens_loop_end(const char* name) { commlens_end(name); }
void commlens_iteration_begin(const char* name, int mode, long number) {
  say("iteration %ld of %s %d", number, commlens_region(name)->text, mode);
}

commlens_metric_t commlens_metric(const char* name, const char* unit) {
  struct commlens_metric_handle* const made = malloc(sizeof *made);
  cut(made->name, name);
  cut(made->unit, unit);
  return made;
}
void commlens_record(commlens_metric_t metric, double value) {
  say("record %s [%s] %g", metric->name, metric->unit, value);
}
void commlens_tag(const char* name, const char* value) { say("tag %s=%s", name, value); }

const char* commlens_version(void) { return "9.8.7"; }
int commlens_active(void) { return 1; }
void commlens_pause(void) { say("pause"); }
void commlens_resume(void) { say("resume"); }
void commlens_reset(void) { say("reset"); }
int commlens_flush(void) {
  say("flush");
  return 0;
}
int commlens_flush_to(const char* folder) {
  say("flush to %s", folder);
  return 0;
}

/* One watch, of two processes. */
static char watched, kept;
static const char* which(commlens_watch_t watch) { return (char*)watch == &kept ? "copy" : "watch"; }
commlens_watch_t commlens_watch(const void* comm, int kind) {
  say("watch %d", kind);
  return (commlens_watch_t)&watched;
}
void commlens_watch_start(commlens_watch_t watch) { say("start %s", which(watch)); }
void commlens_watch_stop(commlens_watch_t watch) { say("stop %s", which(watch)); }
void commlens_watch_reset(commlens_watch_t watch) { say("reset %s", which(watch)); }
commlens_watch_t commlens_watch_snapshot(commlens_watch_t watch) {
  say("snapshot %s", which(watch));
  return (commlens_watch_t)&kept;
}
int commlens_watch_size(commlens_watch_t watch) { return 2; }
int commlens_watch_read(commlens_watch_t watch, unsigned long* messages, unsigned long* bytes) {
  say("read %s", which(watch));
  for (int i = 0; i < 2; ++i) messages[i] = 10 + i, bytes[i] = 100 + i;
  return 2;
}
void commlens_watch_free(commlens_watch_t watch) { say("free %s", which(watch)); }

/* A handle of its own: 7 more. */
int commlens_reorder(const void* comm, void* newcomm) {
  say("reorder %d", *(const int*)comm);
  *(int*)newcomm = *(const int*)comm + 7;
  return 1;
}
__attribute__((visibility("hidden"))) int commlens_reorder_number(int comm, int* newcomm, const void* place) {
  return commlens_reorder(&comm, newcomm);
}
