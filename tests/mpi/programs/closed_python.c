/* SPDX-License-Identifier: Apache-2.0
 * Has MPI_Init called by Python code of an interpreter that it loads, ends and closes before its other calls. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct object Object;
struct method {
  const char* name;
  Object* (*function)(Object*, Object*);
  int flags;
  const char* text;
};

static void* python;

/* Returns the address of a function of the interpreter. */
static void* function(const char* name) {
  void* const found = dlsym(python, name);
  if (found == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return found;
}

static Object* begin(Object* self, Object* none) {
  (void)self;
  (void)none;
  MPI_Init(NULL, NULL);
  MPI_Barrier(MPI_COMM_SELF);
  Object* (*const number)(long) = function("PyLong_FromLong");
  return number(0);
}

static struct method method = {"begin", begin, 4 /* METH_NOARGS */, NULL};

static void run_python(void) {
  void (*const start)(int) = function("Py_InitializeEx");
  Object* (*const import)(const char*) = function("PyImport_AddModule");
  Object* (*const callable)(struct method*, Object*, Object*) = function("PyCFunction_NewEx");
  int (*const set)(Object*, const char*, Object*) = function("PyObject_SetAttrString");
  int (*const run)(const char*, void*) = function("PyRun_SimpleStringFlags");
  int (*const end)(void) = function("Py_FinalizeEx");
  *(int*)function("Py_NoSiteFlag") = 1;
  *(int*)function("Py_IgnoreEnvironmentFlag") = 1;
  start(0);
  if (set(import("__main__"), "begin", callable(&method, NULL, NULL)) != 0) exit(3);
  if (run("def outer():\n  begin()\nouter()\n", NULL) != 0) exit(4);
  end();
}

/* Usage: closed_python LIBRARY */
int main(int argc, char** argv) {
  python = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (python == NULL) return 1;
  run_python();
  dlclose(python);
  python = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
  printf("%s\n", python == NULL ? "unloaded" : "loaded");
  if (python != NULL) dlclose(python);
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_SELF);
  MPI_Finalize();
  return 0;
}
