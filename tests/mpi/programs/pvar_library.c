/* SPDX-License-Identifier: Apache-2.0
 * Performance variables of all classes, in place of those of the MPI library: this library is found before it.  A
 * program sets their values with set_pvar().  The functions are strict: what the standard forbids ends the process. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 3 };
enum Type { INT, UNSIGNED, ULONG, ULLONG, COUNT, DOUBLE, CHAR };

struct Variable {
  const char* name;
  int klass;
  enum Type type;
  int bind, continuous, count;
  double values[most];
  int is_open, is_started, reads;
};

static struct Variable variables[] = {
    {"f_counter", MPI_T_PVAR_CLASS_COUNTER, ULLONG, MPI_T_BIND_NO_OBJECT, 1, 1, {5000}},
    {"f_narrow", MPI_T_PVAR_CLASS_COUNTER, UNSIGNED, MPI_T_BIND_NO_OBJECT, 0, 1, {4294967290.0}},
    {"f_array", MPI_T_PVAR_CLASS_AGGREGATE, ULONG, MPI_T_BIND_MPI_COMM, 0, 3, {1, 2, 3}},
    {"f_timer", MPI_T_PVAR_CLASS_TIMER, DOUBLE, MPI_T_BIND_NO_OBJECT, 0, 1, {0.5}},
    {"f_ticks", MPI_T_PVAR_CLASS_TIMER, ULONG, MPI_T_BIND_NO_OBJECT, 0, 1, {8}},
    {"f_level", MPI_T_PVAR_CLASS_LEVEL, UNSIGNED, MPI_T_BIND_NO_OBJECT, 1, 1, {1}},
    {"f_high", MPI_T_PVAR_CLASS_HIGHWATERMARK, ULONG, MPI_T_BIND_NO_OBJECT, 1, 1, {1}},
    {"f_low", MPI_T_PVAR_CLASS_LOWWATERMARK, DOUBLE, MPI_T_BIND_NO_OBJECT, 1, 1, {1}},
    {"f_state", MPI_T_PVAR_CLASS_STATE, INT, MPI_T_BIND_NO_OBJECT, 1, 1, {-1}},
    {"f_percentage", MPI_T_PVAR_CLASS_PERCENTAGE, DOUBLE, MPI_T_BIND_NO_OBJECT, 1, 1, {1}},
    {"f_size", MPI_T_PVAR_CLASS_SIZE, ULLONG, MPI_T_BIND_NO_OBJECT, 1, 1, {1}},
    {"f_generic", MPI_T_PVAR_CLASS_GENERIC, COUNT, MPI_T_BIND_NO_OBJECT, 1, 1, {1}},
    {"f_counter", MPI_T_PVAR_CLASS_LEVEL, ULONG, MPI_T_BIND_NO_OBJECT, 1, 1, {5000}},
    {"x_text", MPI_T_PVAR_CLASS_GENERIC, CHAR, MPI_T_BIND_NO_OBJECT, 1, 1, {0}},
    {"x_window", MPI_T_PVAR_CLASS_COUNTER, ULONG, MPI_T_BIND_MPI_WIN, 1, 1, {0}},
    {"x_group", MPI_T_PVAR_CLASS_COUNTER, ULONG, MPI_T_BIND_MPI_GROUP, 1, 1, {0}},
    {"x_refused", MPI_T_PVAR_CLASS_COUNTER, ULONG, MPI_T_BIND_NO_OBJECT, 1, 1, {0}},
    {"x_lost", MPI_T_PVAR_CLASS_COUNTER, ULONG, MPI_T_BIND_NO_OBJECT, 1, 1, {0}},
    {"x_huge", MPI_T_PVAR_CLASS_SIZE, ULONG, MPI_T_BIND_NO_OBJECT, 1, 1 << 20, {0}},
    {"x_class", 123456, ULONG, MPI_T_BIND_NO_OBJECT, 1, 1, {0}},
#if defined(OPEN_MPI)
    {"x_unused", MPI_T_PVAR_CLASS_COUNTER, ULONG, MPI_T_BIND_NO_OBJECT, 1, 1, {0}},
#endif
};
enum { number = sizeof variables / sizeof *variables };

static int users = 0, sessions = 0;
static int the_session;

static void need(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "pvar_library: %s\n", what);
  abort();
}

static int is_named(const struct Variable* v, const char* name) { return strcmp(v->name, name) == 0; }

/* Called by the program. */
void set_pvar(const char* name, int element, double value) {
  for (int i = 0; i < number; ++i) {
    if (is_named(&variables[i], name)) variables[i].values[element] = value;
  }
}

void check_pvars_are_closed(void) {
  need(users == 0, "MPI_T is still initialised");
  need(sessions == 0, "a session is open");
  for (int i = 0; i < number; ++i) need(!variables[i].is_open, "a handle is open");
}

int PMPI_T_init_thread(int required, int* provided) {
  ++users;
  *provided = required;
  return MPI_SUCCESS;
}

int PMPI_T_finalize(void) {
  need(users > 0, "MPI_T is finalised too often");
  --users;
  return MPI_SUCCESS;
}

int PMPI_T_pvar_get_num(int* n) {
  if (users == 0) return MPI_T_ERR_NOT_INITIALIZED;
  *n = number + 1; /* the last one cannot be asked for */
  return MPI_SUCCESS;
}

static MPI_Datatype datatype_of(enum Type type) {
  switch (type) {
    case INT: return MPI_INT;
    case UNSIGNED: return MPI_UNSIGNED;
    case ULONG: return MPI_UNSIGNED_LONG;
    case ULLONG: return MPI_UNSIGNED_LONG_LONG;
    case COUNT: return MPI_COUNT;
    case DOUBLE: return MPI_DOUBLE;
    default: return MPI_CHAR;
  }
}

int PMPI_T_pvar_get_info(int index, char* name, int* name_len, int* verbosity, int* var_class, MPI_Datatype* datatype,
                         MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* readonly, int* continuous,
                         int* atomic) {
  if (index < 0 || index >= number) return MPI_T_ERR_INVALID_INDEX;
  const struct Variable* v = &variables[index];
  *name_len = snprintf(name, (size_t)*name_len, "%s", v->name) + 1;
  *desc_len = snprintf(desc, (size_t)*desc_len, "says \033[31m%s", v->name) + 1;
  *verbosity = MPI_T_VERBOSITY_USER_BASIC;
  *var_class = v->klass;
  *datatype = datatype_of(v->type);
  *enumtype = MPI_T_ENUM_NULL;
  *bind = v->bind;
  *readonly = 1;
  *continuous = v->continuous;
  *atomic = 0;
  return MPI_SUCCESS;
}

int PMPI_T_pvar_session_create(MPI_T_pvar_session* session) {
  need(users > 0, "a session without MPI_T");
  ++sessions;
  *session = (MPI_T_pvar_session)&the_session;
  return MPI_SUCCESS;
}

int PMPI_T_pvar_session_free(MPI_T_pvar_session* session) {
  need(*session == (MPI_T_pvar_session)&the_session && sessions > 0, "another session is freed");
  --sessions;
  *session = MPI_T_PVAR_SESSION_NULL;
  return MPI_SUCCESS;
}

int PMPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void* object, MPI_T_pvar_handle* handle,
                             int* count) {
  struct Variable* v = &variables[index];
  need(session == (MPI_T_pvar_session)&the_session && !v->is_open, "a handle of another session");
  need(!is_named(v, "x_unused"), "a variable of a component that is not in use is opened");
  need(v->bind == MPI_T_BIND_NO_OBJECT || (v->bind == MPI_T_BIND_MPI_COMM && *(MPI_Comm*)object == MPI_COMM_WORLD),
       "a handle without its object");
  if (is_named(v, "x_refused")) return MPI_T_ERR_OUT_OF_HANDLES;
  v->is_open = 1;
  *handle = (MPI_T_pvar_handle)v;
  *count = v->count;
  return MPI_SUCCESS;
}

int PMPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  struct Variable* v = (struct Variable*)*handle;
  need(session == (MPI_T_pvar_session)&the_session && v->is_open, "a handle is freed twice");
  v->is_open = v->is_started = 0;
  *handle = MPI_T_PVAR_HANDLE_NULL;
  return MPI_SUCCESS;
}

int PMPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  struct Variable* v = (struct Variable*)handle;
  need(session == (MPI_T_pvar_session)&the_session && !v->continuous && !v->is_started, "start of what runs");
  v->is_started = 1;
  return MPI_SUCCESS;
}

int PMPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  struct Variable* v = (struct Variable*)handle;
  need(session == (MPI_T_pvar_session)&the_session && v->is_started, "stop of what does not run");
  v->is_started = 0;
  return MPI_SUCCESS;
}

static void store(enum Type type, double value, void* to, int i) {
  switch (type) {
    case INT: ((int*)to)[i] = (int)value; break;
    case UNSIGNED: ((unsigned*)to)[i] = (unsigned)(unsigned long long)value; break;
    case ULONG: ((unsigned long*)to)[i] = (unsigned long)value; break;
    case ULLONG: ((unsigned long long*)to)[i] = (unsigned long long)value; break;
    case COUNT: ((MPI_Count*)to)[i] = (MPI_Count)value; break;
    case DOUBLE: ((double*)to)[i] = value; break;
    case CHAR: need(0, "a text is read");
  }
}

int PMPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  struct Variable* v = (struct Variable*)handle;
  need(session == (MPI_T_pvar_session)&the_session && v->is_open, "a closed handle is read");
  need(v->continuous || v->is_started, "what does not run is read");
  if (++v->reads > 1 && is_named(v, "x_lost")) return MPI_T_ERR_INVALID_HANDLE;
  for (int i = 0; i < v->count; ++i) store(v->type, v->values[i], buf, i);
  return MPI_SUCCESS;
}

#if defined(OPEN_MPI)
/* The functions of Open MPI that say which variables belong to components in use. */
int mca_base_pvar_get_count(int* count) {
  *count = number;
  return 0;
}

int mca_base_pvar_get(int index, const void** variable) {
  *variable = &variables[index];
  return is_named(&variables[index], "x_unused") ? -1 : 0;
}
#endif
