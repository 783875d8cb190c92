/* SPDX-License-Identifier: Apache-2.0
 * The tool information interface asked for what is not there, before MPI_Init and after MPI_Finalize too.  Prints a
 * line for each thing that is not as the standard says, and "done". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank = 0;

#define IS(what, found, expected)                                                               \
  do {                                                                                          \
    const int is = (found);                                                                     \
    if (is != (expected)) printf("rank %d: %s: %d, not %d\n", rank, what, is, (int)(expected)); \
  } while (0)

static const char own[] = "commlens_comm_sent_count";

/* All variables have a name that leads back to them, whatever room there is for it. */
static void names(void) {
  int n = 0, ours = 0, first = -1;
  IS("get_num", MPI_T_pvar_get_num(&n), MPI_SUCCESS);
  IS("first", MPI_T_pvar_get_index("commlens_pml_monitoring_messages_count", MPI_T_PVAR_CLASS_SIZE, &first),
     MPI_SUCCESS);
  for (int i = first; i < n; ++i) {
    char whole[256], part[8];
    int length = sizeof whole, text = 0, verbosity, kind, bind, readonly, continuous, atomic, index = -1;
    MPI_Datatype datatype;
    MPI_T_enum enumtype;
    if (MPI_T_pvar_get_info(i, whole, &length, &verbosity, &kind, &datatype, &enumtype, NULL, &text, &bind, &readonly,
                            &continuous, &atomic) != MPI_SUCCESS)
      continue; /* Open MPI: a component that is not there any more */
    if (strncmp(whole, "commlens_", 9) != 0 && strstr(whole, "_monitoring_") == NULL) continue;
    ++ours;
    IS(whole, length, (int)strlen(whole) + 1);
    IS("text", text > 1, 1);
    IS("index", MPI_T_pvar_get_index(whole, kind, &index), MPI_SUCCESS);
    IS(whole, index, i);
    IS("bind", bind, MPI_T_BIND_MPI_COMM);
    IS("enumtype", enumtype == MPI_T_ENUM_NULL, 1);
    length = sizeof part;
    char room[sizeof part] = "xxxxxxx";
    IS("short",
       MPI_T_pvar_get_info(i, room, &length, &verbosity, &kind, &datatype, &enumtype, NULL, &text, &bind, &readonly,
                           &continuous, &atomic),
       MPI_SUCCESS);
    IS("short", length, (int)strlen(whole) + 1);
    IS("short", strlen(room) == sizeof room - 1 && strncmp(room, whole, sizeof room - 1) == 0, 1);
    if (strncmp(whole, "commlens_comm_", 14) == 0) {
      IS("nothing", MPI_T_pvar_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
         MPI_SUCCESS);
      IS("unsigned long", datatype == MPI_UNSIGNED_LONG, 1);
      IS("continuous", continuous, 0);
    }
  }
  IS("variables", ours >= 19, 1);
  int index = -1;
  IS("no such name", MPI_T_pvar_get_index("no such variable", MPI_T_PVAR_CLASS_SIZE, &index), MPI_T_ERR_INVALID_NAME);
  IS("another class", MPI_T_pvar_get_index(own, MPI_T_PVAR_CLASS_TIMER, &index), MPI_T_ERR_INVALID_NAME);
  IS("prefix", MPI_T_pvar_get_index("commlens_pml_monitoring_messages_count", MPI_T_PVAR_CLASS_SIZE, &index),
     MPI_SUCCESS);
  int length = 0;
  IS("beyond",
     MPI_T_pvar_get_info(n, NULL, &length, &length, &length, NULL, NULL, NULL, &length, &length, &length, &length,
                         &length),
     MPI_T_ERR_INVALID_INDEX);
  IS("below",
     MPI_T_pvar_get_info(-1, NULL, &length, &length, &length, NULL, NULL, NULL, &length, &length, &length, &length,
                         &length),
     MPI_T_ERR_INVALID_INDEX);
}

static void categories(void) {
  int n = 0, index = -1, controls = -1, variables = -1, more = -1;
  IS("categories", MPI_T_category_get_num(&n), MPI_SUCCESS);
  IS("category", MPI_T_category_get_index("commlens", &index), MPI_SUCCESS);
  IS("category", index >= 0 && index < n, 1);
  char whole[64];
  int length = sizeof whole, text = 0;
  IS("category", MPI_T_category_get_info(index, whole, &length, NULL, &text, &controls, &variables, &more),
     MPI_SUCCESS);
  IS("category", strcmp(whole, "commlens"), 0);
  IS("controls", controls, 0);
  IS("more", more, 0);
  IS("variables", variables > 5, 1);
  int members[64] = {0}, first = -1;
  IS("members", MPI_T_category_get_pvars(index, 64, members), MPI_SUCCESS);
  IS("first", MPI_T_pvar_get_index("commlens_pml_monitoring_messages_count", MPI_T_PVAR_CLASS_SIZE, &first),
     MPI_SUCCESS);
  IS("first", members[0], first);
  IS("last", members[variables - 1], first + variables - 1);
  IS("no controls", MPI_T_category_get_cvars(index, 64, members), MPI_SUCCESS);
  IS("no categories", MPI_T_category_get_categories(index, 64, members), MPI_SUCCESS);
  IS("beyond", MPI_T_category_get_info(n, NULL, &length, NULL, &text, &controls, &variables, &more),
     MPI_T_ERR_INVALID_INDEX);
}

static void handles(void) {
  MPI_T_pvar_session session, other;
  MPI_T_pvar_handle a, b, freed;
  MPI_Comm comm = MPI_COMM_WORLD, none = MPI_COMM_NULL;
  int index = -1, count = -1, size, size_index = -1;
  unsigned long values[64], zeros[64] = {0};
  MPI_Comm_size(comm, &size);
  IS("index", MPI_T_pvar_get_index(own, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
  IS("index", MPI_T_pvar_get_index("commlens_comm_sent_size", MPI_T_PVAR_CLASS_AGGREGATE, &size_index), MPI_SUCCESS);
  IS("create", MPI_T_pvar_session_create(&session), MPI_SUCCESS);
  IS("create", MPI_T_pvar_session_create(&other), MPI_SUCCESS);
  IS("no object", MPI_T_pvar_handle_alloc(session, index, NULL, &a, &count), MPI_T_ERR_INVALID_HANDLE);
  IS("no communicator", MPI_T_pvar_handle_alloc(session, index, &none, &a, &count), MPI_T_ERR_INVALID_HANDLE);
  IS("no variable", MPI_T_pvar_handle_alloc(session, 1 << 20, &comm, &a, &count), MPI_T_ERR_INVALID_INDEX);
  IS("no session", MPI_T_pvar_handle_alloc(MPI_T_PVAR_SESSION_NULL, index, &comm, &a, &count),
     MPI_T_ERR_INVALID_SESSION);
  IS("alloc", MPI_T_pvar_handle_alloc(session, index, &comm, &a, &count), MPI_SUCCESS);
  IS("count", count, size);
  IS("alloc", MPI_T_pvar_handle_alloc(session, size_index, &comm, &b, &count), MPI_SUCCESS);
  IS("another's", MPI_T_pvar_start(other, a), MPI_T_ERR_INVALID_HANDLE);
  IS("null", MPI_T_pvar_start(session, MPI_T_PVAR_HANDLE_NULL), MPI_T_ERR_INVALID_HANDLE);
  IS("write", MPI_T_pvar_write(session, a, zeros), MPI_T_ERR_PVAR_NO_WRITE);
  IS("read all", MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, values), MPI_T_ERR_INVALID_HANDLE);

  IS("start all", MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  int token = 1;
  MPI_Sendrecv_replace(&token, 1, MPI_INT, rank, 0, rank, 0, comm, MPI_STATUS_IGNORE);
  IS("read", MPI_T_pvar_read(session, a, values), MPI_SUCCESS);
  IS("messages", (int)values[rank], 1);
  IS("stop all", MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  MPI_Sendrecv_replace(&token, 1, MPI_INT, rank, 0, rank, 0, comm, MPI_STATUS_IGNORE);
  IS("readreset", MPI_T_pvar_readreset(session, b, values), MPI_SUCCESS);
  IS("bytes", (int)values[rank], (int)sizeof token);
  IS("read", MPI_T_pvar_read(session, b, values), MPI_SUCCESS);
  IS("after readreset", (int)values[rank], 0);
  IS("reset all", MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
  IS("read", MPI_T_pvar_read(session, a, values), MPI_SUCCESS);
  IS("after reset", (int)values[rank], 0);

  freed = a;
  IS("free", MPI_T_pvar_handle_free(session, &a), MPI_SUCCESS);
  IS("is null", a == MPI_T_PVAR_HANDLE_NULL, 1);
  IS("freed", MPI_T_pvar_read(session, freed, values), MPI_T_ERR_INVALID_HANDLE);
  IS("free again", MPI_T_pvar_handle_free(session, &freed), MPI_T_ERR_INVALID_HANDLE);
  MPI_T_pvar_session ended = session;
  IS("free", MPI_T_pvar_session_free(&session), MPI_SUCCESS);
  IS("freed", MPI_T_pvar_read(ended, b, values), MPI_T_ERR_INVALID_SESSION);
  IS("free again", MPI_T_pvar_session_free(&ended), MPI_T_ERR_INVALID_SESSION);
  IS("free", MPI_T_pvar_session_free(&other), MPI_SUCCESS);
}

int main(int argc, char** argv) {
  int provided, before = -1, after = -1, n;
  IS("not there yet", MPI_T_pvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
  IS("init", MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
  IS("index", MPI_T_pvar_get_index(own, MPI_T_PVAR_CLASS_COUNTER, &before), MPI_SUCCESS);
  names();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  IS("init again", MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
  IS("index", MPI_T_pvar_get_index(own, MPI_T_PVAR_CLASS_COUNTER, &after), MPI_SUCCESS);
  IS("a place that stays", after, before);
  names();
  categories();
  handles();
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handle;
  MPI_Comm comm = MPI_COMM_WORLD;
  int count, token = 0;
  unsigned long values[64] = {0};
  IS("create", MPI_T_pvar_session_create(&session), MPI_SUCCESS);
  IS("alloc", MPI_T_pvar_handle_alloc(session, after, &comm, &handle, &count), MPI_SUCCESS);
  IS("start", MPI_T_pvar_start(session, handle), MPI_SUCCESS);
  MPI_Sendrecv_replace(&token, 1, MPI_INT, rank, 0, rank, 0, comm, MPI_STATUS_IGNORE);
  IS("finalize", MPI_T_finalize(), MPI_SUCCESS); /* there is another one */
  if (argc > 1) {                                /* Open MPI 4 does not survive it */
    IS("finalize", MPI_T_finalize(), MPI_SUCCESS);
    IS("not there", MPI_T_pvar_read(session, handle, values), MPI_T_ERR_NOT_INITIALIZED);
  }
  MPI_Finalize();
  if (argc == 1) {
    IS("read later", MPI_T_pvar_read(session, handle, values), MPI_SUCCESS);
    IS("what was counted", (int)values[rank], 1);
    IS("finalize", MPI_T_finalize(), MPI_SUCCESS);
    IS("not there", MPI_T_pvar_read(session, handle, values), MPI_T_ERR_NOT_INITIALIZED);
  }
  printf("done\n");
  return 0;
}
