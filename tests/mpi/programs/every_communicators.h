/* SPDX-License-Identifier: Apache-2.0
 * Communicators, groups and sessions of every.c. */
#pragma once

#include "every.h"

static int copies(MPI_Comm from, int key, void* extra, void* in, void* out, int* yes) {
  (void)from, (void)key, (void)extra, (void)in, (void)out;
  return *yes = 0, MPI_SUCCESS;
}
static void handled(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code; }

/* Returns a copy of the world, and in `half` the communicator of this process alone. */
static MPI_Comm intracommunicators(MPI_Comm* half) {
  MPI_Comm comm;
  MPI_Group group;
  MPI_Info info;
  MPI_Comm_size(WORLD, &n);
  MPI_Comm_group(WORLD, &group);
  MPI_Comm_create(WORLD, group, &comm);
  MPI_Comm_compare(WORLD, comm, &n);
  MPI_Comm_free(&comm);
  MPI_Comm_create_group(WORLD, group, 3, &comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Comm_split(WORLD, rank, 0, half);
  MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_name(comm, "a name");
  MPI_Comm_get_name(comm, text, &n);
  MPI_Comm_get_info(comm, &info);
  MPI_Comm_set_info(comm, info);
  MPI_Comm_disconnect(&comm);
  MPI_Comm_dup_with_info(WORLD, info, &comm);
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
  MPI_Comm_idup(WORLD, &comm, &r[0]);
  MPI_Wait(&r[0], s);
#ifdef HAS_MPI_4
  MPI_Comm_free(&comm);
  MPI_Comm_idup_with_info(WORLD, MPI_INFO_NULL, &comm, &r[0]);
  MPI_Wait(&r[0], s);
#endif
  return comm;
}

static void intercommunicators(MPI_Comm half) {
  MPI_Comm between, merged;
  MPI_Group some;
  MPI_Intercomm_create(half, 0, WORLD, other, 5, &between);
  MPI_Comm_test_inter(between, &flag);
  MPI_Comm_remote_size(between, &n);
  MPI_Comm_remote_group(between, &some);
  MPI_Group_free(&some);
  MPI_Intercomm_merge(between, rank, &merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_get_parent(&between);
}

static void attributes_and_handlers(MPI_Comm comm) {
  MPI_Errhandler handler;
  void* value;
  int key, key_of_old;
  MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(comm, key, NULL);
  MPI_Comm_get_attr(comm, key, &value, &flag);
  MPI_Comm_delete_attr(comm, key);
  MPI_Comm_free_keyval(&key);
  MPI_Keyval_create(copies, MPI_NULL_DELETE_FN, &key_of_old, NULL);
  MPI_Attr_put(comm, key_of_old, NULL);
  MPI_Attr_get(comm, key_of_old, &value, &flag);
  MPI_Attr_delete(comm, key_of_old);
  MPI_Keyval_free(&key_of_old);
  MPI_Comm_create_errhandler(handled, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  MPI_Errhandler_free(&handler);
  MPI_Comm_get_errhandler(comm, &handler);
  MPI_Errhandler_free(&handler);
}

static void communicators_of_groups(void) {
#ifdef HAS_MPI_4
  MPI_Comm comm, between;
  MPI_Group group, some, mates;
  MPI_Comm_group(WORLD, &group);
  MPI_Comm_create_from_group(group, "every", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Comm_free(&comm);
  MPI_Group_incl(group, 1, &rank, &some);
  MPI_Group_incl(group, 1, &other, &mates);
  MPI_Intercomm_create_from_groups(some, 0, mates, 0, "both", MPI_INFO_NULL, MPI_ERRORS_RETURN, &between);
  MPI_Comm_free(&between);
  MPI_Group_free(&some);
  MPI_Group_free(&mates);
  MPI_Group_free(&group);
#endif
}

static void communicators(void) {
  MPI_Comm half;
  MPI_Comm comm = intracommunicators(&half);
  intercommunicators(half);
  attributes_and_handlers(comm);
  MPI_Comm_free(&half);
  MPI_Comm_free(&comm);
  communicators_of_groups();
}

static void groups(void) {
  MPI_Group all, none, some;
  int range[1][3] = {{0, 0, 1}};
  MPI_Comm_group(WORLD, &all);
  MPI_Group_size(all, &n);
  MPI_Group_rank(all, &n);
  MPI_Group_excl(all, 1, &rank, &some);
  MPI_Group_translate_ranks(all, 1, &other, some, &n);
  MPI_Group_compare(all, some, &n);
  MPI_Group_union(all, some, &none);
  MPI_Group_free(&none);
  MPI_Group_intersection(all, some, &none);
  MPI_Group_free(&none);
  MPI_Group_difference(all, some, &none);
  MPI_Group_free(&none);
  MPI_Group_free(&some);
  MPI_Group_range_incl(all, 1, range, &some);
  MPI_Group_free(&some);
  MPI_Group_range_excl(all, 1, range, &some);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
}

#ifdef HAS_MPI_4
static void handled_session(MPI_Session* session, int* code, ...) { (void)session, (void)code; }
#endif

static void sessions(void) {
#ifdef HAS_MPI_4
  MPI_Session session;
  MPI_Errhandler handler;
  MPI_Info info;
  MPI_Group group;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_create_errhandler(handled_session, &handler);
  MPI_Session_set_errhandler(session, handler);
  MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
  MPI_Errhandler_free(&handler);
  MPI_Session_get_errhandler(session, &handler);
  MPI_Errhandler_free(&handler);
  MPI_Session_get_info(session, &info);
  MPI_Info_free(&info);
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
  n = sizeof text;
  MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &n, text);
  MPI_Session_get_pset_info(session, "mpi://WORLD", &info);
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
#endif
}
