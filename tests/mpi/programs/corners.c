/* SPDX-License-Identifier: Apache-2.0
 * What MPI allows and few programs do: `corners CASE`, 2 ranks. */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
static int rank;

/* MPI calls from inside MPI calls are part of the outer one. */
static void adds(void* in, void* inout, int* count, MPI_Datatype* type) {
  int size, flag;
  MPI_Type_size(*type, &size);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static MPI_Comm inner = MPI_COMM_NULL;
static int copies(MPI_Comm from, int key, void* extra, void* in, void* out, int* flag) {
  (void)from, (void)key, (void)extra, (void)in;
  MPI_Comm_dup(WORLD, &inner);
  *(void**)out = &inner;
  *flag = 1;
  return MPI_SUCCESS;
}
static int deletes(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)extra;
  if (value == &inner) MPI_Comm_free(&inner);
  return MPI_SUCCESS;
}

static MPI_Comm twin[2];
static int twins_are_born(MPI_Comm from, int key, void* extra, void* in, void* out, int* flag) {
  (void)from, (void)key, (void)extra, (void)in;
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(WORLD, &twin[i]);
  *(void**)out = twin;
  *flag = 1;
  return MPI_SUCCESS;
}

static void twins(void) {
  int key;
  MPI_Comm comm, copy;
  MPI_Comm_create_keyval(twins_are_born, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_attr(comm, key, NULL);
  MPI_Comm_dup(comm, &copy);
  MPI_Comm_set_name(twin[rank], rank == 0 ? "first twin" : "second twin");
  for (int i = 0; i < 3; ++i) MPI_Barrier(twin[0]);
  for (int i = 0; i < 10; ++i) MPI_Barrier(twin[1]);
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&twin[i]);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&comm);
  MPI_Comm_free_keyval(&key);
}

/* What is made and completed while a communicator is being freed. */
static MPI_Comm heir, heirs_parent;
static MPI_Win heirs_window;
static MPI_Request old_request, new_request;
static char old_message[64], new_message[64], sent_message[64];
static int heirs_are_made(MPI_Comm comm, int key, void* value, void* extra) {
  (void)key, (void)extra;
  MPI_Comm_dup(comm, &heir);
  if (value == NULL) return MPI_SUCCESS;
  MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, heirs_parent, &heirs_window);
  MPI_Wait(&old_request, MPI_STATUS_IGNORE);
  MPI_Irecv(new_message, 64, MPI_BYTE, 0, 8, MPI_COMM_SELF, &new_request); /* may get the handle of the old one */
  return MPI_SUCCESS;
}

static void heirs(void) {
  int key;
  MPI_Comm comm;
  MPI_Comm_dup(WORLD, &heirs_parent);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, heirs_are_made, &key, NULL);
  if (rank == 0) { /* once more than the other */
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_attr(comm, key, NULL);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&heir);
  }
  MPI_Irecv(old_message, 64, MPI_BYTE, 0, 9, MPI_COMM_SELF, &old_request);
  MPI_Send(sent_message, 4, MPI_BYTE, 0, 9, MPI_COMM_SELF);
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_name(comm, "the dead");
  MPI_Comm_set_attr(comm, key, &key);
  MPI_Comm_free(&comm);
  for (int i = 0; i < 3; ++i) MPI_Barrier(heir);
  MPI_Comm_free(&heir);
  for (int i = 0; i < 4; ++i) MPI_Win_fence(0, heirs_window);
  MPI_Win_free(&heirs_window);
  MPI_Send(sent_message, 33, MPI_BYTE, 0, 8, MPI_COMM_SELF);
  MPI_Wait(&new_request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&heirs_parent);
  MPI_Comm_free_keyval(&key);
}

static void nested(void) {
  MPI_Op op;
  int one = 1, sum = 0, key;
  MPI_Op_create(adds, 1, &op);
  for (int i = 0; i < 10; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, op, WORLD);
  MPI_Op_free(&op);
  MPI_Comm comm, copy;
  MPI_Comm_create_keyval(copies, deletes, &key, NULL);
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_attr(comm, key, NULL);
  MPI_Comm_dup(comm, &copy); /* makes `inner`, too */
  for (int i = 0; i < 3; ++i) MPI_Barrier(inner);
  MPI_Barrier(copy);
  MPI_Comm_free(&copy); /* frees `inner`, too */
  MPI_Comm_free(&comm);
  MPI_Comm_dup(WORLD, &comm); /* may get a handle of those that were freed */
  MPI_Comm_dup(WORLD, &copy);
  for (int i = 0; i < 5; ++i) MPI_Barrier(comm);
  for (int i = 0; i < 7; ++i) MPI_Barrier(copy);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&copy);
  MPI_Comm_free_keyval(&key);
}

/* An error handler that does not return. */
static jmp_buf back;
static void jumps(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  longjmp(back, 1);
}

static __attribute__((noinline)) void deeper(int levels, MPI_Comm comm) {
  char volatile room[256] = {0};
  if (levels > room[0])
    deeper(levels - 1, comm);
  else
    MPI_Barrier(comm);
  room[1] = 1;
}

/* The call that does not return has its frame below that of this function. */
static __attribute__((noinline)) void fails(MPI_Comm comm) {
  char volatile room[64];
  MPI_Send(&rank, 1, MPI_INT, 99, 0, comm);
  room[1] = 1;
}

/* Has the same place on the stack, and leaves it as it was: the frame of the call that did not return, too. */
static __attribute__((noinline)) void roomy(MPI_Comm comm) {
  char volatile room[8192];
  MPI_Barrier(comm);
  room[1] = 1;
}

static void longjump(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_create_errhandler(jumps, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  int volatile jumped = 0;
  for (int volatile i = 0; i < 5; ++i) {
    if (setjmp(back) == 0)
      fails(comm);
    else
      ++jumped;
    roomy(comm);
    deeper(5, comm);
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  }
  if (rank == 0) printf("jumped %d\n", jumped);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

/* Threads that come and go. */
enum { WAVES = 25, WIDTH = 8, CALLS = 20 };
static void* talks(void* unused) {
  int out = 1, in = 0;
  for (int i = 0; i < CALLS; ++i)
    MPI_Sendrecv(&out, 1, MPI_INT, 0, i, &in, 1, MPI_INT, 0, i, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  return unused;
}

static void threads(void) {
  for (int wave = 0; wave < WAVES; ++wave) {
    pthread_t thread[WIDTH];
    for (int i = 0; i < WIDTH; ++i) pthread_create(&thread[i], NULL, talks, NULL);
    for (int i = 0; i < WIDTH; ++i) pthread_join(thread[i], NULL);
  }
}

/* Names that are no text. */
static void names(void) {
  MPI_Comm comm;
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_name(comm, "caf\xe9 \xff\xc3"); /* Latin-1, and half a character */
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(WORLD, &comm);
  char longest[MPI_MAX_OBJECT_NAME];
  memset(longest, 'n', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  MPI_Comm_set_name(comm, longest);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_name(comm, "line\nbreak\ttab \x1b[31mred");
  MPI_Comm_set_name(comm, "");
  MPI_Comm_free(&comm);
}

/* Error handlers that call MPI and return: the failed call returns its code, and what comes next works. */
static int handled;
static void talkative(MPI_Comm* comm, int* code, ...) {
  char text[MPI_MAX_ERROR_STRING];
  int length, size, flag;
  MPI_Error_string(*code, text, &length);
  MPI_Comm_size(*comm, &size);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &flag, MPI_STATUS_IGNORE);
  handled += size;
}
static void talkative_win(MPI_Win* win, int* code, ...) {
  MPI_Group group;
  (void)code;
  MPI_Win_get_group(*win, &group);
  MPI_Group_free(&group);
  handled += 100;
}
static void talkative_file(MPI_File* file, int* code, ...) {
  int class;
  (void)file;
  MPI_Error_class(*code, &class);
  handled += 10000;
}

static void handlers(void) {
  MPI_Comm comm, other;
  MPI_Errhandler handler;
  MPI_Win win;
  MPI_File file;
  int data[4] = {1, 2, 3, 4}, into[4] = {0}, failed = 0;
  char name[32];
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_create_errhandler(talkative, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  for (int i = 0; i < 3; ++i) failed += MPI_Send(data, 1, MPI_INT, 99, 0, comm) != MPI_SUCCESS;
  failed += MPI_Bcast(data, 1, MPI_INT, -7, comm) != MPI_SUCCESS;
  failed += MPI_Allreduce(data, into, 1, MPI_INT, MPI_OP_NULL, comm) != MPI_SUCCESS;
  failed += MPI_Graph_create(comm, 7, (int[7]){0}, (int[1]){0}, 0, &other) != MPI_SUCCESS;
  failed += MPI_Cart_create(comm, 1, (int[]){7}, (int[]){0}, 0, &other) != MPI_SUCCESS;
  /* truncated: the error of a message that did come */
  if (rank == 0) {
    MPI_Send(data, 4, MPI_INT, 1, 5, comm);
  } else {
    failed += MPI_Recv(into, 2, MPI_INT, 0, 5, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  }
  MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  MPI_Allreduce(data, into, 1, MPI_INT, MPI_SUM, comm); /* all is well again */
  MPI_Comm_dup(comm, &other);
  MPI_Barrier(other);
  MPI_Comm_free(&other);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);

  MPI_Win_create(into, sizeof into, 1, MPI_INFO_NULL, WORLD, &win);
  MPI_Win_create_errhandler(talkative_win, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Win_fence(0, win);
  failed += MPI_Put(data, 1, MPI_INT, 99, 0, 1, MPI_INT, win) != MPI_SUCCESS;
  MPI_Win_fence(0, win);
  MPI_Errhandler_free(&handler);
  MPI_Win_free(&win);

  snprintf(name, sizeof name, "corners.%d", rank);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                &file);
  MPI_File_create_errhandler(talkative_file, &handler);
  MPI_File_set_errhandler(file, handler);
  failed += MPI_File_read(file, into, 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  MPI_Errhandler_free(&handler);
  MPI_File_close(&file);
  printf("rank %d: %d failed, handlers %d, sum %d\n", rank, failed, handled, into[0]);
}

/* The last callbacks: attributes of MPI_COMM_SELF are deleted at the start of MPI_Finalize, where MPI still works. */
static int last_words(MPI_Comm comm, int key, void* value, void* extra) {
  int one = 1, sum = 0;
  MPI_Comm dup;
  (void)comm, (void)key, (void)value, (void)extra;
  MPI_Comm_dup(WORLD, &dup);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, dup);
  MPI_Comm_free(&dup);
  printf("rank %d: at the end %d\n", rank, sum);
  return MPI_SUCCESS;
}

static void last(void) {
  int key;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_words, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

/* Nothing: no requests, no neighbours, no dimensions, no arrays where they do not matter. */
static void lonely(void) {
  MPI_Comm comm, part;
  MPI_Request request;
  int n, flag, data[4] = {0}, more[8] = {0}, twos[2] = {2, 2}, places[2] = {0, 2};
  MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
  MPI_Waitany(0, NULL, &n, MPI_STATUS_IGNORE);
  MPI_Waitsome(0, NULL, &n, NULL, MPI_STATUSES_IGNORE);
  MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
  MPI_Testany(0, NULL, &n, &flag, MPI_STATUS_IGNORE);
  MPI_Testsome(0, NULL, &n, NULL, MPI_STATUSES_IGNORE);
  int const root = rank == 0;
  MPI_Gatherv(data, 2, MPI_INT, root ? more : NULL, root ? twos : NULL, root ? places : NULL, MPI_INT, 0, WORLD);
  MPI_Igatherv(data, 2, MPI_INT, root ? more : NULL, root ? twos : NULL, root ? places : NULL, MPI_INT, 0, WORLD,
               &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Scatterv(root ? more : NULL, root ? twos : NULL, root ? places : NULL, MPI_INT, data, 2, MPI_INT, 0, WORLD);
  MPI_Reduce(data, NULL, 0, MPI_INT, MPI_SUM, 0, WORLD);
  MPI_Bcast(NULL, 0, MPI_INT, 0, WORLD);
  MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, WORLD);
  /* rank 0 sends to rank 1 and hears of nobody; rank 1 the other way round */
  int const one = 1 - rank;
  MPI_Dist_graph_create_adjacent(WORLD, rank, rank ? &one : NULL, MPI_UNWEIGHTED, one, rank ? NULL : &one,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  MPI_Neighbor_alltoall(data, 2, MPI_INT, more, 2, MPI_INT, comm);
  MPI_Neighbor_alltoallv(data, root ? twos : NULL, root ? places : NULL, MPI_INT, more, root ? NULL : twos,
                         root ? NULL : places, MPI_INT, comm);
  MPI_Neighbor_allgatherv(data, 2, MPI_INT, more, twos, places, MPI_INT, comm);
  MPI_Comm_free(&comm);
  /* a grid without dimensions, which is one process */
  MPI_Cart_create(WORLD, 1, (int[]){2}, (int[]){1}, 0, &comm);
  MPI_Cart_sub(comm, (int[]){0}, &part);
  if (part != MPI_COMM_NULL) { /* MPICH gives rank 0 one, and nobody else */
    for (int i = 0; i < 2; ++i) MPI_Barrier(part);
    MPI_Comm_free(&part);
  }
  MPI_Comm_free(&comm);
  MPI_Cart_create(WORLD, 0, NULL, NULL, 0, &comm);
  if ((comm == MPI_COMM_NULL) != (rank != 0)) puts("not one process");
  if (comm != MPI_COMM_NULL) {
    for (int i = 0; i < 3; ++i) MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
}

/* Handles that are freed and come again, for something else. */
static void reuse(void) {
  static int data[64], into[64];
  MPI_Comm comms[2];
  for (int i = 0; i < 2; ++i) MPI_Comm_dup(WORLD, &comms[i]);
  for (int i = 1; i <= 40; ++i) {
    MPI_Datatype type;
    MPI_Win win;
    MPI_File file;
    char name[32];
    MPI_Type_contiguous(i, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv(data, 1, type, 1 - rank, 0, into, 1, type, 1 - rank, 0, comms[i % 2], MPI_STATUS_IGNORE);
    MPI_Win_create(into, sizeof into, 1, MPI_INFO_NULL, comms[i % 2], &win);
    MPI_Win_fence(0, win);
    MPI_Put(data, 1, type, 1 - rank, 0, 1, type, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    snprintf(name, sizeof name, "reuse.%d", i % 2);
    MPI_File_open(comms[i % 2], name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 256 * rank, data, 1, type, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Type_free(&type);
  }
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&comms[i]);
}

/* What a program may leave behind when it calls MPI_Finalize, though it should not. */
static void leftovers(void) {
  static int data[4];
  static MPI_Request request;
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_name(comm, "forgotten");
  MPI_Barrier(comm);
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Send_init(data, 1, type, 1 - rank, 7, comm, &request); /* never started, never freed */
  MPI_Isend(data, 1, MPI_INT, 1 - rank, 8, comm, &request);  /* never waited for */
  MPI_Recv(data, 1, MPI_INT, 1 - rank, 8, comm, MPI_STATUS_IGNORE);
}

/* The default: an error ends the program. */
static void fatal(void) {
  MPI_Barrier(WORLD);
  if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 99, 0, WORLD);
  MPI_Recv(&rank, 1, MPI_INT, 1, 0, WORLD, MPI_STATUS_IGNORE);
}

/* Requests the program makes up. */
static int query(void* extra, MPI_Status* status) {
  (void)extra;
  MPI_Status_set_elements(status, MPI_INT, 3);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int nothing_to_free(void* extra) { return (void)extra, MPI_SUCCESS; }
static int no_cancel(void* extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

static void generalized(void) {
  MPI_Request request, pair[2];
  MPI_Status status;
  int count = 0;
  MPI_Grequest_start(query, nothing_to_free, no_cancel, NULL, &request);
  MPI_Grequest_complete(request);
  MPI_Wait(&request, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  if (rank == 0) printf("count %d\n", count);
  MPI_Grequest_start(query, nothing_to_free, no_cancel, NULL, &pair[0]);
  MPI_Grequest_complete(pair[0]);
  MPI_Irecv(&count, 1, MPI_INT, 1 - rank, 0, WORLD, &pair[1]);
  MPI_Send(&rank, 1, MPI_INT, 1 - rank, 0, WORLD);
  MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
  char const* const what = argc > 1 ? argv[1] : "";
  int provided;
  MPI_Init_thread(&argc, &argv, strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
  if (strcmp(what, "silent") != 0) {
    MPI_Comm_rank(WORLD, &rank);
    if (strcmp(what, "nested") == 0) nested();
    if (strcmp(what, "longjump") == 0) longjump();
    if (strcmp(what, "twins") == 0) twins();
    if (strcmp(what, "heirs") == 0) heirs();
    if (strcmp(what, "threads") == 0) threads();
    if (strcmp(what, "names") == 0) names();
    if (strcmp(what, "generalized") == 0) generalized();
    if (strcmp(what, "handlers") == 0) handlers();
    if (strcmp(what, "last") == 0) last();
    if (strcmp(what, "lonely") == 0) lonely();
    if (strcmp(what, "reuse") == 0) reuse();
    if (strcmp(what, "leftovers") == 0) leftovers();
    if (strcmp(what, "fatal") == 0) fatal();
    MPI_Barrier(WORLD);
    if (rank == 0) printf("%s done\n", what);
  }
  MPI_Finalize();
  return 0;
}
