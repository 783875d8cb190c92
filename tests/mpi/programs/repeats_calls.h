/* SPDX-License-Identifier: Apache-2.0
 * The calls of repeats.c, one call site for each procedure, and what each should be counted as. */
#pragma once

#include "repeats.h"

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
  cell(s, "MPI_Rsend", w.c->tag, fails ? 0 : NULL_BIN, 0, 0);
}

/* Sizes that differ in their upper bits only, to nobody. */
static void send_much(struct State* s, const struct Choice* x) {
  const struct What w = what(s, x);
  const int n = (1 << (x->a % 2 != 0 ? 30 : 29)) + w.n;
  must(s, MPI_Bsend(s->out, n, MPI_INT, MPI_PROC_NULL, 6, w.c->comm));
  cell(s, "MPI_Bsend", w.c->tag, NULL_BIN, 0, 0);
#if MPI_VERSION >= 4
  const MPI_Count large = ((MPI_Count)(x->b % 4) << 32) + w.n;
  must(s, MPI_Bsend_c(s->out, large, MPI_INT, MPI_PROC_NULL, 6, w.c->comm));
  cell(s, "MPI_Bsend", w.c->tag, NULL_BIN, 0, 0);
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

/* Allgather or alltoall. */
static void exchange_blocks(struct State* s, const struct Choice* x, int is_alltoall) {
  const struct What w = what(s, x);
  const struct Comm* const c = w.c;
  const int others = c->inter ? c->others : c->size - 1, in_place = !c->inter && x->in_place % 2 != 0;
  const void* const from = in_place ? MPI_IN_PLACE : s->out;
  const int n = in_place ? -3 : w.n;
  const MPI_Datatype type = in_place ? MPI_DATATYPE_NULL : w.type;
  const long long all = w.bytes * c->others;
  const char* const name = is_alltoall ? "MPI_Alltoall" : "MPI_Allgather";
  if (is_alltoall) {
    must(s, MPI_Alltoall(from, n, type, s->in, w.n, w.type, c->comm));
  } else {
    must(s, MPI_Allgather(from, n, type, s->in, w.n, w.type, c->comm));
  }
  cell(s, name, c->tag, bin_of(w.bytes), is_alltoall ? all : w.bytes, all);
  shape(s, "all_to_all", name, c->tag, w.bytes * others);
}

static void allreduce(struct State* s, const struct Choice* x, int is_nonblocking) {
  const struct What w = what(s, x);
  const struct Comm* const c = w.c;
  const int others = c->inter ? c->others : c->size - 1, in_place = !c->inter && x->in_place % 2 != 0;
  const void* const from = in_place ? MPI_IN_PLACE : s->out;
  const long long vector = 4LL * w.n;
  const char* const name = is_nonblocking ? "MPI_Iallreduce" : "MPI_Allreduce";
  MPI_Request request;
  if (is_nonblocking) {
    must(s, MPI_Iallreduce(from, s->in, w.n, MPI_INT, MPI_MAX, c->comm, &request));
  } else {
    must(s, MPI_Allreduce(from, s->in, w.n, MPI_INT, MPI_MAX, c->comm));
  }
  cell(s, name, c->tag, bin_of(vector), vector, vector);
  if (is_nonblocking) wait_for(s, c, &request);
  shape(s, "all_to_all", name, c->tag, vector * others);
}

static void barrier(struct State* s, const struct Choice* x, int is_nonblocking) {
  const struct Comm* const c = what(s, x).c;
  const char* const name = is_nonblocking ? "MPI_Ibarrier" : "MPI_Barrier";
  MPI_Request request;
  must(s, is_nonblocking ? MPI_Ibarrier(c->comm, &request) : MPI_Barrier(c->comm));
  cell(s, name, c->tag, 0, 0, 0);
  if (is_nonblocking) wait_for(s, c, &request);
  shape(s, "all_to_all", name, c->tag, 0);
}

/* Reductions whose result differs from rank to rank.  Skipped on intercommunicators, where MPI_Exscan is not allowed.
 */
static void reduce_for_each(struct State* s, const struct Choice* x, int is_scan) {
  const struct What w = what(s, x);
  const struct Comm* const c = w.c;
  const long long vector = 4LL * w.n;
  if (c->inter) return;
  if (is_scan) {
    must(s, MPI_Exscan(s->out, s->in, w.n, MPI_INT, MPI_MAX, c->comm));
    cell(s, "MPI_Exscan", c->tag, bin_of(vector), vector, c->rank == 0 ? 0 : vector);
    shape(s, "all_to_all", "MPI_Exscan", c->tag, vector * (c->size - c->rank));
  } else {
    must(s, MPI_Reduce_scatter_block(s->out, s->in, w.n, MPI_INT, MPI_MAX, c->comm));
    cell(s, "MPI_Reduce_scatter_block", c->tag, bin_of(vector), vector * c->size, vector);
    shape(s, "all_to_all", "MPI_Reduce_scatter_block", c->tag, vector * (c->size - 1));
  }
}

static void of_all(struct State* s, const struct Choice* x) {
  switch (x->way % 8) {
    case 0: return exchange_blocks(s, x, 0);
    case 1: return exchange_blocks(s, x, 1);
    case 2: return allreduce(s, x, 0);
    case 3: return barrier(s, x, 0);
    case 4: return allreduce(s, x, 1);
    case 5: return barrier(s, x, 1);
    case 6: return reduce_for_each(s, x, 0);
    default: return reduce_for_each(s, x, 1);
  }
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
      cell(s, "MPI_Put", c->tag, far ? NULL_BIN : bin_of(bytes), moved, 0);
      if (!far) peer(s, "put", c->tag, c->world[target], bytes);
      break;
    case 1:
      must(s, MPI_Get(in, m, MPI_INT, target, 0, m, MPI_INT, w->win));
      cell(s, "MPI_Get", c->tag, far ? NULL_BIN : bin_of(bytes), 0, moved);
      if (!far) peer(s, "get", c->tag, c->world[target], bytes);
      break;
    case 2:
      must(s, MPI_Accumulate(out, m, MPI_INT, target, 0, m, MPI_INT, MPI_SUM, w->win));
      cell(s, "MPI_Accumulate", c->tag, far ? NULL_BIN : bin_of(bytes), moved, 0);
      if (!far) peer(s, "put", c->tag, c->world[target], bytes);
      break;
    case 3: {
      const int reads = x->in_place % 2 != 0;
      must(s, MPI_Fetch_and_op(out, in, MPI_INT, target, 0, reads ? MPI_NO_OP : MPI_SUM, w->win));
      cell(s, "MPI_Fetch_and_op", c->tag, far ? NULL_BIN : 3, far || reads ? 0 : 4, far ? 0 : 4);
      if (!far && !reads) peer(s, "put", c->tag, c->world[target], 4);
      if (!far) peer(s, "get", c->tag, c->world[target], 4);
      break;
    }
    default:
      must(s, MPI_Compare_and_swap(out, out, in, MPI_INT, target, 0, w->win));
      cell(s, "MPI_Compare_and_swap", c->tag, far ? NULL_BIN : 3, far ? 0 : 8, far ? 0 : 4);
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
