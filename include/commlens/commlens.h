/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of commlens: a program says what it is doing, and is told whether it is being profiled.
 *
 * A program that uses it links libcommlens-api, a library of empty functions, and runs unchanged without the profiler.
 * When commlens-run or LD_PRELOAD loads the profiler, its functions take their place.  A program that uses none of this
 * is profiled just as well.  docs/guide/annotate.md shows how, also in C++, Fortran and Python.
 *
 * All functions may be called by any thread at any time, before MPI_Init and after MPI_Finalize too (what is told after
 * it is in no profile).  None communicates, none fails in a way that the program would notice: what makes no sense is
 * said on stderr, once. */
#ifndef COMMLENS_H
#define COMMLENS_H

/* Calls go straight to where the loader has found the function, without the usual jump in between.  An empty function
 * costs little more than that jump. */
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
 * A region is a part of the program with a name; it lies within the region that the same thread has begun before and
 * not ended.  Names are texts of UTF-8; those of more than 255 bytes are cut there, as are all texts here.  A region
 * that is left by an exception, a return or a longjmp ends when one around it does. */

/* Begins and ends a region.  `name` at the end says which: those within it that have not ended do so, too.  Null is the
 * innermost one.  An end without a begin does nothing. */
COMMLENS_API void commlens_begin(const char* name);
COMMLENS_API void commlens_end(const char* name);

/* The same for regions that are begun very often: a name that is looked at once.  The handle stays valid for ever, and
 * the same name has the same one.  A null handle, which is what the empty functions give, does nothing. */
typedef const struct commlens_name* commlens_region_t;
COMMLENS_API commlens_region_t commlens_region(const char* name);
COMMLENS_API void commlens_begin_region(commlens_region_t region);
COMMLENS_API void commlens_end_region(commlens_region_t region);

/* A loop is a region whose iterations are looked at: how many, how long, how their times are distributed.  With
 * COMMLENS_LOOP_EACH the first COMMLENS_ITERATIONS of them are kept apart, and what is in them knows of which it is.
 *
 *   commlens_loop_begin("time steps", COMMLENS_LOOP_EACH);
 *   while (...) {
 *     commlens_loop_iteration();
 *     ...
 *   }
 *   commlens_loop_end("time steps");
 *
 * An iteration lasts from commlens_loop_iteration() to the next one, or to the end of the loop; it belongs to the
 * innermost loop that this thread is in, and ends the regions within it that have not ended.  Being a region, a loop
 * also ends by commlens_end() and commlens_end_region(). */
enum { COMMLENS_LOOP_SUM = 0, COMMLENS_LOOP_EACH = 1 };
COMMLENS_API void commlens_loop_begin(const char* name, int mode);
COMMLENS_API void commlens_loop_iteration(void);
COMMLENS_API void commlens_loop_end(const char* name);

/* ---- quantities ---- */

/* A quantity of the program's own, such as memory in use, a residual or cells updated.  `unit` may be empty.  The
 * handle stays valid for ever; the same name and unit have the same one. */
typedef const struct commlens_quantity* commlens_metric_t;
COMMLENS_API commlens_metric_t commlens_metric(const char* name, const char* unit);

/* Tells a value of it, here and now: number, sum, smallest, largest and last are kept for the region this thread is in.
 * Values that are NaN or infinite are counted apart. */
COMMLENS_API void commlens_record(commlens_metric_t metric, double value);

/* Says something of the region this thread is in that does not change: commlens_tag("kind", "IO"). */
COMMLENS_API void commlens_tag(const char* name, const char* value);

/* ---- the measurement ---- */

/* Returns the version of the profiler, as in "0.1.0", or "" when none is loaded.  A constant; never freed. */
COMMLENS_API const char* commlens_version(void);

/* Returns 1 while MPI calls of this process are being counted: from the return of MPI_Init to the call of
 * MPI_Finalize, unless commlens is switched off, paused, or does not fit the MPI library; else 0. */
COMMLENS_API int commlens_active(void);

/* From pause to resume nothing is counted on this process, on no thread: MPI calls, regions, quantities.  They do not
 * nest. */
COMMLENS_API void commlens_pause(void);
COMMLENS_API void commlens_resume(void);

/* Forgets what this process has counted so far.  Regions that are under way begin here, and executions of the outermost
 * ones are numbered from here. */
COMMLENS_API void commlens_reset(void);

/* Copies what this process has counted beside the output, over its last copy, as COMMLENS_FLUSH_EVERY does: `commlens
 * recover` makes a profile of the copies of all ranks, also when the job or its nodes are lost later.  Talks to no
 * other rank.  Returns 0, or 1 when it cannot be written or nothing is counted. */
COMMLENS_API int commlens_flush(void);

/* The same into a folder of its own, such as one for each phase of the program, which is made if need be: `commlens
 * recover FOLDER` makes a profile of it, now or later.  A relative name begins where the program was started. */
COMMLENS_API int commlens_flush_to(const char* folder);

/* ---- who talks to whom, while the program runs ----
 *
 *   commlens_watch_t watch = commlens_watch(&comm, COMMLENS_SENT);
 *   commlens_watch_start(watch);
 *   ...
 *   n = commlens_watch_read(watch, messages, bytes);
 *
 * A watch counts what this process has to do with each process of a communicator, in that communicator: one row of its
 * matrix.  It counts from start to stop, and goes on when it is started again.  docs/guide/online.md says more. */

/* What is watched: messages to them, messages from them, one-sided operations that write to them, and that read from
 * them, and the blocks that collectives have for them. */
enum { COMMLENS_SENT = 0, COMMLENS_RECEIVED = 1, COMMLENS_WRITTEN = 2, COMMLENS_READ = 3, COMMLENS_COLLECTIVE = 4 };

/* Returns a watch, of the communicator that `comm` is the address of: a variable of type MPI_Comm.  Null, which all
 * functions below take for one of no processes, when there is nothing to watch: without the profiler, while it does not
 * count (commlens_active), or with COMMLENS_MATRIX=off. */
typedef struct commlens_watched* commlens_watch_t; /* NOLINT(readability-identifier-naming): a name of C */
COMMLENS_API commlens_watch_t commlens_watch(const void* comm, int kind);
COMMLENS_API void commlens_watch_start(commlens_watch_t watch);
COMMLENS_API void commlens_watch_stop(commlens_watch_t watch);
COMMLENS_API void commlens_watch_reset(commlens_watch_t watch);

/* Returns another watch, which is stopped and has counted as much: it can be read later.  To be freed, too. */
COMMLENS_API commlens_watch_t commlens_watch_snapshot(commlens_watch_t watch);

/* Return of how many processes it is.  Reading writes so many numbers to each array that is not null. */
COMMLENS_API int commlens_watch_size(commlens_watch_t watch);
COMMLENS_API int commlens_watch_read(commlens_watch_t watch, unsigned long* messages, unsigned long* bytes);
COMMLENS_API void commlens_watch_free(commlens_watch_t watch);

#ifdef __cplusplus
}
#endif
#endif
