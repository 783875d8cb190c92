// SPDX-License-Identifier: Apache-2.0
// Messages for which some ranks wait a known time, and a trace of them: rank 0 prints for each procedure the time of
// all ranks in it, the waiting in it, and for how long others waited for each rank, all in ns.
//
// Usage: late_messages CASE STEPS MICROSECONDS [barrier]
//   barrier  figure14 only: a barrier before the message, into which the waiting then moves
//
// A call that completes receives waits until the last of their sends has begun.  A blocking send that ends after its
// receive was posted waits until that was.  An MPI_Sendrecv does both; the longer wait counts.
// The processes must be on one machine, so that they have one CLOCK_MONOTONIC_RAW.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_ranks = 64, small = 64, tiny = 8, large = 4 << 20, no_call = -1 };
enum { to_right = 1, to_left = 2, in_barrier = 1000 };  // tags
enum procedure { RECV, SEND, SSEND, SENDRECV, WAIT, WAITALL, WAITANY, MPROBE, BARRIER, procedures };
static const char* const names[] = {"Recv",    "Send",    "Ssend",  "Sendrecv", "Wait",
                                    "Waitall", "Waitany", "Mprobe", "Barrier"};

struct call {
  double entered, left, waiting;
  int procedure, late;  // late: the rank for which it waited
};

// One side of a message.  since: when the send or the receive began; call: of this side, the one that may wait.
struct message {
  double since;
  int from, to, tag, call;
};

static struct call* calls;
static struct message *sends, *receives;
static int number_of_calls, number_of_sends, number_of_receives;

static int rank, size, left, right, step, steps, with_barrier;
static double microseconds;
static MPI_Comm comm;
static char out[large], in[large];

// Started and not completed, with the receive of each, or null for a send.
static MPI_Request requests[most_ranks];
static struct message* awaited[most_ranks];
static int started;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Spends this many times the delay, without a processor, so that ranks that share one do not disturb each other.
static void spend(double times) {
  const long ns = (long)(times * microseconds * 1000);
  const struct timespec t = {ns / 1000000000, ns % 1000000000};
  if (ns > 0) nanosleep(&t, NULL);
}

static int enter(enum procedure procedure) {
  calls[number_of_calls].procedure = procedure;
  calls[number_of_calls].entered = now();
  return number_of_calls++;
}

static double leave(int call) {
  calls[call].left = now();
  return calls[call].entered;
}

static void note_send(double since, int to, int tag, int call) {
  sends[number_of_sends++] = (struct message){since, rank, to, tag, call};
}

static struct message* note_receive(double since, int from, int tag, int call) {
  receives[number_of_receives] = (struct message){since, from, rank, tag, call};
  return &receives[number_of_receives++];
}

static void send(enum procedure procedure, int bytes, int to, int tag) {
  const int call = enter(procedure);
  (procedure == SSEND ? MPI_Ssend : MPI_Send)(out, bytes, MPI_BYTE, to, tag, comm);
  note_send(leave(call), to, tag, call);
}

static void receive(int bytes, int from, int tag) {
  MPI_Status status;
  const int call = enter(RECV);
  MPI_Recv(in, bytes, MPI_BYTE, from, tag, comm, &status);
  note_receive(leave(call), status.MPI_SOURCE, status.MPI_TAG, call);
}

static void start_receive(int bytes, int from, int tag) {
  awaited[started] = note_receive(now(), from, tag, no_call);
  MPI_Irecv(in + started * small, bytes, MPI_BYTE, from, tag, comm, &requests[started]);
  ++started;
}

static void start_send(int bytes, int to, int tag) {
  awaited[started] = NULL;
  note_send(now(), to, tag, no_call);
  MPI_Isend(out, bytes, MPI_BYTE, to, tag, comm, &requests[started]);
  ++started;
}

static void complete(enum procedure procedure) {
  MPI_Status statuses[most_ranks];
  const int call = enter(procedure);
  if (procedure == WAIT)
    MPI_Wait(requests, statuses);
  else
    MPI_Waitall(started, requests, statuses);
  leave(call);
  for (int i = 0; i < started; ++i)
    if (awaited[i]) awaited[i]->call = call;
  started = 0;
}

static void barrier(void) {
  const int call = enter(BARRIER);
  MPI_Barrier(comm);
  const double since = leave(call);
  for (int r = 0; r < size; ++r) {
    if (r == rank) continue;
    note_send(since, r, in_barrier, no_call);
    note_receive(since, r, in_barrier, call);
  }
}

// The cases: each function is one step.

static void late_send_to_all(void) {
  spend(1);
  for (int r = 1; r < size; ++r) send(SEND, small, r, 0);
}

static void recv(void) {
  if (rank == 0)
    late_send_to_all();
  else
    receive(small, 0, 0);
}

static void any(void) {
  spend(rank);
  if (rank == 0)
    for (int r = 1; r < size; ++r) receive(small, MPI_ANY_SOURCE, MPI_ANY_TAG);
  else
    send(SEND, small, 0, step % 5);
}

// The receivers come half of the delay before the message.
static void irecv(void) {
  if (rank == 0) {
    late_send_to_all();
    return;
  }
  start_receive(small, 0, 0);
  spend(0.5);
  complete(WAIT);
}

static void waitany(void) {
  if (rank != 0) {
    spend(rank);
    send(SEND, small, 0, 0);
    return;
  }
  for (int r = 1; r < size; ++r) start_receive(small, r, 0);
  for (int r = 1; r < size; ++r) {
    int index;
    const int call = enter(WAITANY);
    MPI_Waitany(started, requests, &index, MPI_STATUS_IGNORE);
    leave(call);
    awaited[index]->call = call;
  }
  started = 0;
}

// With two ranks, both neighbours are the same, and the receives are posted in the other order than the sends.
static void halo(void) {
  if (rank == 1) spend(1);
  start_receive(small, left, to_right);
  start_receive(small, right, to_left);
  start_send(small, left, to_left);
  start_send(small, right, to_right);
  complete(WAITALL);
}

static void sendrecv(void) {
  if (rank == 1) spend(1);
  const int call = enter(SENDRECV);
  MPI_Sendrecv(out, small, MPI_BYTE, right, 0, in, small, MPI_BYTE, left, 0, comm, MPI_STATUS_IGNORE);
  const double since = leave(call);
  note_send(since, right, 0, call);
  note_receive(since, left, 0, call);
}

// The first rank is the slowest, so that every other one waits in every step.
static void pipeline(void) {
  if (rank > 0) receive(small, rank - 1, 0);
  spend(rank == 0 ? 2 : 1);
  if (rank < size - 1) send(SEND, small, rank + 1, 0);
}

static void pingpong(void) {
  if (rank == 0) {
    send(SEND, tiny, 1, 0);
    receive(tiny, 1, 0);
  } else if (rank == 1) {
    receive(tiny, 0, 0);
    spend(1);
    send(SEND, tiny, 0, 0);
  }
}

static void persistent(void) {
  if (step == 0) {
    MPI_Recv_init(in, small, MPI_BYTE, left, 0, comm, &requests[0]);
    MPI_Send_init(out, small, MPI_BYTE, right, 0, comm, &requests[1]);
  }
  if (rank == 0) spend(1);
  const double since = now();
  MPI_Startall(2, requests);
  note_send(since, right, 0, no_call);
  awaited[0] = note_receive(since, left, 0, no_call);
  started = 2;
  complete(WAITALL);
  for (int i = 0; i < 2 && step == steps - 1; ++i) MPI_Request_free(&requests[i]);
}

static void ssend(void) {
  spend(rank > 0);
  if (rank > 0) receive(small, 0, 0);
  for (int r = 1; r < size && rank == 0; ++r) send(SSEND, small, r, 0);
}

// Every odd rank is late for the message of the rank below.
static void rendezvous(void) {
  if (rank % 2 == 1) {
    spend(1);
    start_receive(large, rank - 1, 0);
    complete(WAIT);
  } else if (rank < size - 1) {
    send(SEND, large, rank + 1, 0);
  }
}

static void tags(void) {
  if (rank == 0) spend(1);
  for (int i = 1; i <= 3; ++i) {
    if (rank == 0) send(SEND, small, 1, i);
    if (rank == 1) receive(small, 0, 4 - i);
  }
}

static void mprobe(void) {
  if (rank == 0) {
    late_send_to_all();
    return;
  }
  MPI_Message message;
  const int call = enter(MPROBE);
  MPI_Mprobe(0, 0, comm, &message, MPI_STATUS_IGNORE);
  note_receive(leave(call), 0, 0, call);
  MPI_Mrecv(in, small, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

static void figure14(void) {
  if (rank == 1) spend(1);
  if (with_barrier) barrier();
  if (rank == 0) send(SEND, large, 1, 0);
  if (rank == 1) receive(large, 0, 0);
}

// Two threads with the same communicator and tag.  Which of them gets a message is open: no trace.
static void* exchange(void* unused) {
  for (int i = 0; i < steps; ++i) {
    if (rank == 0) {
      spend(1);
      MPI_Send(out, small, MPI_BYTE, 1, 0, comm);
    } else if (rank == 1) {
      char data[small];
      MPI_Recv(data, small, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
    }
  }
  return unused;
}

static void threads(void) {
  if (step > 0) return;
  pthread_t other;
  pthread_create(&other, NULL, exchange, NULL);
  exchange(NULL);
  pthread_join(other, NULL);
}

static const struct {
  const char* name;
  void (*step)(void);
} cases[] = {{"recv", recv},         {"any", any},           {"irecv", irecv},          {"waitany", waitany},
             {"halo", halo},         {"sendrecv", sendrecv}, {"ssend", ssend},          {"rendezvous", rendezvous},
             {"tags", tags},         {"mprobe", mprobe},     {"pipeline", pipeline},    {"threads", threads},
             {"figure14", figure14}, {"pingpong", pingpong}, {"persistent", persistent}};

// Returns on rank 0 the items of all ranks, and at which of them those of each rank begin.
static void* gather(const void* items, int n, int bytes, int* total, int begins[]) {
  int counts[most_ranks], places[most_ranks];
  const int mine = n * bytes;
  MPI_Gather(&mine, 1, MPI_INT, counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
  *total = 0;
  for (int r = 0; r < size && rank == 0; ++r) {
    places[r] = *total * bytes;
    begins[r] = *total;
    *total += counts[r] / bytes;
  }
  void* const all = calloc((size_t)*total + 1, (size_t)bytes);
  MPI_Gatherv(items, mine, MPI_BYTE, all, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
  return all;
}

// The messages that one rank sends to another with one tag are received in the order in which they were sent.
static int in_order(const void* left, const void* right) {
  const struct message *const a = left, *const b = right;
  if (a->from != b->from) return a->from - b->from;
  if (a->to != b->to) return a->to - b->to;
  if (a->tag != b->tag) return a->tag - b->tag;
  return (a->since > b->since) - (a->since < b->since);
}

static void wait_for(int late, double until, struct call* call) {
  if (until > call->left) until = call->left;
  if (until - call->entered <= call->waiting) return;
  call->waiting = until - call->entered;
  call->late = late;
}

static void print(const struct call* all, int n) {
  for (int p = 0; p < procedures; ++p) {
    double time = 0, waiting = 0, late[most_ranks] = {0};
    for (int i = 0; i < n; ++i) {
      if (all[i].procedure != p) continue;
      time += all[i].left - all[i].entered;
      waiting += all[i].waiting;
      late[all[i].late] += all[i].waiting;
    }
    if (time == 0) continue;
    printf("%s %.0f %.0f", names[p], time, waiting);
    for (int r = 0; r < size; ++r) printf(" %.0f", late[r]);
    printf("\n");
  }
}

static void report(void) {
  int n, number_sent, number_received, begins[most_ranks], unused[most_ranks];
  struct call* const all = gather(calls, number_of_calls, sizeof *calls, &n, begins);
  struct message* const sent = gather(sends, number_of_sends, sizeof *sent, &number_sent, unused);
  struct message* const received = gather(receives, number_of_receives, sizeof *received, &number_received, unused);
  if (number_sent != number_received) MPI_Abort(MPI_COMM_WORLD, 1);
  qsort(sent, (size_t)number_sent, sizeof *sent, in_order);
  qsort(received, (size_t)number_received, sizeof *received, in_order);
  for (int i = 0; i < number_sent; ++i) {
    const struct message *const s = &sent[i], *const r = &received[i];
    wait_for(s->from, s->since, &all[begins[r->to] + r->call]);
    if (s->call == no_call) continue;
    struct call* const sender = &all[begins[s->from] + s->call];
    if (sender->left > r->since) wait_for(r->to, r->since, sender);
  }
  if (rank == 0) print(all, n);
}

int main(int argc, char** argv) {
  const char* const name = argv[1];
  const int needed = strcmp(name, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  int provided;
  MPI_Init_thread(&argc, &argv, needed, &provided);
  if (provided < needed) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  steps = atoi(argv[2]);
  microseconds = atof(argv[3]);
  with_barrier = argc > 4;
  const size_t most = (size_t)steps * (size_t)(size + 3);  // calls, or messages, of a rank
  calls = calloc(most, sizeof *calls);
  sends = calloc(most, sizeof *sends);
  receives = calloc(most, sizeof *receives);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c)
    if (strcmp(cases[c].name, name) == 0)
      for (step = 0; step < steps; ++step) cases[c].step();
  report();
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
