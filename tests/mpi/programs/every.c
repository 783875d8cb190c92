/* SPDX-License-Identifier: Apache-2.0
 * Every procedure of the C interface, on 2 ranks.  Each call in this text is made exactly once by each rank, so that
 * the text itself says how often a procedure is called: no call stands in a loop, a macro or behind an `if`.  The calls
 * are in every_*.h, by subject.
 * With -DLARGE the procedures that have a large-count form are that form (test_every.py renames them). */
#include "every.h"
#include "every_collectives.h"
#include "every_communicators.h"
#include "every_datatypes.h"
#include "every_files.h"
#include "every_messages.h"
#include "every_windows.h"

static void environment(void) {
  MPI_Info info, copy;
  int code, class;
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Info_get(info, "key", sizeof text - 1, text, &flag);
  MPI_Info_get_nkeys(info, &n);
  MPI_Info_get_nthkey(info, 0, text);
  MPI_Info_get_valuelen(info, "key", &n, &flag);
  MPI_Info_dup(info, &copy);
  MPI_Info_delete(copy, "key");
  MPI_Info_free(&copy);
  MPI_Info_free(&info);
  MPI_Add_error_class(&class);
  MPI_Add_error_code(class, &code);
  MPI_Add_error_string(code, "our own");
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &n);
  MPI_Get_processor_name(text, &n);
  MPI_Is_thread_main(&flag);
  MPI_Query_thread(&n);
#ifdef HAS_MPI_4
  n = sizeof text;
  MPI_Info_create_env(0, NULL, &info);
  MPI_Info_get_string(info, "command", &n, text, &flag);
  MPI_Info_free(&info);
#endif
}

static void newest(void) {
#ifdef HAS_MPI_4_1
  void* detached;
  Count size;
  int class, code;
  MPI_Session session;
  MPI_Info info;
  MPI_Datatype pair;
  MPI_Comm_attach_buffer(WORLD, room, sizeof room);
  MPI_Bsend(data, 4, MPI_INT, other, 0, WORLD);
  MPI_Recv(into, 4, MPI_INT, other, 0, WORLD, s);
  MPI_Comm_flush_buffer(WORLD);
  MPI_Comm_iflush_buffer(WORLD, r);
  MPI_Wait(r, s);
  MPI_Comm_detach_buffer(WORLD, &detached, &size);
  MPI_Buffer_attach(room, sizeof room);
  MPI_Buffer_flush();
  MPI_Buffer_iflush(r);
  MPI_Wait(r, s);
  MPI_Buffer_detach(&detached, &size);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_attach_buffer(session, room, sizeof room);
  MPI_Session_flush_buffer(session);
  MPI_Session_iflush_buffer(session, r);
  MPI_Wait(r, s);
  MPI_Session_detach_buffer(session, &detached, &size);
  MPI_Session_finalize(&session);
  MPI_Irecv(into, 4, MPI_INT, other, 0, WORLD, r);
  MPI_Send(data, 4, MPI_INT, other, 0, WORLD);
  MPI_Request_get_status_all(1, r, &flag, s);
  MPI_Request_get_status_any(1, r, &n, &flag, s);
  MPI_Request_get_status_some(1, r, &n, which, s);
  MPI_Wait(r, s);
  MPI_Status_set_source(s, 3);
  MPI_Status_set_tag(s, 4);
  MPI_Status_set_error(s, MPI_SUCCESS);
  MPI_Status_get_source(s, &n);
  MPI_Status_get_tag(s, &n);
  MPI_Status_get_error(s, &n);
  MPI_Add_error_class(&class);
  MPI_Add_error_code(class, &code);
  MPI_Add_error_string(code, "for a while");
  MPI_Remove_error_string(code);
  MPI_Remove_error_code(code);
  MPI_Remove_error_class(class);
  MPI_Get_hw_resource_info(&info);
  MPI_Info_free(&info);
  MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair);
#endif
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(SELF, MPI_ERRORS_RETURN);
  other = 1 - rank;
  for (int i = 0; i < 64; ++i) data[i] = 64 * rank + i;
  void (*const chapters[])(void) = {
      messages, statuses,  collectives,         persistent_collectives, topologies,  windows,  files, communicators,
      groups,   datatypes, handlers_of_windows, handlers_of_files,      environment, sessions, newest};
  for (size_t i = 0; i < sizeof chapters / sizeof *chapters; ++i) chapters[i]();
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += into[i];
  printf("rank %d: %d\n", rank, sum);
  MPI_Finalize();
  return 0;
}
