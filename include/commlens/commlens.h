/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of commlens: annotates a program with regions, metrics and tags, controls the measurement, and, while
 * the program runs, reads the communication matrix and puts the ranks into a better order.
 *
 * Programs that use it link libcommlens-api, a library of empty functions, and run unchanged without the profiler.
 * commlens-run or LD_PRELOAD loads the profiler, whose functions then take their place.  MPI calls are profiled without
 * any annotation.  docs/guide/annotate.md has examples in C, C++, Fortran and Python.
 *
 * Any thread may call any function at any time, also before MPI_Init and after MPI_Finalize; the profile does not
 * contain what happens after MPI_Finalize.  No function but commlens_reorder() communicates, and only those whose
 * comment mentions an error return one.  An inconsistent call, such as an end without a begin, is ignored and reported
 * on stderr once. */
#ifndef COMMLENS_H
#define COMMLENS_H

/* Calls bypass the procedure linkage table: an empty function costs little more than the jump through it. */
#ifdef __has_attribute
#if __has_attribute(noplt)
#define COMMLENS_API __attribute__((noplt))
#endif
#endif
#ifndef COMMLENS_API
#define COMMLENS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- regions ----
 *
 * A region is a named part of the program.  Regions nest per thread.  Names are UTF-8; all texts passed to this
 * interface are cut after 255 bytes.  A region that is left by an exception, a return or a longjmp ends together with
 * the region around it. */

/* Begins and ends a region on the calling thread.  commlens_end() also ends all regions within `name` that are still
 * open; null ends the innermost region.  An end without a begin is ignored. */
COMMLENS_API void commlens_begin(const char* name);
COMMLENS_API void commlens_end(const char* name);

/* Begin and end a region that begins very often: commlens_region() looks its name up once.  A handle stays valid until
 * the process ends; equal names have equal handles.  The empty function returns null, which the other two ignore. */
typedef const struct commlens_name* commlens_region_t;
COMMLENS_API commlens_region_t commlens_region(const char* name);
COMMLENS_API void commlens_begin_region(commlens_region_t region);
COMMLENS_API void commlens_end_region(commlens_region_t region);

/* A loop is a region that counts its iterations and records the distribution of their times.  With COMMLENS_LOOP_EACH
 * the first COMMLENS_ITERATIONS iterations (an environment variable) are stored separately, with the regions inside
 * them.
 *
 *   commlens_loop_begin("time steps", COMMLENS_LOOP_EACH);
 *   while (...) {
 *     commlens_loop_iteration();
 *     ...
 *   }
 *   commlens_loop_end("time steps");
 *
 * commlens_loop_iteration() begins an iteration of the calling thread's innermost loop.  It ends the previous iteration
 * and all regions that are still open in it; commlens_loop_end() ends the last one.  commlens_end() and
 * commlens_end_region() end a loop like any other region. */
enum { COMMLENS_LOOP_SUM = 0, COMMLENS_LOOP_EACH = 1 };
COMMLENS_API void commlens_loop_begin(const char* name, int mode);
COMMLENS_API void commlens_loop_iteration(void);
COMMLENS_API void commlens_loop_end(const char* name);

/* Begins iteration `number`, counted from 0, of a loop, and with it the loop; commlens_end(name) ends both.  For
 * programs whose iterations are scopes, so that no place in the program is the end of the loop.  Iterations of one loop
 * are counted together as those of the functions above; its own calls are then the iterations.  A loop outside all
 * regions is a new execution with each iteration. */
COMMLENS_API void commlens_iteration_begin(const char* name, int mode, long number);

/* ---- metrics and tags ---- */

/* Returns the handle of a metric: a number that the program records, such as memory in use, a residual or cells
 * updated. `unit` may be empty.  A handle stays valid until the process ends; equal names with equal units have equal
 * handles. */
typedef const struct commlens_metric_handle* commlens_metric_t;
COMMLENS_API commlens_metric_t commlens_metric(const char* name, const char* unit);

/* Records one value of a metric.  Count, sum, minimum, maximum and last value are stored for the calling thread's
 * current region.  NaN and infinite values are only counted. */
COMMLENS_API void commlens_record(commlens_metric_t metric, double value);

/* Attaches a property to the calling thread's current region: commlens_tag("kind", "IO"). */
COMMLENS_API void commlens_tag(const char* name, const char* value);

/* ---- the measurement ---- */

/* Returns the version of the profiler, as in "0.1.0", or "" when none is loaded.  A constant; never freed. */
COMMLENS_API const char* commlens_version(void);

/* Returns 1 while MPI calls of this process are being counted: from the return of MPI_Init to the call of
 * MPI_Finalize, unless commlens is switched off, paused, or does not fit the MPI library; else 0. */
COMMLENS_API int commlens_active(void);

/* Between pause and resume no thread of this process counts anything: no MPI calls, regions or metrics.  Pauses do not
 * nest. */
COMMLENS_API void commlens_pause(void);
COMMLENS_API void commlens_resume(void);

/* Discards everything this process has counted so far.  Open regions start again here, and executions of outermost
 * regions are numbered from here. */
COMMLENS_API void commlens_reset(void);

/* Copies the counters of this process to a folder beside the output and replaces the previous copy.
 * `commlens recover` makes a profile of the copies of all ranks, even if the job or its
 * nodes are lost later.  Not collective.  Returns 0, or 1 if the copy cannot be written or nothing is counted. */
COMMLENS_API int commlens_flush(void);

/* Copies the counters to a folder of the program's choice, for example one per phase; creates it if necessary.
 * `commlens recover FOLDER` makes a profile of it, now or later.  A relative name is relative to the folder where the
 * program was started. */
COMMLENS_API int commlens_flush_to(const char* folder);

/* ---- the communication matrix, while the program runs ----
 *
 *   commlens_watch_t watch = commlens_watch(&comm, COMMLENS_SENT);
 *   commlens_watch_start(watch);
 *   ...
 *   n = commlens_watch_read(watch, messages, bytes);
 *
 * A watch counts this process's messages to or from each process of a communicator: one row of its communication
 * matrix. It counts between start and stop; a second start continues.  docs/guide/online.md has an example. */

/* What a watch counts: messages sent, messages received, one-sided puts, one-sided gets, and the blocks that
 * collectives address to each process. */
enum { COMMLENS_SENT = 0, COMMLENS_RECEIVED = 1, COMMLENS_WRITTEN = 2, COMMLENS_READ = 3, COMMLENS_COLLECTIVE = 4 };

/* Creates a watch, stopped.  `comm` points to a variable of type MPI_Comm; `kind` is one of the constants above.
 * Returns null if there is nothing to watch: without the profiler, while it does not count (commlens_active), or with
 * COMMLENS_MATRIX=off.  All functions below accept null as a watch of no processes. */
typedef struct commlens_watched* commlens_watch_t; /* NOLINT(readability-identifier-naming): a name of C */
COMMLENS_API commlens_watch_t commlens_watch(const void* comm, int kind);
COMMLENS_API void commlens_watch_start(commlens_watch_t watch);
COMMLENS_API void commlens_watch_stop(commlens_watch_t watch);
COMMLENS_API void commlens_watch_reset(commlens_watch_t watch);

/* Returns a stopped copy of a watch with its present counts, to be read later and freed like any watch. */
COMMLENS_API commlens_watch_t commlens_watch_snapshot(commlens_watch_t watch);

/* Both return the number of processes in the watched communicator.  commlens_watch_read() writes that many elements, in
 * the order of ranks, to each array that is not null: messages, and bytes. */
COMMLENS_API int commlens_watch_size(commlens_watch_t watch);
COMMLENS_API int commlens_watch_read(commlens_watch_t watch, unsigned long* messages, unsigned long* bytes);
COMMLENS_API void commlens_watch_free(commlens_watch_t watch);

/* ---- a better order of the ranks ----
 *
 * Collective over a communicator, between MPI_Init and MPI_Finalize.  Makes a communicator of the same processes in an
 * order in which those that exchange much are near each other: on one node, in one socket.  Rank r of it shall do from
 * now on what rank r of `comm` did, so the program has to move its data; docs/guide/place.md has an example.  If
 * another order would not pay (COMMLENS_REORDER_MIN_GAIN), and without the profiler, it makes a duplicate, as
 * MPI_Comm_dup().
 *
 * Counts what its processes have exchanged, in any communicator, since the last call for this communicator, or since
 * commlens_reorder() has made it; otherwise from the start.  `comm` and `newcomm` point to variables of type MPI_Comm.
 * A Cartesian communicator keeps its grid; one with another topology, and an intercommunicator, is only duplicated.
 * The program frees the new communicator; `comm` remains.
 *
 * Returns 1 if the order is another one, 0 if *newcomm is a duplicate, or -1 if there is no new communicator because
 * MPI has returned an error or there is no MPI, also after MPI_Finalize, and before MPI_Init unless the library has
 * sessions; *newcomm is then unchanged. */
COMMLENS_API int commlens_reorder(const void* comm, void* newcomm);

#ifdef __cplusplus
}
#endif
#endif
