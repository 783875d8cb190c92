/* SPDX-License-Identifier: Apache-2.0
 * In place of our copy of SQLite, with the CMake option COMMLENS_SYSTEM_SQLITE: each function that we call hands on to
 * the system's shared library.
 *
 * The library is loaded by the first call, thus by the rank that searches the finished profile for findings, and not
 * when the job starts. RTLD_LOCAL hides its names from the application. RTLD_DEEPBIND makes it call its own functions
 * where the application has another SQLite. Without the library nothing opens, and the run ends without a finding. */
#include <dlfcn.h>
#include <stddef.h>

#include "third_party/sqlite/sqlite3.h"

/* Returns whether the application runs under a sanitizer: these end a process that uses RTLD_DEEPBIND. */
static int is_sanitized(void) {
  static const char* const starts[] = {"__asan_init", "__hwasan_init", "__msan_init", "__tsan_init"};
  for (size_t i = 0; i < sizeof starts / sizeof *starts; ++i) {
    if (dlsym(RTLD_DEFAULT, starts[i]) != NULL) return 1;
  }
  return 0;
}

static const char file_name[] = "libsqlite3.so.0";

/* Opens the system's SQLite; NULL if it is missing, or the application has loaded it: it would be initialised before
 * the application has configured it, and it may be in use by other threads. */
static void* opened(void) {
  void* const of_application = dlopen(file_name, RTLD_LAZY | RTLD_NOLOAD);
  if (of_application == NULL) {
    /* Not every sanitizer that is linked statically shows itself, so RTLD_DEEPBIND is used only where it is needed. */
    const int is_needed = dlsym(RTLD_DEFAULT, "sqlite3_open_v2") != NULL && !is_sanitized();
    return dlopen(file_name, RTLD_NOW | RTLD_LOCAL | (is_needed ? RTLD_DEEPBIND : 0));
  }
  dlclose(of_application);
  return NULL;
}

/* Returns a function of the system's SQLite, or NULL. */
static void* find(const char* name) {
  static void* library;
  static int is_tried;
  if (!is_tried) library = opened();
  is_tried = 1;
  return library == NULL ? NULL : dlsym(library, name);
}

/* Defines the function `name`, which returns `otherwise` without a library. Its callers are single-threaded. */
#define HAND_ON(result, name, parameters, arguments, otherwise) \
  result name parameters {                                      \
    static result(*function) parameters;                        \
    if (function == NULL) *(void**)(&function) = find(#name);   \
    return function == NULL ? (otherwise) : function arguments; \
  }

HAND_ON(int, sqlite3_open_v2, (const char* path, sqlite3** db, int flags, const char* vfs), (path, db, flags, vfs),
        SQLITE_CANTOPEN)
HAND_ON(int, sqlite3_close, (sqlite3 * db), (db), SQLITE_OK)
HAND_ON(int, sqlite3_deserialize,
        (sqlite3 * db, const char* schema, unsigned char* bytes, sqlite3_int64 size, sqlite3_int64 room,
         unsigned flags),
        (db, schema, bytes, size, room, flags), SQLITE_ERROR)
HAND_ON(int, sqlite3_exec,
        (sqlite3 * db, const char* sql, int (*callback)(void*, int, char**, char**), void* context, char** message),
        (db, sql, callback, context, message), SQLITE_ERROR)
HAND_ON(int, sqlite3_prepare_v2, (sqlite3 * db, const char* sql, int size, sqlite3_stmt** statement, const char** rest),
        (db, sql, size, statement, rest), SQLITE_ERROR)
HAND_ON(int, sqlite3_step, (sqlite3_stmt * statement), (statement), SQLITE_ERROR)
HAND_ON(int, sqlite3_finalize, (sqlite3_stmt * statement), (statement), SQLITE_OK)
HAND_ON(int, sqlite3_column_count, (sqlite3_stmt * statement), (statement), 0)
HAND_ON(int, sqlite3_column_type, (sqlite3_stmt * statement, int column), (statement, column), SQLITE_NULL)
HAND_ON(const char*, sqlite3_column_name, (sqlite3_stmt * statement, int column), (statement, column), "")
HAND_ON(double, sqlite3_column_double, (sqlite3_stmt * statement, int column), (statement, column), 0)
HAND_ON(const unsigned char*, sqlite3_column_text, (sqlite3_stmt * statement, int column), (statement, column), NULL)

/* Called by the unit tests only. */
HAND_ON(int, sqlite3_open, (const char* path, sqlite3** db), (path, db), SQLITE_CANTOPEN)
HAND_ON(const char*, sqlite3_errmsg, (sqlite3 * db), (db), "libsqlite3.so.0 is missing")
void sqlite3_free(void* memory) {
  static void (*function)(void*);
  if (function == NULL) *(void**)(&function) = find("sqlite3_free");
  if (function != NULL) function(memory);
}
