/* SPDX-License-Identifier: Apache-2.0
 * Calls that are nearly the same, again and again from few places: `repeats SEED ROUNDS THREADS COMMS FILE`.  Each
 * procedure has one call site; from one call to the next some argument changes, or what a handle stands for: the more
 * communicators there are, the more rarely, and at times one call is made in all of them in turn.  FILE.RANK gets what
 * each should have been counted as, kept here in the plainest way:
 *
 *   cell PROCEDURE COMMUNICATOR REGION BIN CALLS SENT RECEIVED
 *   peer COMMUNICATOR KIND BIN PEER MESSAGES BYTES
 *
 * All ranks draw the same numbers, so that each knows what the others do.  With THREADS above 1 each thread does all of
 * this in communicators of its own, but for windows, files, and leaving out calls. */
#include <commlens.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 3, MANY = 1024, TYPES = 3, WINDOWS = 2, MOST = 8, LINES = 1 << 18, MAX_THREADS = 8, BUFFER = 1 << 18 };

static int comm_count;

struct Line {
  char text[96];
  long long n[3];
};

struct Comm {
  MPI_Comm comm;
  int tag, rank, size, inter, others; /* others: whom one may send to; the remote size */
  int world[MOST];                    /* of those */
};

struct Window {
  MPI_Win win;
  int of; /* comms[of]; -1: there is none */
  int* memory;
};

struct Type {
  MPI_Datatype type;
  int ints; /* data */
};

/* What may change from one call to the next. */
struct Choice {
  unsigned comm, type, count, a, b, from_any, in_place, way, window;
};

struct State {
  uint64_t random;
  int number, world_rank, ranks, tags, paused, fails;
  int message; /* tag of the messages of this round: a later one may come first */
  MPI_Comm base, half, self[2];
  struct Comm comms[MANY];
  struct Type types[TYPES];
  struct Window windows[WINDOWS];
  MPI_File file;
  int file_of;       /* self[file_of] */
  long long written; /* until where there is something in the file */
  char path[512];
  const char* region;
  struct Line* lines;
  char *out, *in;
};

static const int counts[] = {0, 1, 2, 3, 17, 200};

static unsigned draw(struct State* s, unsigned below) {
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  return (unsigned)((s->random >> 20) % below);
}

/* ---- the model ---- */

static int bin_of(long long bytes) {
  int bin = 0;
  for (; bytes > 0; bytes /= 2) ++bin;
  return bin;
}

static void add(struct State* s, const char* text, long long a, long long b, long long c) {
  if (s->paused) return;
  uint32_t at = 2166136261u;
  for (const char* p = text; *p != '\0'; ++p) at = (at ^ (unsigned char)*p) * 16777619u;
  for (at %= LINES; s->lines[at].text[0] != '\0' && strcmp(s->lines[at].text, text) != 0;) at = (at + 1) % LINES;
  snprintf(s->lines[at].text, sizeof s->lines[at].text, "%s", text);
  s->lines[at].n[0] += a;
  s->lines[at].n[1] += b;
  s->lines[at].n[2] += c;
}

static void cell(struct State* s, const char* op, int tag, int bin, long long sent, long long received) {
  char text[96];
  snprintf(text, sizeof text, "cell %s c%d %s %d", op, tag, s->region, bin);
  add(s, text, 1, sent, received);
}

/* Bytes that an earlier call has a part in. */
static void arrives(struct State* s, const char* op, int tag, int bin, long long received) {
  char text[96];
  snprintf(text, sizeof text, "cell %s c%d %s %d", op, tag, s->region, bin);
  add(s, text, 0, 0, received);
}

static void peer(struct State* s, const char* kind, int tag, int world, long long bytes) {
  char text[96];
  snprintf(text, sizeof text, "peer c%d %s %d %d", tag, kind, bin_of(bytes), world);
  add(s, text, 1, bytes, 0);
}

static void shape(struct State* s, const char* kind, const char* op, int tag, long long bytes) {
  char text[96];
  snprintf(text, sizeof text, "peer c%d %s/%s %d -1", tag, kind, op, bin_of(bytes));
  add(s, text, 1, bytes, 0);
}

static void must(struct State* s, int rc) { s->fails += rc != MPI_SUCCESS; }

/* ---- what handles stand for ---- */

static void window_over(struct Window* w) {
  if (w->of < 0) return;
  MPI_Win_unlock_all(w->win);
  MPI_Win_free(&w->win);
  w->of = -1;
}

static void new_window(struct State* s, struct Window* w) {
  window_over(w);
  int of = (int)draw(s, (unsigned)comm_count), tries = comm_count;
  /* Open MPI 4 fails where several groups make one at a time. */
  while (tries > 0 && (s->comms[of].inter || s->comms[of].size != s->ranks)) of = (of + 1) % comm_count, --tries;
  if (s->number != 0 || tries == 0) return;
  MPI_Win_create(w->memory, BUFFER, 1, MPI_INFO_NULL, s->comms[of].comm, &w->win);
  MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
  MPI_Win_lock_all(0, w->win);
  w->of = of;
}

static void new_comm(struct State* s, int slot) {
  struct Comm* const c = &s->comms[slot];
  for (int i = 0; i < WINDOWS; ++i) {
    if (s->windows[i].of == slot) window_over(&s->windows[i]);
  }
  if (c->comm != MPI_COMM_NULL) draw(s, 2) == 0 ? MPI_Comm_free(&c->comm) : MPI_Comm_disconnect(&c->comm);
  const int odd = s->world_rank % 2;
  switch (draw(s, 4)) {
    case 0: MPI_Comm_dup(s->base, &c->comm); break;
    case 1: MPI_Comm_split(s->base, 0, -s->world_rank, &c->comm); break;
    case 2: MPI_Comm_split(s->base, odd, 0, &c->comm); break;
    /* Threads that make some of the same processes at once have different tags. */
    default: MPI_Intercomm_create(s->half, 0, s->base, 1 - odd, 1 + s->number, &c->comm); break;
  }
  MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
  c->tag = 10000 * s->number + s->tags++;
  char name[32];
  snprintf(name, sizeof name, "c%d", c->tag);
  MPI_Comm_set_name(c->comm, name);
  MPI_Comm_rank(c->comm, &c->rank);
  MPI_Comm_size(c->comm, &c->size);
  MPI_Comm_test_inter(c->comm, &c->inter);
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  c->others = c->size;
  if (c->inter) MPI_Comm_remote_size(c->comm, &c->others);
  c->inter ? MPI_Comm_remote_group(c->comm, &group) : MPI_Comm_group(c->comm, &group);
  for (int i = 0; i < c->others; ++i) MPI_Group_translate_ranks(group, 1, &i, world, &c->world[i]);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
}

static void new_type(struct State* s, struct Type* t) {
  if (t->type != MPI_DATATYPE_NULL) MPI_Type_free(&t->type);
  t->ints = 1 + (int)draw(s, 9);
  draw(s, 2) == 0 ? MPI_Type_contiguous(t->ints, MPI_INT, &t->type) : MPI_Type_vector(t->ints, 1, 2, MPI_INT, &t->type);
  MPI_Type_commit(&t->type);
}

static void new_file(struct State* s) {
  if (s->file != MPI_FILE_NULL) MPI_File_close(&s->file);
  s->file_of = (int)draw(s, 2);
  const int mode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
  must(s, MPI_File_open(s->self[s->file_of], s->path, mode, MPI_INFO_NULL, &s->file));
  s->written = 0;
}

/* ---- the calls: one site for each procedure ---- */

struct What {
  struct Comm* c;
  MPI_Datatype type;
  int n, size; /* elements, and bytes of one */
  long long bytes;
  int fits; /* how many may be received */
};

static struct What what(struct State* s, const struct Choice* x) {
  struct What w = {&s->comms[x->comm % (unsigned)comm_count], MPI_INT, counts[x->count % 6], 4, 0, 0};
  const unsigned type = x->type % (TYPES + 2);
  if (type < TYPES) {
    w.type = s->types[type].type;
    w.size = 4 * s->types[type].ints;
  } else if (type == TYPES) {
    w.type = MPI_DOUBLE;
    w.size = 8;
  }
  w.bytes = (long long)w.n * w.size;
  w.fits = w.n + (int)(x->way % 3) * 5;
  return w;
}

/* Who sends to whom, as ranks of those the other one may send to; 0: this process does neither, or both are one. */
static int pair(const struct State* s, const struct Comm* c, const struct Choice* x, int* sends, int* receives,
                int* other) {
  const int odd = s->world_rank % 2;
  const int from = (int)(x->a % (unsigned)c->size), to = (int)(x->b % (unsigned)c->others);
  const int my_turn = !c->inter || odd == (int)(x->in_place % 2);
  *sends = my_turn && c->rank == from;
  *receives = (!c->inter || !my_turn) && c->rank == to;
  *other = *sends ? to : from;
  return (*sends || *receives) && (c->inter || from != to);
}

static void send_receive(struct State* s, const struct Choice* x) {
  static int (*const ways[])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send, MPI_Ssend};
  const struct What w = what(s, x);
  int sends, receives, other;
  if (!pair(s, w.c, x, &sends, &receives, &other)) return;
  if (sends) {
    const unsigned way = x->window % 2;
    must(s, ways[way](s->out, w.n, w.type, other, s->message, w.c->comm));
    cell(s, way == 0 ? "MPI_Send" : "MPI_Ssend", w.c->tag, bin_of(w.bytes), w.bytes, 0);
    peer(s, "sent", w.c->tag, w.c->world[other], w.bytes);
  } else {
    const int source = x->from_any % 2 != 0 ? MPI_ANY_SOURCE : other;
    must(s, MPI_Recv(s->in, w.fits, w.type, source, s->message, w.c->comm, MPI_STATUS_IGNORE));
    cell(s, "MPI_Recv", w.c->tag, bin_of((long long)w.fits * w.size), 0, w.bytes);
    peer(s, "received", w.c->tag, w.c->world[other], w.bytes);
  }
}

static void wait_for(struct State* s, const struct Comm* c, MPI_Request* request) {
  must(s, MPI_Wait(request, MPI_STATUS_IGNORE));
  cell(s, "MPI_Wait", c->tag, 0, 0, 0);
}

static void isend_irecv(struct State* s, const struct Choice* x) {
  const struct What w = what(s, x);
  int sends, receives, other;
  if (!pair(s, w.c, x, &sends, &receives, &other)) return;
  MPI_Request request;
  if (sends) {
    must(s, MPI_Isend(s->out, w.n, w.type, other, s->message, w.c->comm, &request));
    cell(s, "MPI_Isend", w.c->tag, bin_of(w.bytes), w.bytes, 0);
    peer(s, "sent", w.c->tag, w.c->world[other], w.bytes);
    wait_for(s, w.c, &request);
  } else {
    const int source = x->from_any % 2 != 0 ? MPI_ANY_SOURCE : other, bin = bin_of((long long)w.fits * w.size);
    must(s, MPI_Irecv(s->in, w.fits, w.type, source, s->message, w.c->comm, &request));
    cell(s, "MPI_Irecv", w.c->tag, bin, 0, 0);
    wait_for(s, w.c, &request);
    arrives(s, "MPI_Irecv", w.c->tag, bin, w.bytes);
    peer(s, "received", w.c->tag, w.c->world[other], w.bytes);
  }
}

/* Along a line or around a ring: at the ends of a line there is MPI_PROC_NULL. */
static void shift(struct State* s, const struct Choice* x) {
  const struct What w = what(s, x);
  const struct Comm* const c = w.c;
  if (c->inter) return;
  const int by = 1 + (int)(x->a % 2), is_ring = x->b % 2 != 0;
  int to = c->rank + by, from = c->rank - by;
  if (is_ring) {
    to %= c->size;
    from = (from + 2 * c->size) % c->size;
  }
  if (to >= c->size) to = MPI_PROC_NULL;
  if (from < 0) from = MPI_PROC_NULL;
  const int source = from != MPI_PROC_NULL && x->from_any % 2 != 0 ? MPI_ANY_SOURCE : from;
  const int replaces = x->in_place % 2 != 0;
  /* Even ranks send less at times, which those who receive it do not say. */
  const int sends_less = !replaces && x->window % 2 != 0;
  const int n = sends_less && c->rank % 2 == 0 ? w.n / 2 : w.n, m = sends_less && from % 2 == 0 ? w.n / 2 : w.n;
  const long long block = (long long)n * w.size, sent = to == MPI_PROC_NULL ? 0 : block;
  const long long received = from == MPI_PROC_NULL ? 0 : (long long)m * w.size;
  if (replaces) {
    must(s, MPI_Sendrecv_replace(s->in, w.n, w.type, to, s->message, source, s->message, c->comm, MPI_STATUS_IGNORE));
  } else {
    must(s, MPI_Sendrecv(s->out, n, w.type, to, s->message, s->in, w.fits, w.type, source, s->message, c->comm,
                         MPI_STATUS_IGNORE));
  }
  cell(s, replaces ? "MPI_Sendrecv_replace" : "MPI_Sendrecv", c->tag, bin_of(block), sent, received);
  if (to >= 0) peer(s, "sent", c->tag, c->world[to], sent);
  if (from >= 0) peer(s, "received", c->tag, c->world[from], received);
}

/* Calls that fail, from places where others do not. */
static void send_or_fail(struct State* s, const struct Choice* x) {
  const struct What w = what(s, x);
  const int fails = x->way % 3 == 0;
  const int rc = MPI_Rsend(s->out, w.n, w.type, fails ? w.c->others + 3 : MPI_PROC_NULL, 6, w.c->comm);
  s->fails += (rc == MPI_SUCCESS) == fails;
  cell(s, "MPI_Rsend", w.c->tag, fails ? 0 : bin_of(w.bytes), 0, 0);
}

/* Sizes that differ in their upper bits only, to nobody. */
static void send_much(struct State* s, const struct Choice* x) {
  const struct What w = what(s, x);
  const int n = (1 << (x->a % 2 != 0 ? 30 : 29)) + w.n;
  must(s, MPI_Bsend(s->out, n, MPI_INT, MPI_PROC_NULL, 6, w.c->comm));
  cell(s, "MPI_Bsend", w.c->tag, bin_of(4LL * n), 0, 0);
#if MPI_VERSION >= 4
  const MPI_Count large = ((MPI_Count)(x->b % 4) << 32) + w.n;
  must(s, MPI_Bsend_c(s->out, large, MPI_INT, MPI_PROC_NULL, 6, w.c->comm));
  cell(s, "MPI_Bsend", w.c->tag, bin_of(4LL * large), 0, 0);
#endif
}

/* A root of an intercommunicator: what to pass on this side; what this process is: 1 root, 0 other, -1 bystander. */
static int root_of(const struct State* s, const struct Comm* c, const struct Choice* x, int* role) {
  if (!c->inter) {
    const int root = (int)(x->a % (unsigned)c->size);
    *role = root == c->rank;
    return root;
  }
  const int root = (int)(x->a % (unsigned)c->size); /* both sides have as many */
  const int is_side = s->world_rank % 2 == (int)(x->b % 2);
  *role = is_side ? (c->rank == root ? 1 : -1) : 0;
  return is_side ? (c->rank == root ? MPI_ROOT : MPI_PROC_NULL) : root;
}

static void rooted(struct State* s, const struct Choice* x) {
  const struct What w = what(s, x);
  const struct Comm* const c = w.c;
  int role;
  const int root = root_of(s, c, x, &role), others = c->inter ? c->others : c->size - 1;
  const int in_place = !c->inter && role == 1 && x->in_place % 2 != 0, bin = role < 0 ? 0 : bin_of(w.bytes);
  const long long all = w.bytes * c->others;
  switch (x->way % 4) {
    case 0: {
      const int fails = x->window % 5 == 0;
      const int rc = MPI_Bcast(s->in, w.n, w.type, fails ? 99 : root, c->comm);
      s->fails += (rc == MPI_SUCCESS) == fails;
      if (fails) return cell(s, "MPI_Bcast", c->tag, 0, 0, 0);
      cell(s, "MPI_Bcast", c->tag, bin, role == 1 ? w.bytes : 0, role == 0 ? w.bytes : 0);
      if (role == 1) shape(s, "one_to_all", "MPI_Bcast", c->tag, w.bytes * others);
      return;
    }
    case 1: {
      const long long bytes = 4LL * w.n;
      must(s, MPI_Reduce(in_place ? MPI_IN_PLACE : s->out, s->in, w.n, MPI_INT, MPI_MAX, root, c->comm));
      const int sends = role == 0 || (role == 1 && !c->inter);
      cell(s, "MPI_Reduce", c->tag, role < 0 ? 0 : bin_of(bytes), sends ? bytes : 0, role == 1 ? bytes : 0);
      if (role == 1) shape(s, "all_to_one", "MPI_Reduce", c->tag, bytes * others);
      return;
    }
    case 2: { /* what is not significant changes, too */
      const MPI_Datatype odd = role == 1 ? w.type : MPI_DATATYPE_NULL;
      must(s, MPI_Gather(in_place ? MPI_IN_PLACE : s->out, in_place ? -2 : w.n, in_place ? MPI_DATATYPE_NULL : w.type,
                         s->in, role == 1 ? w.n : -(int)x->b, odd, root, c->comm));
      const int sends = role == 0 || (role == 1 && !c->inter);
      cell(s, "MPI_Gather", c->tag, bin, sends ? w.bytes : 0, role == 1 ? all : 0);
      if (role == 1) shape(s, "all_to_one", "MPI_Gather", c->tag, w.bytes * others);
      return;
    }
    default: {
      const MPI_Datatype odd = role == 1 ? w.type : MPI_DATATYPE_NULL;
      must(s, MPI_Scatter(s->out, role == 1 ? w.n : -(int)x->b, odd, in_place ? MPI_IN_PLACE : s->in,
                          in_place ? -2 : w.n, in_place ? MPI_DATATYPE_NULL : w.type, root, c->comm));
      const int receives = role == 0 || (role == 1 && !c->inter);
      cell(s, "MPI_Scatter", c->tag, bin, role == 1 ? all : 0, receives ? w.bytes : 0);
      if (role == 1) shape(s, "one_to_all", "MPI_Scatter", c->tag, w.bytes * others);
      return;
    }
  }
}

static void of_all(struct State* s, const struct Choice* x) {
  const struct What w = what(s, x);
  const struct Comm* const c = w.c;
  const int others = c->inter ? c->others : c->size - 1, in_place = !c->inter && x->in_place % 2 != 0;
  const long long all = w.bytes * c->others, vector = 4LL * w.n;
  const char* name;
  MPI_Request request;
  long long exchanged = vector * others;
  switch (x->way % 8) {
    case 0:
      name = "MPI_Allgather";
      must(s, MPI_Allgather(in_place ? MPI_IN_PLACE : s->out, in_place ? -3 : w.n,
                            in_place ? MPI_DATATYPE_NULL : w.type, s->in, w.n, w.type, c->comm));
      cell(s, name, c->tag, bin_of(w.bytes), w.bytes, all);
      exchanged = w.bytes * others;
      break;
    case 1:
      name = "MPI_Alltoall";
      must(s, MPI_Alltoall(in_place ? MPI_IN_PLACE : s->out, in_place ? -3 : w.n, in_place ? MPI_DATATYPE_NULL : w.type,
                           s->in, w.n, w.type, c->comm));
      cell(s, name, c->tag, bin_of(w.bytes), all, all);
      exchanged = w.bytes * others;
      break;
    case 2:
      name = "MPI_Allreduce";
      must(s, MPI_Allreduce(in_place ? MPI_IN_PLACE : s->out, s->in, w.n, MPI_INT, MPI_MAX, c->comm));
      cell(s, name, c->tag, bin_of(vector), vector, vector);
      break;
    case 3:
      name = "MPI_Barrier";
      must(s, MPI_Barrier(c->comm));
      cell(s, name, c->tag, 0, 0, 0);
      exchanged = 0;
      break;
    case 4:
      name = "MPI_Iallreduce";
      must(s, MPI_Iallreduce(in_place ? MPI_IN_PLACE : s->out, s->in, w.n, MPI_INT, MPI_MAX, c->comm, &request));
      cell(s, name, c->tag, bin_of(vector), vector, vector);
      wait_for(s, c, &request);
      break;
    case 5:
      name = "MPI_Ibarrier";
      must(s, MPI_Ibarrier(c->comm, &request));
      cell(s, name, c->tag, 0, 0, 0);
      wait_for(s, c, &request);
      exchanged = 0;
      break;
    case 6:
      if (c->inter) return;
      name = "MPI_Reduce_scatter_block";
      must(s, MPI_Reduce_scatter_block(s->out, s->in, w.n, MPI_INT, MPI_MAX, c->comm));
      cell(s, name, c->tag, bin_of(vector), vector * c->size, vector);
      break;
    default:
      if (c->inter) return;
      name = "MPI_Exscan";
      must(s, MPI_Exscan(s->out, s->in, w.n, MPI_INT, MPI_MAX, c->comm));
      cell(s, name, c->tag, bin_of(vector), vector, c->rank == 0 ? 0 : vector);
      exchanged = vector * (c->size - c->rank);
      break;
  }
  shape(s, "all_to_all", name, c->tag, exchanged);
}

static void one_sided(struct State* s, const struct Choice* x) {
  const struct Window* const w = &s->windows[x->window % WINDOWS];
  if (w->of < 0) return;
  const struct Comm* const c = &s->comms[w->of];
  const int n = counts[x->count % 6], target = x->a % 5 == 4 ? MPI_PROC_NULL : (int)(x->a % (unsigned)c->size);
  const int far = target == MPI_PROC_NULL;
  const int m = far && x->b % 2 != 0 ? 1 << 30 : n; /* nothing goes anywhere */
  const long long bytes = 4LL * m, moved = far ? 0 : bytes;
  int *const out = (int*)s->out, *const in = (int*)s->in;
  switch (x->way % 5) {
    case 0:
      must(s, MPI_Put(out, m, MPI_INT, target, 0, m, MPI_INT, w->win));
      cell(s, "MPI_Put", c->tag, bin_of(bytes), moved, 0);
      if (!far) peer(s, "put", c->tag, c->world[target], bytes);
      break;
    case 1:
      must(s, MPI_Get(in, m, MPI_INT, target, 0, m, MPI_INT, w->win));
      cell(s, "MPI_Get", c->tag, bin_of(bytes), 0, moved);
      if (!far) peer(s, "get", c->tag, c->world[target], bytes);
      break;
    case 2:
      must(s, MPI_Accumulate(out, m, MPI_INT, target, 0, m, MPI_INT, MPI_SUM, w->win));
      cell(s, "MPI_Accumulate", c->tag, bin_of(bytes), moved, 0);
      if (!far) peer(s, "put", c->tag, c->world[target], bytes);
      break;
    case 3: {
      const int reads = x->in_place % 2 != 0;
      must(s, MPI_Fetch_and_op(out, in, MPI_INT, target, 0, reads ? MPI_NO_OP : MPI_SUM, w->win));
      cell(s, "MPI_Fetch_and_op", c->tag, 3, far || reads ? 0 : 4, far ? 0 : 4);
      if (!far && !reads) peer(s, "put", c->tag, c->world[target], 4);
      if (!far) peer(s, "get", c->tag, c->world[target], 4);
      break;
    }
    default:
      must(s, MPI_Compare_and_swap(out, out, in, MPI_INT, target, 0, w->win));
      cell(s, "MPI_Compare_and_swap", c->tag, 3, far ? 0 : 8, far ? 0 : 4);
      if (!far) peer(s, "put", c->tag, c->world[target], 8);
      if (!far) peer(s, "get", c->tag, c->world[target], 4);
      break;
  }
  must(s, MPI_Win_flush_all(w->win));
  cell(s, "MPI_Win_flush_all", c->tag, 0, 0, 0);
}

static void file(struct State* s, const struct Choice* x) {
  if (s->number != 0) return;
  const struct What w = what(s, x);
  const int tag = 90000 + s->file_of;
  if (x->way % 2 == 0) {
    const long long n = w.n % 50 + s->world_rank;
    must(s, MPI_File_write_at(s->file, 0, s->out, (int)n, MPI_INT, MPI_STATUS_IGNORE));
    cell(s, "MPI_File_write_at", tag, bin_of(4 * n), 4 * n, 0);
    if (4 * n > s->written) s->written = 4 * n;
  } else {
    const long long bytes = 4LL * w.n;
    must(s, MPI_File_read_at(s->file, 0, s->in, w.n, MPI_INT, MPI_STATUS_IGNORE));
    cell(s, "MPI_File_read_at", tag, bin_of(bytes), 0, bytes < s->written ? bytes : s->written);
  }
}

/* ---- */

static void change(struct State* s, struct Choice* x) {
  unsigned* const fields[] = {&x->comm, &x->type,   &x->count,    &x->a,       &x->b,
                              &x->way,  &x->window, &x->in_place, &x->from_any};
  const unsigned which = draw(s, sizeof fields / sizeof *fields);
  *fields[which] = draw(s, which == 0 && comm_count > 60 ? (unsigned)comm_count : 60);
}

static void steer(struct State* s, int may_reset) {
  static const char* const regions[] = {"one", "two"};
  if (s->number != 0) return;
  switch (draw(s, 4)) {
    case 0:
      commlens_pause();
      s->paused = 1;
      return;
    case 1:
      if (draw(s, 10) != 0 || !may_reset) return;
      commlens_reset();
      memset(s->lines, 0, LINES * sizeof *s->lines);
      return;
    default:
      if (strcmp(s->region, "-") != 0) {
        commlens_end(s->region);
        s->region = "-";
      } else {
        s->region = regions[draw(s, 2)];
        commlens_begin(s->region);
      }
  }
}

static int rounds, threads;

typedef void Calls(struct State*, const struct Choice*);

/* One call, and what changes before it: a handle one time in `calm` as often as where there are few. */
static void step(struct State* s, Calls* call, const struct Choice* x, unsigned calm, int may_reset) {
  if (draw(s, 40 * calm) == 0) new_type(s, &s->types[draw(s, TYPES)]);
  if (draw(s, 250 * calm) == 0) new_comm(s, (int)draw(s, (unsigned)comm_count));
  if (draw(s, 150 * calm) == 0) new_window(s, &s->windows[draw(s, WINDOWS)]);
  if (s->number == 0 && draw(s, 200 * calm) == 0) new_file(s);
  if (s->paused && draw(s, 4) == 0) {
    commlens_resume();
    s->paused = 0;
  } else if (!s->paused && threads == 1 && draw(s, 25 * calm) == 0) {
    steer(s, may_reset);
  }
  s->message = (s->message + 1) % 30000;
  call(s, x);
}

static void* work(void* of) {
  enum { CALLS = 11, TURNS = 8 };
  static Calls* const calls[CALLS] = {send_receive, isend_irecv, shift,  send_or_fail, send_much, rooted,
                                      rooted,       of_all,      of_all, one_sided,    file};
  struct State* const s = of;
  struct Choice x = {0}, in_turn[TURNS] = {{0}};
  const unsigned calm = comm_count > FEW ? 100 : 1;
  for (int i = 0; i < comm_count; ++i) new_comm(s, i);
  for (int i = 0; i < TYPES; ++i) new_type(s, &s->types[i]);
  for (int i = 0; i < WINDOWS; ++i) new_window(s, &s->windows[i]);
  for (int i = 0; i < rounds; ++i) {
    Calls* const call = calls[draw(s, CALLS)];
    for (unsigned n = 1 + draw(s, 40); n > 0; --n) {
      if (draw(s, 3) == 0) change(s, &x);
      step(s, call, &x, calm, i < rounds / 2);
    }
    if (comm_count == FEW || draw(s, 8) != 0) continue;
    const unsigned turn = draw(s, TURNS);
    if (draw(s, 4) == 0) in_turn[turn] = x;
    for (int k = 0; k < comm_count; ++k) {
      in_turn[turn].comm = (unsigned)k;
      step(s, calls[turn], &in_turn[turn], calm, i < rounds / 2);
    }
  }
  if (s->paused) commlens_resume();
  for (int i = 0; i < WINDOWS; ++i) window_over(&s->windows[i]);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  static char attached[1 << 16];
  static struct State states[MAX_THREADS];
  pthread_t ids[MAX_THREADS];
  int provided, fails = 0;
  rounds = atoi(argv[2]);
  threads = atoi(argv[3]);
  comm_count = atoi(argv[4]);
  if (threads < 1 || threads > MAX_THREADS || comm_count < FEW || comm_count > MANY) return 2;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (threads > 1 && provided != MPI_THREAD_MULTIPLE) return 3;
  MPI_Buffer_attach(attached, sizeof attached);
  for (int i = 0; i < threads; ++i) {
    struct State* const s = &states[i];
    s->random = 88172645463325252u + (uint64_t)atoi(argv[1]) * 7919u + (uint64_t)i * 104729u;
    for (int k = 0; k < 20; ++k) draw(s, 2);
    s->number = i;
    s->region = "-";
    s->file = MPI_FILE_NULL;
    s->lines = calloc(LINES, sizeof *s->lines);
    s->out = calloc(BUFFER, 1);
    s->in = calloc(BUFFER, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &s->world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &s->base);
    MPI_Comm_split(MPI_COMM_WORLD, s->world_rank % 2, 0, &s->half);
    for (int k = 0; k < comm_count; ++k) s->comms[k].comm = MPI_COMM_NULL;
    for (int k = 0; k < TYPES; ++k) s->types[k].type = MPI_DATATYPE_NULL;
    for (int k = 0; k < WINDOWS; ++k) {
      s->windows[k].of = -1;
      s->windows[k].memory = calloc(BUFFER, 1);
    }
    for (int k = 0; k < 2 && i == 0; ++k) {
      char name[32];
      MPI_Comm_dup(MPI_COMM_SELF, &s->self[k]);
      snprintf(name, sizeof name, "c%d", 90000 + k);
      MPI_Comm_set_name(s->self[k], name);
    }
    snprintf(s->path, sizeof s->path, "%s.data.%d", argv[5], s->world_rank);
    if (i == 0) new_file(s);
  }
  for (int i = 1; i < threads; ++i) pthread_create(&ids[i], NULL, work, &states[i]);
  work(&states[0]);
  for (int i = 1; i < threads; ++i) pthread_join(ids[i], NULL);
  MPI_File_close(&states[0].file);
  char path[512];
  snprintf(path, sizeof path, "%s.%d", argv[5], states[0].world_rank);
  FILE* const out = fopen(path, "w");
  if (out == NULL) return 4;
  for (int i = 0; i < threads; ++i) {
    fails += states[i].fails;
    for (const struct Line* l = states[i].lines; l != states[i].lines + LINES; ++l) {
      if (l->text[0] != '\0') fprintf(out, "%s %lld %lld %lld\n", l->text, l->n[0], l->n[1], l->n[2]);
    }
  }
  fclose(out);
  MPI_Finalize();
  if (fails != 0) printf("%d calls did not do what they should\n", fails);
  return fails != 0;
}
