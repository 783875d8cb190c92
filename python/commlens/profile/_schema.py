# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/schema.py from spec/schema.toml.
"""Tables and views of a profile, in the schema version of this reader."""

from __future__ import annotations

from typing import NamedTuple

VERSION = 17
APPLICATION_ID = 1129073742


class Column(NamedTuple):
    """One column of a table or view; for tables also its constraints, which the head of spec/schema.toml describes."""

    name: str
    type: str
    unit: str
    doc: str
    low: int = 0
    high: int = 1152921504606846976
    is_of_world: bool = False
    most: int = 4096
    values: tuple[str, ...] = ()
    ref: str = ""
    zero: bool = False
    null: bool = False
    since: int = 2
    absent: str = "NULL"
    former_name: str = ""
    former_values: tuple[tuple[str, str], ...] = ()


class Relation(NamedTuple):
    """One table or view, and the statement that creates it."""

    kind: str
    doc: str
    columns: tuple[Column, ...]
    sql: str
    key: tuple[str, ...] = ()
    since: int = 2
    former_name: str = ""
    added_by: str = ""


RELATIONS: dict[str, Relation] = {
    'meta': Relation(
        'table',
        'Facts about the run, one row each: program, nodes, MPI library and options.',
        (
            Column('key', 'TEXT', '', "Name of the fact; the names are listed under 'Keys of meta'.", most=256),
            Column('value', 'TEXT', '', 'Its value, as text.', most=4194304),
        ),
        """\
CREATE TABLE meta ( -- Facts about the run, one row each: program, nodes, MPI library and options.
  key TEXT, -- Name of the fact; the names are listed under 'Keys of meta'.
  value TEXT, -- Its value, as text.
  PRIMARY KEY (key)
) WITHOUT ROWID;
""",
        key=('key',),
    ),
    'setting': Relation(
        'table',
        'How the processes were set up (settings.md), with the number of processes that had each value: settings that differ between ranks have several rows, or fewer ranks than meta.ranks_collected.',
        (
            Column('source', 'TEXT', '', 'label: of COMMLENS_LABEL, or snapshot, the part of the run that commlens history chose. environment: a variable. control: a control variable of the MPI library. tune: a variable that COMMLENS_TUNE set for a family of communicators, with the procedure and the call site that created them. program: executable and build_id. machine: processor.', most=64),
            Column('name', 'TEXT', '', 'Name of the setting.', most=65536),
            Column('value', 'TEXT', '', 'Its value, at most 4,096 bytes. *** replaces possible secrets.', most=65536),
            Column('ranks', 'INTEGER', 'processes', 'Processes that had this value.', high=2147483648, is_of_world=True),
        ),
        """\
CREATE TABLE setting ( -- How the processes were set up (settings.md), with the number of processes that had each value: settings that differ between ranks have several rows, or fewer ranks than meta.ranks_collected.
  source TEXT, -- label: of COMMLENS_LABEL, or snapshot, the part of the run that commlens history chose. environment: a variable. control: a control variable of the MPI library. tune: a variable that COMMLENS_TUNE set for a family of communicators, with the procedure and the call site that created them. program: executable and build_id. machine: processor.
  name TEXT, -- Name of the setting.
  value TEXT, -- Its value, at most 4,096 bytes. *** replaces possible secrets.
  ranks INTEGER, -- [processes] Processes that had this value.
  PRIMARY KEY (source, name, value)
) WITHOUT ROWID;
""",
        key=('source', 'name', 'value'),
        since=8,
    ),
    'rank': Relation(
        'table',
        'One row per process of MPI_COMM_WORLD.',
        (
            Column('rank', 'INTEGER', '', 'Rank in MPI_COMM_WORLD.', high=2147483648, is_of_world=True),
            Column('world', 'INTEGER', '', 'Random 64-bit id of the MPI_COMM_WORLD this process belongs to.', low=-9223372036854775808, high=9223372036854775807),
            Column('node', 'TEXT', '', 'Host name.'),
            Column('pid', 'INTEGER', '', 'Process id on that host.'),
            Column('cpus', 'TEXT', '', 'CPUs that the process was allowed to run on when MPI was initialised, as ranges: 0-3,8.', most=65536),
            Column('init_ns', 'INTEGER', 'ns', 'Time inside MPI_Init or MPI_Init_thread, without the time of commlens.'),
            Column('app_ns', 'INTEGER', 'ns', 'Time from the return of MPI_Init to the call of MPI_Finalize, without pauses of counting. If the program cleared the counters, from the last time it did. If the process did not call MPI_Finalize: up to its last sign of life, which is the time of its crash copy, or else the newest time that it stored in its arena.'),
            Column('mpi_ns', 'INTEGER', 'ns', 'Time inside measured MPI calls of this process, summed over its threads: the sum of time_ns of its cells.'),
            Column('threads', 'INTEGER', '', 'Threads that made a measured MPI call or were in a region.'),
            Column('calls', 'INTEGER', '', 'Measured MPI calls of this process; the sum of calls of its cells.'),
            Column('lost_calls', 'INTEGER', '', 'Calls counted without their key because memory ran out; they are under comm 0, op 0. Normally 0.'),
            Column('state', 'TEXT', '', 'How the process ended: finalized, or for a recovered process running (when it was recovered), ended (without MPI_Finalize), exited, aborted (MPI_Abort), or the name of the signal.'),
            Column('cpu_ns', 'INTEGER', 'ns', 'CPU time of the process within app_ns: user and system, all threads. NULL if it did not call MPI_Finalize.', null=True, since=10),
            Column('preempted', 'INTEGER', '', 'Involuntary context switches of the process within app_ns, all threads: the kernel gave their CPU to another process or thread. A sched_yield() that gives up the CPU counts, too; MPI libraries may call it while they wait. NULL if the process did not call MPI_Finalize.', null=True, since=10),
        ),
        """\
CREATE TABLE rank ( -- One row per process of MPI_COMM_WORLD.
  rank INTEGER PRIMARY KEY, -- Rank in MPI_COMM_WORLD.
  world INTEGER, -- Random 64-bit id of the MPI_COMM_WORLD this process belongs to.
  node TEXT, -- Host name.
  pid INTEGER, -- Process id on that host.
  cpus TEXT, -- CPUs that the process was allowed to run on when MPI was initialised, as ranges: 0-3,8.
  init_ns INTEGER, -- [ns] Time inside MPI_Init or MPI_Init_thread, without the time of commlens.
  app_ns INTEGER, -- [ns] Time from the return of MPI_Init to the call of MPI_Finalize, without pauses of counting. If the program cleared the counters, from the last time it did. If the process did not call MPI_Finalize: up to its last sign of life, which is the time of its crash copy, or else the newest time that it stored in its arena.
  mpi_ns INTEGER, -- [ns] Time inside measured MPI calls of this process, summed over its threads: the sum of time_ns of its cells.
  threads INTEGER, -- Threads that made a measured MPI call or were in a region.
  calls INTEGER, -- Measured MPI calls of this process; the sum of calls of its cells.
  lost_calls INTEGER, -- Calls counted without their key because memory ran out; they are under comm 0, op 0. Normally 0.
  state TEXT, -- How the process ended: finalized, or for a recovered process running (when it was recovered), ended (without MPI_Finalize), exited, aborted (MPI_Abort), or the name of the signal.
  cpu_ns INTEGER, -- [ns] CPU time of the process within app_ns: user and system, all threads. NULL if it did not call MPI_Finalize.
  preempted INTEGER -- Involuntary context switches of the process within app_ns, all threads: the kernel gave their CPU to another process or thread. A sched_yield() that gives up the CPU counts, too; MPI libraries may call it while they wait. NULL if the process did not call MPI_Finalize.
);
""",
        key=('rank',),
    ),
    'comm': Relation(
        'table',
        "One row per communicator, plus rows of two other kinds: 'none' for calls without a communicator, and 'set' for completion calls whose requests belong to several communicators.",
        (
            Column('id', 'INTEGER', '', "Number within this file; 0 is 'no communicator'."),
            Column('hash', 'INTEGER', '', '64-bit identity, the same on every member, computed without communication.', low=-9223372036854775808, high=9223372036854775807),
            Column('name', 'TEXT', '', "Letter of the creating procedure, world rank of the leader, and the leader's count of communicators: W0.0, s0.1. A + at the end marks the first of several communicators that share the row. In summary detail s*.1 stands for several with different leaders.", most=65536),
            Column('user_name', 'TEXT', '', 'Name that the application set with MPI_Comm_set_name, or NULL. Also NULL if communicators that share the row in summary detail have different names.', null=True),
            Column('kind', 'TEXT', '', 'intra, inter, set or none. A process stores 256 different sets; all others share one set without members, {*}.', values=('intra', 'inter', 'set', 'none')),
            Column('parent', 'INTEGER', '', 'Communicator that this one was created from, or NULL.', ref='comm.id', null=True),
            Column('creator', 'INTEGER', '', 'Procedure that created it; NULL for predefined communicators.', ref='op.id', null=True),
            Column('callsite', 'INTEGER', '', "Call site that created it, or NULL. If ranks differ, the leader's.", ref='callsite.id', null=True),
            Column('size', 'INTEGER', 'processes', "Number of processes; for an intercommunicator, in the leader's local group. NULL for none and set.", high=2147483648, is_of_world=True, null=True),
            Column('remote_size', 'INTEGER', 'processes', 'Number of processes in the remote group of an intercommunicator, else NULL.', high=2147483648, is_of_world=True, null=True),
            Column('leader', 'INTEGER', '', 'World rank of its rank 0, or NULL. Also NULL if communicators that share the row have different leaders.', high=2147483648, is_of_world=True, null=True),
            Column('members', 'TEXT', '', "World ranks in the order of its ranks, as ranges with an optional stride: 0-3, 0-14:2, 5. For an intercommunicator both groups, joined by ' | '. NULL in summary detail.", most=8388608, null=True),
            Column('topology', 'TEXT', '', 'Topology: cart 4x2 periodic 10; graph 3 nodes 4 edges; dist_graph or dist_graph weighted; or NULL, as for user_name.', null=True),
            Column('created_ns', 'INTEGER', 'ns', 'Time at which the leader obtained it, since its MPI_Init returned.', null=True),
            Column('freed_ns', 'INTEGER', 'ns', 'Time at which the leader freed it, since its MPI_Init returned, or NULL.', null=True),
            Column('family', 'INTEGER', '', 'Number of the family: the communicators that the same procedure created at the same call site from the same family of parents.'),
            Column('communicators', 'INTEGER', '', 'Number of communicators that share this row. It is 1, except for communicators beyond COMMLENS_COMMS of one parent, which share a row per procedure, leader and size. In summary detail, all communicators of equal size that one collective call created share a row, such as the rows of a grid. Those of MPI_Comm_create_group and those without a parent share one per size and tag.', since=3, absent='1'),
        ),
        """\
CREATE TABLE comm ( -- One row per communicator, plus rows of two other kinds: 'none' for calls without a communicator, and 'set' for completion calls whose requests belong to several communicators.
  id INTEGER PRIMARY KEY, -- Number within this file; 0 is 'no communicator'.
  hash INTEGER, -- 64-bit identity, the same on every member, computed without communication.
  name TEXT, -- Letter of the creating procedure, world rank of the leader, and the leader's count of communicators: W0.0, s0.1. A + at the end marks the first of several communicators that share the row. In summary detail s*.1 stands for several with different leaders.
  user_name TEXT, -- Name that the application set with MPI_Comm_set_name, or NULL. Also NULL if communicators that share the row in summary detail have different names.
  kind TEXT, -- intra, inter, set or none. A process stores 256 different sets; all others share one set without members, {*}.
  parent INTEGER REFERENCES comm(id), -- Communicator that this one was created from, or NULL.
  creator INTEGER REFERENCES op(id), -- Procedure that created it; NULL for predefined communicators.
  callsite INTEGER REFERENCES callsite(id), -- Call site that created it, or NULL. If ranks differ, the leader's.
  size INTEGER, -- [processes] Number of processes; for an intercommunicator, in the leader's local group. NULL for none and set.
  remote_size INTEGER, -- [processes] Number of processes in the remote group of an intercommunicator, else NULL.
  leader INTEGER, -- World rank of its rank 0, or NULL. Also NULL if communicators that share the row have different leaders.
  members TEXT, -- World ranks in the order of its ranks, as ranges with an optional stride: 0-3, 0-14:2, 5. For an intercommunicator both groups, joined by ' | '. NULL in summary detail.
  topology TEXT, -- Topology: cart 4x2 periodic 10; graph 3 nodes 4 edges; dist_graph or dist_graph weighted; or NULL, as for user_name.
  created_ns INTEGER, -- [ns] Time at which the leader obtained it, since its MPI_Init returned.
  freed_ns INTEGER, -- [ns] Time at which the leader freed it, since its MPI_Init returned, or NULL.
  family INTEGER, -- Number of the family: the communicators that the same procedure created at the same call site from the same family of parents.
  communicators INTEGER -- Number of communicators that share this row. It is 1, except for communicators beyond COMMLENS_COMMS of one parent, which share a row per procedure, leader and size. In summary detail, all communicators of equal size that one collective call created share a row, such as the rows of a grid. Those of MPI_Comm_create_group and those without a parent share one per size and tag.
);
""",
        key=('id',),
    ),
    'comm_set': Relation(
        'table',
        "Members of the communicator sets (comm.kind 'set').",
        (
            Column('comm', 'INTEGER', '', 'The set.', ref='comm.id'),
            Column('member', 'INTEGER', '', 'Communicator in the set.', ref='comm.id'),
        ),
        """\
CREATE TABLE comm_set ( -- Members of the communicator sets (comm.kind 'set').
  comm INTEGER REFERENCES comm(id), -- The set.
  member INTEGER REFERENCES comm(id), -- Communicator in the set.
  PRIMARY KEY (comm, member)
) WITHOUT ROWID;
""",
        key=('comm', 'member'),
    ),
    'op': Relation(
        'table',
        'The MPI procedures. The ids are the same in every profile of one schema version. Large-count forms (_c) share the row of the plain form.',
        (
            Column('id', 'INTEGER', '', "Number of the procedure; 0 is 'unknown'."),
            Column('name', 'TEXT', '', 'Name in C: MPI_Allreduce.'),
            Column('class', 'TEXT', '', 'p2p, collective, neighbor, rma, io, completion, comm or other.'),
        ),
        """\
CREATE TABLE op ( -- The MPI procedures. The ids are the same in every profile of one schema version. Large-count forms (_c) share the row of the plain form.
  id INTEGER PRIMARY KEY, -- Number of the procedure; 0 is 'unknown'.
  name TEXT, -- Name in C: MPI_Allreduce.
  class TEXT -- p2p, collective, neighbor, rma, io, completion, comm or other.
);
""",
        key=('id',),
    ),
    'coverage': Relation(
        'table',
        "The MPI names that the application imports, in its executable and the shared objects loaded in MPI_Finalize, and whether commlens measures their calls. The table distinguishes 'never called' from 'not measured'.",
        (
            Column('symbol', 'TEXT', '', 'Name as imported: MPI_Send, PMPI_Send, MPI_Send_c, mpi_send_.'),
            Column('object', 'TEXT', '', 'File name of the executable or shared object that imports it.'),
            Column('procedure', 'TEXT', '', 'C name of the procedure, as in op.name; the symbol itself if it belongs to no procedure.'),
            Column('state', 'TEXT', '', 'measured; skipped: deliberately not measured; absent: not defined by the MPI library; unseen: its calls are missing in this profile.', values=('measured', 'skipped', 'absent', 'unseen')),
            Column('reason', 'TEXT', '', 'Reason why its calls are not in cells, else NULL.', null=True),
            Column('ranks', 'INTEGER', 'processes', 'Processes of this profile that import it.'),
        ),
        """\
CREATE TABLE coverage ( -- The MPI names that the application imports, in its executable and the shared objects loaded in MPI_Finalize, and whether commlens measures their calls. The table distinguishes 'never called' from 'not measured'.
  symbol TEXT, -- Name as imported: MPI_Send, PMPI_Send, MPI_Send_c, mpi_send_.
  object TEXT, -- File name of the executable or shared object that imports it.
  procedure TEXT, -- C name of the procedure, as in op.name; the symbol itself if it belongs to no procedure.
  state TEXT, -- measured; skipped: deliberately not measured; absent: not defined by the MPI library; unseen: its calls are missing in this profile.
  reason TEXT, -- Reason why its calls are not in cells, else NULL.
  ranks INTEGER, -- [processes] Processes of this profile that import it.
  PRIMARY KEY (symbol, object)
) WITHOUT ROWID;
""",
        key=('symbol', 'object'),
        since=3,
    ),
    'region': Relation(
        'table',
        'Code regions that the application marks, as a tree; region 0 is the whole program.',
        (
            Column('id', 'INTEGER', '', "Number within this file; the numbers of a region's parents are smaller."),
            Column('parent', 'INTEGER', '', 'Enclosing region, or NULL.', ref='region.id', null=True),
            Column('name', 'TEXT', '', 'Name of the region; empty for the whole program.', most=1024),
            Column('kind', 'TEXT', '', 'program, region, loop, or others. A process stores 16,384 different regions; all further ones share the region of kind others.', since=5, absent="CASE id WHEN 0 THEN 'program' ELSE 'region' END", values=('program', 'region', 'loop', 'others')),
        ),
        """\
CREATE TABLE region ( -- Code regions that the application marks, as a tree; region 0 is the whole program.
  id INTEGER PRIMARY KEY, -- Number within this file; the numbers of a region's parents are smaller.
  parent INTEGER REFERENCES region(id), -- Enclosing region, or NULL.
  name TEXT, -- Name of the region; empty for the whole program.
  kind TEXT -- program, region, loop, or others. A process stores 16,384 different regions; all further ones share the region of kind others.
);
""",
        key=('id',),
    ),
    'region_time': Relation(
        'table',
        'Time in code regions, one row per region, execution, iteration and rank that entered it. Nested regions have rows of their own: the path is part of the region. View region_rank sums over execution and iteration.',
        (
            Column('region', 'INTEGER', '', 'The region; never 0.', ref='region.id'),
            Column('execution', 'INTEGER', '', 'Execution of the enclosing outermost region, from 0, counted per thread. The last of COMMLENS_EXECUTIONS also contains all later executions.', high=1048575),
            Column('iteration', 'INTEGER', '', 'Iteration of the innermost enclosing loop with COMMLENS_LOOP_EACH, from 0. -1: not in such a loop, or beyond COMMLENS_ITERATIONS.', low=-1, high=4194303),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('calls', 'INTEGER', '', 'Number of times it was entered.'),
            Column('open', 'INTEGER', '', 'Number of these that had not ended when the profile was written. Their time until then is part of time_ns, but not of time_min_ns and time_max_ns.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times from begin to end, over all threads.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest time of those that ended; 0 if none has.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest time of those that ended.'),
            Column('nested_ns', 'INTEGER', 'ns', 'Part of time_ns that was spent in nested regions. The rest is the exclusive time.'),
            Column('mpi_ns', 'INTEGER', 'ns', 'Part of time_ns that was spent inside measured MPI calls, including those in nested regions. If some of them were not timed (table untimed), an estimate, which may be more than time_ns.'),
        ),
        """\
CREATE TABLE region_time ( -- Time in code regions, one row per region, execution, iteration and rank that entered it. Nested regions have rows of their own: the path is part of the region. View region_rank sums over execution and iteration.
  region INTEGER REFERENCES region(id), -- The region; never 0.
  execution INTEGER, -- Execution of the enclosing outermost region, from 0, counted per thread. The last of COMMLENS_EXECUTIONS also contains all later executions.
  iteration INTEGER, -- Iteration of the innermost enclosing loop with COMMLENS_LOOP_EACH, from 0. -1: not in such a loop, or beyond COMMLENS_ITERATIONS.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  calls INTEGER, -- Number of times it was entered.
  open INTEGER, -- Number of these that had not ended when the profile was written. Their time until then is part of time_ns, but not of time_min_ns and time_max_ns.
  time_ns INTEGER, -- [ns] Sum of the times from begin to end, over all threads.
  time_min_ns INTEGER, -- [ns] Shortest time of those that ended; 0 if none has.
  time_max_ns INTEGER, -- [ns] Longest time of those that ended.
  nested_ns INTEGER, -- [ns] Part of time_ns that was spent in nested regions. The rest is the exclusive time.
  mpi_ns INTEGER, -- [ns] Part of time_ns that was spent inside measured MPI calls, including those in nested regions. If some of them were not timed (table untimed), an estimate, which may be more than time_ns.
  PRIMARY KEY (region, execution, iteration, rank)
) WITHOUT ROWID;
""",
        key=('region', 'execution', 'iteration', 'rank'),
        since=5,
    ),
    'loop_time': Relation(
        'table',
        'Time of the iterations of loops, one row per loop, execution, iteration and rank. Iterations that are counted together are one row, -1.',
        (
            Column('region', 'INTEGER', '', 'The loop.', ref='region.id'),
            Column('execution', 'INTEGER', '', 'As in region_time.', high=1048575),
            Column('iteration', 'INTEGER', '', 'Iteration, from 0. -1: all iterations of a loop without COMMLENS_LOOP_EACH, or those beyond COMMLENS_ITERATIONS.', low=-1, high=4194303),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('iterations', 'INTEGER', '', 'Number of iterations: 1, or more for -1 or if the loop ran several times in one execution.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times of these iterations.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest.'),
            Column('nested_ns', 'INTEGER', 'ns', 'Part of time_ns that was spent in regions nested in the loop.'),
            Column('mpi_ns', 'INTEGER', 'ns', 'Part of time_ns that was spent inside measured MPI calls, as in region_time: an estimate of few calls is mostly 0 or too much, and right in the sum over many iterations.'),
        ),
        """\
CREATE TABLE loop_time ( -- Time of the iterations of loops, one row per loop, execution, iteration and rank. Iterations that are counted together are one row, -1.
  region INTEGER REFERENCES region(id), -- The loop.
  execution INTEGER, -- As in region_time.
  iteration INTEGER, -- Iteration, from 0. -1: all iterations of a loop without COMMLENS_LOOP_EACH, or those beyond COMMLENS_ITERATIONS.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  iterations INTEGER, -- Number of iterations: 1, or more for -1 or if the loop ran several times in one execution.
  time_ns INTEGER, -- [ns] Sum of the times of these iterations.
  time_min_ns INTEGER, -- [ns] Shortest.
  time_max_ns INTEGER, -- [ns] Longest.
  nested_ns INTEGER, -- [ns] Part of time_ns that was spent in regions nested in the loop.
  mpi_ns INTEGER, -- [ns] Part of time_ns that was spent inside measured MPI calls, as in region_time: an estimate of few calls is mostly 0 or too much, and right in the sum over many iterations.
  PRIMARY KEY (region, execution, iteration, rank)
) WITHOUT ROWID;
""",
        key=('region', 'execution', 'iteration', 'rank'),
        since=5,
    ),
    'loop_bin': Relation(
        'table',
        "Distribution of the times of a loop's iterations, for every loop.",
        (
            Column('region', 'INTEGER', '', 'The loop.', ref='region.id'),
            Column('execution', 'INTEGER', '', 'As in region_time.', high=1048575),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('bin', 'INTEGER', '', 'k for iterations with 2^(k-1) <= time < 2^k nanoseconds; 0 for time 0. Uses the clock calibration at the begin of the first loop.', high=63),
            Column('iterations', 'INTEGER', '', 'Number of iterations.'),
        ),
        """\
CREATE TABLE loop_bin ( -- Distribution of the times of a loop's iterations, for every loop.
  region INTEGER REFERENCES region(id), -- The loop.
  execution INTEGER, -- As in region_time.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  bin INTEGER, -- k for iterations with 2^(k-1) <= time < 2^k nanoseconds; 0 for time 0. Uses the clock calibration at the begin of the first loop.
  iterations INTEGER, -- Number of iterations.
  PRIMARY KEY (region, execution, rank, bin)
) WITHOUT ROWID;
""",
        key=('region', 'execution', 'rank', 'bin'),
        since=5,
    ),
    'region_slice': Relation(
        'table',
        'Exclusive time of code regions per time slice, in the same slices as table slice. Slices in which nothing happened have no row.',
        (
            Column('region', 'INTEGER', '', 'The region.', ref='region.id'),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('slot', 'INTEGER', '', 'Slice, as in slice.slot. Slice 0 includes the time before MPI_Init.', high=65535),
            Column('calls', 'INTEGER', '', 'Number of times the region ended in this slice.'),
            Column('exclusive_ns', 'INTEGER', 'ns', 'Time in the region in this slice, without nested regions. Sampled when an MPI call or a region ends: the time between two ends counts in the slice of the later one.'),
        ),
        """\
CREATE TABLE region_slice ( -- Exclusive time of code regions per time slice, in the same slices as table slice. Slices in which nothing happened have no row.
  region INTEGER REFERENCES region(id), -- The region.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  slot INTEGER, -- Slice, as in slice.slot. Slice 0 includes the time before MPI_Init.
  calls INTEGER, -- Number of times the region ended in this slice.
  exclusive_ns INTEGER, -- [ns] Time in the region in this slice, without nested regions. Sampled when an MPI call or a region ends: the time between two ends counts in the slice of the later one.
  PRIMARY KEY (region, rank, slot)
) WITHOUT ROWID;
""",
        key=('region', 'rank', 'slot'),
        since=5,
    ),
    'metric': Relation(
        'table',
        'Numbers that the application recorded (commlens_metric), by name and unit, and events that the kernel counted (COMMLENS_COUNTERS).',
        (
            Column('id', 'INTEGER', '', 'Number within this file.'),
            Column('name', 'TEXT', '', 'Name that the application set, or of the event as in COMMLENS_COUNTERS.'),
            Column('unit', 'TEXT', '', 'Its unit, or empty. The same name with another unit is another metric.'),
        ),
        """\
CREATE TABLE metric ( -- Numbers that the application recorded (commlens_metric), by name and unit, and events that the kernel counted (COMMLENS_COUNTERS).
  id INTEGER PRIMARY KEY, -- Number within this file.
  name TEXT, -- Name that the application set, or of the event as in COMMLENS_COUNTERS.
  unit TEXT -- Its unit, or empty. The same name with another unit is another metric.
);
""",
        key=('id',),
        since=5,
    ),
    'metric_value': Relation(
        'table',
        'Values of the metrics, by the region in which the application recorded them.',
        (
            Column('metric', 'INTEGER', '', 'The metric.', ref='metric.id'),
            Column('region', 'INTEGER', '', 'Innermost region, or 0.', ref='region.id'),
            Column('execution', 'INTEGER', '', 'As in region_time; 0 outside all regions.', high=1048575),
            Column('iteration', 'INTEGER', '', 'As in region_time.', low=-1, high=4194303),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('count', 'INTEGER', '', 'Number of finite values.'),
            Column('sum', 'REAL', '', 'Sum of the values, in the unit of the metric. NULL if overflow in both directions makes it NaN.', null=True),
            Column('min', 'REAL', '', 'Smallest value, or NULL.', null=True),
            Column('max', 'REAL', '', 'Largest value, or NULL.', null=True),
            Column('last', 'REAL', '', 'Last value, or NULL. With several threads, that of the first of them.', null=True),
            Column('not_finite', 'INTEGER', '', 'Number of values that were NaN or infinite. No other column contains them.'),
        ),
        """\
CREATE TABLE metric_value ( -- Values of the metrics, by the region in which the application recorded them.
  metric INTEGER REFERENCES metric(id), -- The metric.
  region INTEGER REFERENCES region(id), -- Innermost region, or 0.
  execution INTEGER, -- As in region_time; 0 outside all regions.
  iteration INTEGER, -- As in region_time.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  count INTEGER, -- Number of finite values.
  sum REAL, -- Sum of the values, in the unit of the metric. NULL if overflow in both directions makes it NaN.
  min REAL, -- Smallest value, or NULL.
  max REAL, -- Largest value, or NULL.
  last REAL, -- Last value, or NULL. With several threads, that of the first of them.
  not_finite INTEGER, -- Number of values that were NaN or infinite. No other column contains them.
  PRIMARY KEY (metric, region, execution, iteration, rank)
) WITHOUT ROWID;
""",
        key=('metric', 'region', 'execution', 'iteration', 'rank'),
        since=5,
    ),
    'metric_series': Relation(
        'table',
        'Values of the metrics in the order in which each thread recorded them (COMMLENS_METRIC_SERIES). A thread stores all of them until that number is reached; then every second one, every fourth, and so on. They are therefore evenly spaced over the run, and the distance between two numbers is a power of two. Empty unless the option is set, and in a profile of summary detail.',
        (
            Column('metric', 'INTEGER', '', 'The metric.', ref='metric.id'),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('thread', 'INTEGER', '', 'Number of the thread, from 0, in the order of their first calls.', high=2147483648, is_of_world=True),
            Column('number', 'INTEGER', '', 'Position among the finite values that this thread recorded of the metric, from 0.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time at which it was recorded, since MPI_Init returned; 0 before that.'),
            Column('region', 'INTEGER', '', 'Innermost region, or 0.', ref='region.id'),
            Column('execution', 'INTEGER', '', 'As in region_time; 0 outside all regions.', high=1048575),
            Column('iteration', 'INTEGER', '', 'As in region_time.', low=-1, high=4194303),
            Column('value', 'REAL', '', 'The value, in the unit of the metric.'),
        ),
        """\
CREATE TABLE metric_series ( -- Values of the metrics in the order in which each thread recorded them (COMMLENS_METRIC_SERIES). A thread stores all of them until that number is reached; then every second one, every fourth, and so on. They are therefore evenly spaced over the run, and the distance between two numbers is a power of two. Empty unless the option is set, and in a profile of summary detail.
  metric INTEGER REFERENCES metric(id), -- The metric.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  thread INTEGER, -- Number of the thread, from 0, in the order of their first calls.
  number INTEGER, -- Position among the finite values that this thread recorded of the metric, from 0.
  time_ns INTEGER, -- [ns] Time at which it was recorded, since MPI_Init returned; 0 before that.
  region INTEGER REFERENCES region(id), -- Innermost region, or 0.
  execution INTEGER, -- As in region_time; 0 outside all regions.
  iteration INTEGER, -- As in region_time.
  value REAL, -- The value, in the unit of the metric.
  PRIMARY KEY (metric, rank, thread, number)
) WITHOUT ROWID;
""",
        key=('metric', 'rank', 'thread', 'number'),
        since=15,
    ),
    'event_count': Relation(
        'table',
        'What the processor and the kernel counted (COMMLENS_COUNTERS), by code region, and by procedure and communicator; outside MPI both are 0. The rows of a process add up to all that was counted. Empty unless the option is set, and in a profile of summary detail.',
        (
            Column('metric', 'INTEGER', '', 'The event: the metric that has its name.', ref='metric.id'),
            Column('region', 'INTEGER', '', 'Innermost region, or 0.', ref='region.id'),
            Column('comm', 'INTEGER', '', 'The communicator of the call; 0 outside MPI.', ref='comm.id'),
            Column('op', 'INTEGER', '', 'The MPI procedure; 0 outside MPI.', ref='op.id'),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('count', 'INTEGER', '', 'Events that were counted, of all threads, in the unit of the metric.'),
            Column('enabled_ns', 'INTEGER', 'ns', 'Time for which they were to be counted: that in which the thread ran.'),
            Column('running_ns', 'INTEGER', 'ns', 'Time for which they were counted. If it is less than enabled_ns, the processor had too few counters, and the kernel took turns. The number of events is then about count * enabled_ns / running_ns, as in view event.'),
        ),
        """\
CREATE TABLE event_count ( -- What the processor and the kernel counted (COMMLENS_COUNTERS), by code region, and by procedure and communicator; outside MPI both are 0. The rows of a process add up to all that was counted. Empty unless the option is set, and in a profile of summary detail.
  metric INTEGER REFERENCES metric(id), -- The event: the metric that has its name.
  region INTEGER REFERENCES region(id), -- Innermost region, or 0.
  comm INTEGER REFERENCES comm(id), -- The communicator of the call; 0 outside MPI.
  op INTEGER REFERENCES op(id), -- The MPI procedure; 0 outside MPI.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  count INTEGER, -- Events that were counted, of all threads, in the unit of the metric.
  enabled_ns INTEGER, -- [ns] Time for which they were to be counted: that in which the thread ran.
  running_ns INTEGER, -- [ns] Time for which they were counted. If it is less than enabled_ns, the processor had too few counters, and the kernel took turns. The number of events is then about count * enabled_ns / running_ns, as in view event.
  PRIMARY KEY (metric, region, comm, op, rank)
) WITHOUT ROWID;
""",
        key=('metric', 'region', 'comm', 'op', 'rank'),
        since=16,
    ),
    'datatype': Relation(
        'table',
        'The datatypes that the application made or used in communication (COMMLENS_DATATYPES). Two handles whose constructors and arguments are equal are one datatype. Empty unless the option is set, and in a profile of summary detail.',
        (
            Column('id', 'INTEGER', '', "Number within this file; 0 is 'no datatype'."),
            Column('tree', 'TEXT', '', "How it was constructed, as in 'vector(100, 3, 8) of MPI_DOUBLE'; the guide lists the forms. At most 1,000 bytes; longer ones end in '...', and several datatypes may then have the same text. In parentheses: datatypes that could not be told apart."),
            Column('size', 'INTEGER', 'bytes', 'Bytes of its data (MPI_Type_size).'),
            Column('lower_bound', 'INTEGER', 'bytes', 'Lower bound (MPI_Type_get_extent).', low=-1152921504606846976),
            Column('extent', 'INTEGER', 'bytes', 'Distance of consecutive elements (MPI_Type_get_extent).', low=-1152921504606846976),
        ),
        """\
CREATE TABLE datatype ( -- The datatypes that the application made or used in communication (COMMLENS_DATATYPES). Two handles whose constructors and arguments are equal are one datatype. Empty unless the option is set, and in a profile of summary detail.
  id INTEGER PRIMARY KEY, -- Number within this file; 0 is 'no datatype'.
  tree TEXT, -- How it was constructed, as in 'vector(100, 3, 8) of MPI_DOUBLE'; the guide lists the forms. At most 1,000 bytes; longer ones end in '...', and several datatypes may then have the same text. In parentheses: datatypes that could not be told apart.
  size INTEGER, -- [bytes] Bytes of its data (MPI_Type_size).
  lower_bound INTEGER, -- [bytes] Lower bound (MPI_Type_get_extent).
  extent INTEGER -- [bytes] Distance of consecutive elements (MPI_Type_get_extent).
);
""",
        key=('id',),
        since=16,
    ),
    'datatype_use': Relation(
        'table',
        'Calls by the datatypes of their arguments. A call is in one row, also if it has several datatypes; a call without elements, which may have any datatype, is in none. Time and bytes are as in cell: what a request sends or receives belongs to the call that made it.',
        (
            Column('comm', 'INTEGER', '', 'Communicator.', ref='comm.id', zero=True),
            Column('op', 'INTEGER', '', 'MPI procedure.', ref='op.id', zero=True),
            Column('sent', 'INTEGER', '', 'Datatype of the data that the call sends, or writes to a file; 0: none.', ref='datatype.id', zero=True),
            Column('received', 'INTEGER', '', 'Datatype of the data that it receives, or reads; 0: none.', ref='datatype.id', zero=True),
            Column('target', 'INTEGER', '', 'Datatype of the data in the window of another process; 0: none.', ref='datatype.id', zero=True),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('calls', 'INTEGER', '', 'Number of calls.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time in these calls.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes sent, of datatype sent.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes received, of datatype received.'),
        ),
        """\
CREATE TABLE datatype_use ( -- Calls by the datatypes of their arguments. A call is in one row, also if it has several datatypes; a call without elements, which may have any datatype, is in none. Time and bytes are as in cell: what a request sends or receives belongs to the call that made it.
  comm INTEGER REFERENCES comm(id), -- Communicator.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  sent INTEGER REFERENCES datatype(id), -- Datatype of the data that the call sends, or writes to a file; 0: none.
  received INTEGER REFERENCES datatype(id), -- Datatype of the data that it receives, or reads; 0: none.
  target INTEGER REFERENCES datatype(id), -- Datatype of the data in the window of another process; 0: none.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  calls INTEGER, -- Number of calls.
  time_ns INTEGER, -- [ns] Time in these calls.
  bytes_sent INTEGER, -- [bytes] Bytes sent, of datatype sent.
  bytes_received INTEGER, -- [bytes] Bytes received, of datatype received.
  PRIMARY KEY (comm, op, sent, received, target, rank)
) WITHOUT ROWID;
""",
        key=('comm', 'op', 'sent', 'received', 'target', 'rank'),
        since=16,
    ),
    'tag': Relation(
        'table',
        'Tags that the application attached to regions with commlens_tag(): COMP, IO. A tag has one row per value.',
        (
            Column('region', 'INTEGER', '', 'The region.', ref='region.id'),
            Column('name', 'TEXT', '', 'Name of the tag.'),
            Column('value', 'TEXT', '', 'Value of the tag.'),
        ),
        """\
CREATE TABLE tag ( -- Tags that the application attached to regions with commlens_tag(): COMP, IO. A tag has one row per value.
  region INTEGER REFERENCES region(id), -- The region.
  name TEXT, -- Name of the tag.
  value TEXT, -- Value of the tag.
  PRIMARY KEY (region, name, value)
) WITHOUT ROWID;
""",
        key=('region', 'name', 'value'),
        since=5,
    ),
    'callsite': Relation(
        'table',
        'Places in the application that call MPI, as call paths: the return address of the outermost MPI call, and through column caller those of the functions around it, as many as COMMLENS_FRAMES asks for. A place that is reached on several paths has a row for each. Around the places in compiled code may be places in Python code: these have a file, a function and a line.',
        (
            Column('id', 'INTEGER', '', 'Number within this file.'),
            Column('module', 'TEXT', '', 'Path of the executable or shared object; of a place in Python code, its file; empty if unknown.'),
            Column('build_id', 'TEXT', '', "GNU build id of the module, hexadecimal, or empty. Of a place in Python code: 'python:' and the function."),
            Column('offset', 'INTEGER', 'bytes', 'Return address minus load address of the module; of a place in Python code, the line.', low=-9223372036854775808, high=9223372036854775807),
            Column('caller', 'INTEGER', '', 'Call site from which the function of this one was called; NULL for the outermost that is known.', ref='callsite.id', null=True, since=14),
        ),
        """\
CREATE TABLE callsite ( -- Places in the application that call MPI, as call paths: the return address of the outermost MPI call, and through column caller those of the functions around it, as many as COMMLENS_FRAMES asks for. A place that is reached on several paths has a row for each. Around the places in compiled code may be places in Python code: these have a file, a function and a line.
  id INTEGER PRIMARY KEY, -- Number within this file.
  module TEXT, -- Path of the executable or shared object; of a place in Python code, its file; empty if unknown.
  build_id TEXT, -- GNU build id of the module, hexadecimal, or empty. Of a place in Python code: 'python:' and the function.
  offset INTEGER, -- [bytes] Return address minus load address of the module; of a place in Python code, the line.
  caller INTEGER REFERENCES callsite(id) -- Call site from which the function of this one was called; NULL for the outermost that is known.
);
""",
        key=('id',),
    ),
    'frame': Relation(
        'table',
        'Functions of the call sites, as commlens symbols found them; only profiles to which this command was applied have this table. A call in functions that the compiler inlined into each other has a row for each of them.',
        (
            Column('callsite', 'INTEGER', '', 'The call site.', ref='callsite.id'),
            Column('inlined', 'INTEGER', '', '0 for the function that makes the call; k for the one into which function k - 1 was inlined.', high=255),
            Column('function', 'TEXT', '', 'Name of the function, of C++ without arguments.'),
            Column('file', 'TEXT', '', 'Source file as in the debug information; empty if unknown.'),
            Column('line', 'INTEGER', '', 'Line of the call in this file; 0 if unknown.', high=4294967295),
        ),
        """\
CREATE TABLE frame ( -- Functions of the call sites, as commlens symbols found them; only profiles to which this command was applied have this table. A call in functions that the compiler inlined into each other has a row for each of them.
  callsite INTEGER REFERENCES callsite(id), -- The call site.
  inlined INTEGER, -- 0 for the function that makes the call; k for the one into which function k - 1 was inlined.
  function TEXT, -- Name of the function, of C++ without arguments.
  file TEXT, -- Source file as in the debug information; empty if unknown.
  line INTEGER, -- Line of the call in this file; 0 if unknown.
  PRIMARY KEY (callsite, inlined)
) WITHOUT ROWID;
""",
        key=('callsite', 'inlined'),
        added_by='commlens symbols',
    ),
    'key': Relation(
        'table',
        'Keys of the cells, without the rank: one row per combination that occurred.',
        (
            Column('id', 'INTEGER', '', 'Number within this file, a multiple of the number of ranks in MPI_COMM_WORLD.'),
            Column('comm', 'INTEGER', '', 'Communicator.', ref='comm.id', zero=True),
            Column('op', 'INTEGER', '', 'MPI procedure.', ref='op.id', zero=True),
            Column('bin', 'INTEGER', '', 'Message size bin: 0 for no bytes, k for 2^(k-1) <= size < 2^k bytes, -1 for calls whose blocks differ in size (v and w collectives), -2 for sends and one-sided calls to MPI_PROC_NULL, which move no bytes (in profiles of schema version 8 on). MPI_Sendrecv has the bin of its send buffer, a receive that of its buffer.', low=-2, high=63),
            Column('region', 'INTEGER', '', 'Code region.', ref='region.id', zero=True),
            Column('callsite', 'INTEGER', '', 'Call site, or 0 if call sites are off.', ref='callsite.id', zero=True),
            Column('usual_calls', 'INTEGER', '', 'Usual number of calls per rank; cell_row stores differences to it.', low=-1152921504606846976, since=3, absent='0'),
            Column('usual_sent', 'INTEGER', 'bytes', 'Usual number of bytes that a rank sent.', low=-1152921504606846976, since=3, absent='0'),
            Column('usual_received', 'INTEGER', 'bytes', 'Usual number of bytes that a rank received.', low=-1152921504606846976, since=3, absent='0'),
            Column('usual_noncontig', 'INTEGER', '', 'Usual number of calls with a non-contiguous datatype per rank.', low=-1152921504606846976, since=3, absent='0'),
        ),
        """\
CREATE TABLE key ( -- Keys of the cells, without the rank: one row per combination that occurred.
  id INTEGER PRIMARY KEY, -- Number within this file, a multiple of the number of ranks in MPI_COMM_WORLD.
  comm INTEGER REFERENCES comm(id), -- Communicator.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  bin INTEGER, -- Message size bin: 0 for no bytes, k for 2^(k-1) <= size < 2^k bytes, -1 for calls whose blocks differ in size (v and w collectives), -2 for sends and one-sided calls to MPI_PROC_NULL, which move no bytes (in profiles of schema version 8 on). MPI_Sendrecv has the bin of its send buffer, a receive that of its buffer.
  region INTEGER REFERENCES region(id), -- Code region.
  callsite INTEGER REFERENCES callsite(id), -- Call site, or 0 if call sites are off.
  usual_calls INTEGER, -- Usual number of calls per rank; cell_row stores differences to it.
  usual_sent INTEGER, -- [bytes] Usual number of bytes that a rank sent.
  usual_received INTEGER, -- [bytes] Usual number of bytes that a rank received.
  usual_noncontig INTEGER -- Usual number of calls with a non-contiguous datatype per rank.
);
""",
        key=('id',),
    ),
    'cell_row': Relation(
        'table',
        'The counters as stored, one row per key and rank. Counts and bytes are differences to the usual values in table key: if all ranks do the same they are 0, which needs no space. View cell has the counters themselves.',
        (
            Column('id', 'INTEGER', '', 'key.id + world rank; the ids of keys are multiples of the size of MPI_COMM_WORLD.'),
            Column('calls', 'INTEGER', '', 'Number of calls that returned minus key.usual_calls.', low=-1152921504606846976),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times inside these calls.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes sent minus key.usual_sent.', low=-1152921504606846976),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes received minus key.usual_received.', low=-1152921504606846976),
            Column('noncontiguous', 'INTEGER', '', 'Calls with a non-contiguous datatype minus key.usual_noncontig.', low=-1152921504606846976),
        ),
        """\
CREATE TABLE cell_row ( -- The counters as stored, one row per key and rank. Counts and bytes are differences to the usual values in table key: if all ranks do the same they are 0, which needs no space. View cell has the counters themselves.
  id INTEGER PRIMARY KEY, -- key.id + world rank; the ids of keys are multiples of the size of MPI_COMM_WORLD.
  calls INTEGER, -- Number of calls that returned minus key.usual_calls.
  time_ns INTEGER, -- [ns] Sum of the times inside these calls.
  time_min_ns INTEGER, -- [ns] Shortest call.
  time_max_ns INTEGER, -- [ns] Longest call.
  bytes_sent INTEGER, -- [bytes] Bytes sent minus key.usual_sent.
  bytes_received INTEGER, -- [bytes] Bytes received minus key.usual_received.
  noncontiguous INTEGER -- Calls with a non-contiguous datatype minus key.usual_noncontig.
);
""",
        key=('id',),
        since=3,
    ),
    'untimed': Relation(
        'table',
        'The calls that were not timed: of calls that cannot wait, such as MPI_Isend, MPI_Iprobe and MPI_Test, all are counted, and a random part is timed when a key has enough of them (COMMLENS_CLOCK). A row for each key and rank with such calls; the time of these in view cell is an estimate. Empty in a profile of summary detail.',
        (
            Column('key', 'INTEGER', '', 'Communicator, procedure, message size, region and call site.', ref='key.id'),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('calls', 'INTEGER', '', 'Number of calls that were not timed. They are among those of view cell. May be 0: the last call that was timed may stand for further ones that were not made.'),
            Column('time_error_ns', 'INTEGER', 'ns', 'Standard error of the time that all calls of the key took on this rank: of 20 such times, about 19 are off by less than twice this. That of a sum of keys or ranks is the root of the sum of the squares.'),
        ),
        """\
CREATE TABLE untimed ( -- The calls that were not timed: of calls that cannot wait, such as MPI_Isend, MPI_Iprobe and MPI_Test, all are counted, and a random part is timed when a key has enough of them (COMMLENS_CLOCK). A row for each key and rank with such calls; the time of these in view cell is an estimate. Empty in a profile of summary detail.
  key INTEGER REFERENCES key(id), -- Communicator, procedure, message size, region and call site.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  calls INTEGER, -- Number of calls that were not timed. They are among those of view cell. May be 0: the last call that was timed may stand for further ones that were not made.
  time_error_ns INTEGER, -- [ns] Standard error of the time that all calls of the key took on this rank: of 20 such times, about 19 are off by less than twice this. That of a sum of keys or ranks is the root of the sum of the squares.
  PRIMARY KEY (key, rank)
) WITHOUT ROWID;
""",
        key=('key', 'rank'),
        since=17,
    ),
    'thread': Relation(
        'table',
        'Threads of a process that made a measured MPI call or were in a region, if COMMLENS_THREADS is each; otherwise, and in a profile of summary detail, the table is empty. The first 256 threads of a process have a row each; one row has the counters of all others together.',
        (
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('thread', 'INTEGER', '', 'Number of the thread, from 0, in the order of their first calls; -1: the others.', low=-1, high=255),
            Column('kind', 'TEXT', '', 'main: the thread that runs main(). thread: another one. others: all threads without a row of their own.', values=('main', 'thread', 'others')),
            Column('threads', 'INTEGER', '', 'Number of threads in this row: 1, except for the others.'),
            Column('tid', 'INTEGER', '', 'Id of the thread on its host, as gettid() returns it. NULL for the others.', null=True),
            Column('name', 'TEXT', '', 'Last known name, as pthread_setname_np sets it, at most 15 bytes. The kernel gives a thread the name of the one that creates it, and the main thread that of the program. NULL for the others.', most=64, null=True),
        ),
        """\
CREATE TABLE thread ( -- Threads of a process that made a measured MPI call or were in a region, if COMMLENS_THREADS is each; otherwise, and in a profile of summary detail, the table is empty. The first 256 threads of a process have a row each; one row has the counters of all others together.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  thread INTEGER, -- Number of the thread, from 0, in the order of their first calls; -1: the others.
  kind TEXT, -- main: the thread that runs main(). thread: another one. others: all threads without a row of their own.
  threads INTEGER, -- Number of threads in this row: 1, except for the others.
  tid INTEGER, -- Id of the thread on its host, as gettid() returns it. NULL for the others.
  name TEXT, -- Last known name, as pthread_setname_np sets it, at most 15 bytes. The kernel gives a thread the name of the one that creates it, and the main thread that of the program. NULL for the others.
  PRIMARY KEY (rank, thread)
) WITHOUT ROWID;
""",
        key=('rank', 'thread'),
        since=16,
    ),
    'thread_cell': Relation(
        'table',
        'The counters of each thread. Their sums over the threads of a rank are exactly those of view cell. Empty unless COMMLENS_THREADS is each, and in a profile of summary detail.',
        (
            Column('key', 'INTEGER', '', 'Communicator, procedure, message size, region and call site.', ref='key.id'),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('thread', 'INTEGER', '', 'As in table thread.', low=-1, high=255),
            Column('calls', 'INTEGER', '', 'Number of calls that returned.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times inside these calls.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers. Those of a request count for the thread that completes it.'),
        ),
        """\
CREATE TABLE thread_cell ( -- The counters of each thread. Their sums over the threads of a rank are exactly those of view cell. Empty unless COMMLENS_THREADS is each, and in a profile of summary detail.
  key INTEGER REFERENCES key(id), -- Communicator, procedure, message size, region and call site.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  thread INTEGER, -- As in table thread.
  calls INTEGER, -- Number of calls that returned.
  time_ns INTEGER, -- [ns] Sum of the times inside these calls.
  time_min_ns INTEGER, -- [ns] Shortest call.
  time_max_ns INTEGER, -- [ns] Longest call.
  bytes_sent INTEGER, -- [bytes] Bytes read from send buffers.
  bytes_received INTEGER, -- [bytes] Bytes written to receive buffers. Those of a request count for the thread that completes it.
  PRIMARY KEY (key, rank, thread)
) WITHOUT ROWID;
""",
        key=('key', 'rank', 'thread'),
        since=16,
    ),
    'thread_region': Relation(
        'table',
        'Time of each thread in each region, over all executions and iterations. The sums over the threads of a rank are exactly those of region_time. Empty unless COMMLENS_THREADS is each, and in a profile of summary detail.',
        (
            Column('region', 'INTEGER', '', 'The region.', ref='region.id'),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('thread', 'INTEGER', '', 'As in table thread.', low=-1, high=255),
            Column('calls', 'INTEGER', '', 'As in region_time.'),
            Column('open', 'INTEGER', '', 'As in region_time.'),
            Column('time_ns', 'INTEGER', 'ns', 'As in region_time.'),
            Column('nested_ns', 'INTEGER', 'ns', 'As in region_time.'),
            Column('mpi_ns', 'INTEGER', 'ns', 'As in region_time.'),
        ),
        """\
CREATE TABLE thread_region ( -- Time of each thread in each region, over all executions and iterations. The sums over the threads of a rank are exactly those of region_time. Empty unless COMMLENS_THREADS is each, and in a profile of summary detail.
  region INTEGER REFERENCES region(id), -- The region.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  thread INTEGER, -- As in table thread.
  calls INTEGER, -- As in region_time.
  open INTEGER, -- As in region_time.
  time_ns INTEGER, -- [ns] As in region_time.
  nested_ns INTEGER, -- [ns] As in region_time.
  mpi_ns INTEGER, -- [ns] As in region_time.
  PRIMARY KEY (region, rank, thread)
) WITHOUT ROWID;
""",
        key=('region', 'rank', 'thread'),
        since=16,
    ),
    'slice': Relation(
        'table',
        'The counters over time. The time since MPI_Init is divided into at most 128 slices of meta.slice_ns. There are fewer slices if one would be shorter than 65,536 clock ticks per cell of a thread (scanning the cells would then cost more than about 0.4 %), if a thread would store more than 8,192 entries, or if the table would have more than 65,536 rows and more than an eighth of those of cell. Slices in which nothing happened have no row.',
        (
            Column('comm', 'INTEGER', '', 'Communicator; if meta.slice_of is family, the first communicator of the family.', ref='comm.id'),
            Column('op', 'INTEGER', '', 'MPI procedure.', ref='op.id'),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('slot', 'INTEGER', '', 'Slice, from 0: it begins slot * slice_ns after MPI_Init returned on this rank. Slice 0 includes the time before.', high=65535),
            Column('calls', 'INTEGER', '', 'Calls that ended in this slice.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time inside MPI in this slice. The time of a long call is divided over the slices that it spans.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes sent by calls that ended in this slice.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes received by calls that ended in this slice; the bytes of a request count when it is completed.'),
        ),
        """\
CREATE TABLE slice ( -- The counters over time. The time since MPI_Init is divided into at most 128 slices of meta.slice_ns. There are fewer slices if one would be shorter than 65,536 clock ticks per cell of a thread (scanning the cells would then cost more than about 0.4 %), if a thread would store more than 8,192 entries, or if the table would have more than 65,536 rows and more than an eighth of those of cell. Slices in which nothing happened have no row.
  comm INTEGER REFERENCES comm(id), -- Communicator; if meta.slice_of is family, the first communicator of the family.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  slot INTEGER, -- Slice, from 0: it begins slot * slice_ns after MPI_Init returned on this rank. Slice 0 includes the time before.
  calls INTEGER, -- Calls that ended in this slice.
  time_ns INTEGER, -- [ns] Time inside MPI in this slice. The time of a long call is divided over the slices that it spans.
  bytes_sent INTEGER, -- [bytes] Bytes sent by calls that ended in this slice.
  bytes_received INTEGER, -- [bytes] Bytes received by calls that ended in this slice; the bytes of a request count when it is completed.
  PRIMARY KEY (comm, op, rank, slot)
) WITHOUT ROWID;
""",
        key=('comm', 'op', 'rank', 'slot'),
        since=3,
    ),
    'flow': Relation(
        'table',
        'The kinds of traffic in table peer; the same in every profile of one schema version.',
        (
            Column('id', 'INTEGER', '', 'Number of the kind.'),
            Column('name', 'TEXT', '', "sent, received: messages of the application's own two-sided calls, counted by the sender and by the receiver. put, get: one-sided, counted by the origin; accumulate is a put. collective: messages inside a collective, counted by the sender, if the MPI library exposes them; internal: messages inside any other call, counted in the same way. share: the block that a collective has for one process, if blocks may differ in size: for neighbourhood collectives, and for others with COMMLENS_MATRIX=all. one_to_all, all_to_one, all_to_all: calls and bytes of collectives by their shape.", former_values=(('put', 'written'), ('get', 'read'))),
            Column('outward', 'INTEGER', '', '1: the bytes go from rank to peer; 0: the other way.', high=1),
        ),
        """\
CREATE TABLE flow ( -- The kinds of traffic in table peer; the same in every profile of one schema version.
  id INTEGER PRIMARY KEY, -- Number of the kind.
  name TEXT, -- sent, received: messages of the application's own two-sided calls, counted by the sender and by the receiver. put, get: one-sided, counted by the origin; accumulate is a put. collective: messages inside a collective, counted by the sender, if the MPI library exposes them; internal: messages inside any other call, counted in the same way. share: the block that a collective has for one process, if blocks may differ in size: for neighbourhood collectives, and for others with COMMLENS_MATRIX=all. one_to_all, all_to_one, all_to_all: calls and bytes of collectives by their shape.
  outward INTEGER -- 1: the bytes go from rank to peer; 0: the other way.
);
""",
        key=('id',),
        since=6,
    ),
    'peer': Relation(
        'table',
        'The communication matrix: one row per communicator, kind, rank, peer and message size that occurred, and per region and slice if COMMLENS_MATRIX_BY is set. Empty with COMMLENS_MATRIX=off and in summary detail.',
        (
            Column('comm', 'INTEGER', '', 'Communicator; for one-sided traffic that of the window. 0: an internal communicator of the MPI library.', ref='comm.id', zero=True),
            Column('flow', 'INTEGER', '', 'Kind of traffic.', ref='flow.id'),
            Column('op', 'INTEGER', '', 'Procedure, for messages inside calls and for shapes of collectives; else 0.', ref='op.id', zero=True),
            Column('call_bin', 'INTEGER', '', 'For messages inside a collective: size bin of the collective, as key.bin. NULL for other messages, and for v and w collectives, whose size is unknown.', low=-1, high=63, null=True),
            Column('region', 'INTEGER', '', 'Code region of the call, or of the call that created the request. 0 unless COMMLENS_MATRIX_BY includes regions.', ref='region.id', zero=True),
            Column('slice', 'INTEGER', '', 'Time slice, as in slice.slot. 0 unless COMMLENS_MATRIX_BY includes slices.', high=65535),
            Column('rank', 'INTEGER', '', 'World rank that counted.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('peer', 'INTEGER', '', 'World rank of the other process. NULL for a process of another world, a block of processes, a process of a communicator that was already freed, an unknown process in an internal communicator of the MPI library, and for shapes, which have no peer.', high=2147483648, is_of_world=True, null=True),
            Column('first', 'INTEGER', '', 'If peer is NULL: rank of the other process in the communicator (in the remote group of an intercommunicator); for a block its first rank. NULL otherwise, for shapes, and in internal communicators of the MPI library.', high=2147483648, is_of_world=True, null=True),
            Column('peers', 'INTEGER', 'processes', 'Number of consecutive ranks of the communicator that this row counts together: 1, or more beyond COMMLENS_MATRIX_PAIRS.', high=2147483648, is_of_world=True),
            Column('bin', 'INTEGER', '', 'Message size bin: 0 for no bytes, k for 2^(k-1) <= bytes < 2^k.', high=63),
            Column('messages', 'INTEGER', '', 'Number of messages; for a shape, number of calls.'),
            Column('bytes', 'INTEGER', 'bytes', 'Their bytes.'),
            Column('posted', 'TEXT', '', 'For a message inside a collective: how the MPI library posted it, as a non-blocking send, a blocking one, or by starting a persistent request. NULL for other messages.', null=True, since=9, values=('isend', 'send', 'start')),
        ),
        """\
CREATE TABLE peer ( -- The communication matrix: one row per communicator, kind, rank, peer and message size that occurred, and per region and slice if COMMLENS_MATRIX_BY is set. Empty with COMMLENS_MATRIX=off and in summary detail.
  comm INTEGER REFERENCES comm(id), -- Communicator; for one-sided traffic that of the window. 0: an internal communicator of the MPI library.
  flow INTEGER REFERENCES flow(id), -- Kind of traffic.
  op INTEGER REFERENCES op(id), -- Procedure, for messages inside calls and for shapes of collectives; else 0.
  call_bin INTEGER, -- For messages inside a collective: size bin of the collective, as key.bin. NULL for other messages, and for v and w collectives, whose size is unknown.
  region INTEGER REFERENCES region(id), -- Code region of the call, or of the call that created the request. 0 unless COMMLENS_MATRIX_BY includes regions.
  slice INTEGER, -- Time slice, as in slice.slot. 0 unless COMMLENS_MATRIX_BY includes slices.
  rank INTEGER REFERENCES rank(rank), -- World rank that counted.
  peer INTEGER, -- World rank of the other process. NULL for a process of another world, a block of processes, a process of a communicator that was already freed, an unknown process in an internal communicator of the MPI library, and for shapes, which have no peer.
  first INTEGER, -- If peer is NULL: rank of the other process in the communicator (in the remote group of an intercommunicator); for a block its first rank. NULL otherwise, for shapes, and in internal communicators of the MPI library.
  peers INTEGER, -- [processes] Number of consecutive ranks of the communicator that this row counts together: 1, or more beyond COMMLENS_MATRIX_PAIRS.
  bin INTEGER, -- Message size bin: 0 for no bytes, k for 2^(k-1) <= bytes < 2^k.
  messages INTEGER, -- Number of messages; for a shape, number of calls.
  bytes INTEGER, -- [bytes] Their bytes.
  posted TEXT -- For a message inside a collective: how the MPI library posted it, as a non-blocking send, a blocking one, or by starting a persistent request. NULL for other messages.
);
""",
        since=6,
    ),
    'waiting': Relation(
        'table',
        'How long each rank waited for others in sampled calls (COMMLENS_WAITING); the rows add up those that could be split into waiting and the rest. The share waiting_ns / time_ns estimates that of all calls (view split). Collectives: of each communicator, procedure and message size, all members sample the same calls, spread over the run. In a barrier, an allreduce, an alltoall and the like a rank waits until the last member has entered; in a broadcast or scatter the others wait for the root; in a reduce or gather the root waits for the others; in a prefix sum each rank waits for those below it, in a neighbourhood collective for its neighbours. Messages (op.class is p2p or completion; since version 13; prefix sums and neighbourhood collectives have rows like these): of each pair of processes in a communicator, both sample the same messages. A call that completes receives waits until the latest sender has entered its send; a blocking send waits until the receive is posted, if it returned after that. A call that completes a non-blocking or persistent collective waits until the last member has started it, or until its root has. MPI_Win_fence counts as a barrier. Empty in a profile of summary detail.',
        (
            Column('comm', 'INTEGER', '', 'Communicator.', ref='comm.id'),
            Column('op', 'INTEGER', '', 'MPI procedure: a blocking collective, MPI_Win_fence, a receive, a blocking send, or a procedure that completes requests, also those of collectives.', ref='op.id'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.', low=-2, high=63),
            Column('region', 'INTEGER', '', 'Code region in which the rank made the calls.', ref='region.id'),
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('samples', 'INTEGER', '', 'Sampled calls. 0 in a row of messages that only tells for how long others waited for the rank, or that has calls without samples.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time of the rank in these calls. Of messages, if some of its calls wait for none: the time of all its calls, times the share of those that wait for messages which the samples are.'),
            Column('waiting_ns', 'INTEGER', 'ns', 'The part of it in which the rank waited.'),
            Column('last', 'INTEGER', '', 'Number of these calls in which others waited for this rank longer than for any other. Of messages: number of sampled calls of other ranks in which these waited for this rank longest.'),
            Column('late_ns', 'INTEGER', 'ns', 'Sum over these of the time for which others waited for this rank alone, as in sampled.late_ns. Of messages: the time for which they waited for it.'),
            Column('behind_ns', 'INTEGER', 'ns', 'Sum over the calls of the time from the first entry of a member to the entry of this rank. Of messages: from the entry of the other side, if that was earlier.'),
            Column('between_ns', 'INTEGER', 'ns', 'Time of the rank from one sampled call of this communicator, procedure and size to the next. 0 for messages, and so is outside_ns.'),
            Column('outside_ns', 'INTEGER', 'ns', 'The part of between_ns outside measured MPI calls. If a rank that is last has more of it than the others, it computed longer. If it has little of it, and more of the rest than the others, it came late out of other MPI calls.'),
        ),
        """\
CREATE TABLE waiting ( -- How long each rank waited for others in sampled calls (COMMLENS_WAITING); the rows add up those that could be split into waiting and the rest. The share waiting_ns / time_ns estimates that of all calls (view split). Collectives: of each communicator, procedure and message size, all members sample the same calls, spread over the run. In a barrier, an allreduce, an alltoall and the like a rank waits until the last member has entered; in a broadcast or scatter the others wait for the root; in a reduce or gather the root waits for the others; in a prefix sum each rank waits for those below it, in a neighbourhood collective for its neighbours. Messages (op.class is p2p or completion; since version 13; prefix sums and neighbourhood collectives have rows like these): of each pair of processes in a communicator, both sample the same messages. A call that completes receives waits until the latest sender has entered its send; a blocking send waits until the receive is posted, if it returned after that. A call that completes a non-blocking or persistent collective waits until the last member has started it, or until its root has. MPI_Win_fence counts as a barrier. Empty in a profile of summary detail.
  comm INTEGER REFERENCES comm(id), -- Communicator.
  op INTEGER REFERENCES op(id), -- MPI procedure: a blocking collective, MPI_Win_fence, a receive, a blocking send, or a procedure that completes requests, also those of collectives.
  bin INTEGER, -- Message size bin, as in key.bin.
  region INTEGER REFERENCES region(id), -- Code region in which the rank made the calls.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  samples INTEGER, -- Sampled calls. 0 in a row of messages that only tells for how long others waited for the rank, or that has calls without samples.
  time_ns INTEGER, -- [ns] Time of the rank in these calls. Of messages, if some of its calls wait for none: the time of all its calls, times the share of those that wait for messages which the samples are.
  waiting_ns INTEGER, -- [ns] The part of it in which the rank waited.
  last INTEGER, -- Number of these calls in which others waited for this rank longer than for any other. Of messages: number of sampled calls of other ranks in which these waited for this rank longest.
  late_ns INTEGER, -- [ns] Sum over these of the time for which others waited for this rank alone, as in sampled.late_ns. Of messages: the time for which they waited for it.
  behind_ns INTEGER, -- [ns] Sum over the calls of the time from the first entry of a member to the entry of this rank. Of messages: from the entry of the other side, if that was earlier.
  between_ns INTEGER, -- [ns] Time of the rank from one sampled call of this communicator, procedure and size to the next. 0 for messages, and so is outside_ns.
  outside_ns INTEGER, -- [ns] The part of between_ns outside measured MPI calls. If a rank that is last has more of it than the others, it computed longer. If it has little of it, and more of the rest than the others, it came late out of other MPI calls.
  PRIMARY KEY (comm, op, bin, region, rank)
) WITHOUT ROWID;
""",
        key=('comm', 'op', 'bin', 'region', 'rank'),
        since=11,
    ),
    'sampled': Relation(
        'table',
        'The sampled calls that could be split: one row per communicator, procedure and message size, with sums over all members. In the index if the profile has shards.',
        (
            Column('comm', 'INTEGER', '', 'Communicator.', ref='comm.id'),
            Column('op', 'INTEGER', '', 'MPI procedure.', ref='op.id'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.', low=-2, high=63),
            Column('samples', 'INTEGER', '', 'Sampled calls: of a collective, each counted once for all its members; of messages, prefix sums and neighbourhood collectives, once for each rank.'),
            Column('collectives', 'INTEGER', '', 'All calls, counted in the same way. Of messages: the number of calls for which the samples stand, rounded: those that wait for a message, without others of the procedure.'),
            Column('across', 'INTEGER', '', 'Sampled calls whose members are on several machines, whose clocks differ.'),
            Column('by_clock', 'INTEGER', '', 'Those of them that were split by when the members entered, which table clock tells: collectives with a root. In the others waiting is computed from the durations: a rank waited as long as its call took longer than that of the last, as far as table clock allows it. Its error is the time from the first to the last return of a member, but not more than four times clock.error_ns.', null=True, since=12),
            Column('clock_ns', 'INTEGER', 'ns', 'By how much waiting_ns may be wrong because the clocks are related with an error: for each call of by_clock and each member that may wait, twice the largest clock.error_ns of a member. This and by_clock are NULL in profiles of versions before 12.', null=True, since=12),
            Column('time_ns', 'INTEGER', 'ns', 'Time in the sampled calls, sum over the members; of messages as in waiting.time_ns.'),
            Column('waiting_ns', 'INTEGER', 'ns', 'The part of it in which members waited for others.'),
            Column('error_ns', 'INTEGER', 'ns', 'Standard error of the waiting in all calls that view split estimates: 0 if every call was sampled, NULL if fewer than four were, or of messages fewer than four blocks of 16. Plus clock_ns, scaled to all calls.', null=True),
            Column('spread_ns', 'INTEGER', 'ns', 'Median of the time from the first entry of a member to the last; of messages between the entries of the two sides.'),
            Column('late_ns', 'INTEGER', 'ns', 'Sum over the samples of the time for which others waited for the last alone: from the entry of the last but one to its own; in a broadcast or scatter from the first entry of another rank to that of the root; of messages the waiting itself.'),
        ),
        """\
CREATE TABLE sampled ( -- The sampled calls that could be split: one row per communicator, procedure and message size, with sums over all members. In the index if the profile has shards.
  comm INTEGER REFERENCES comm(id), -- Communicator.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  bin INTEGER, -- Message size bin, as in key.bin.
  samples INTEGER, -- Sampled calls: of a collective, each counted once for all its members; of messages, prefix sums and neighbourhood collectives, once for each rank.
  collectives INTEGER, -- All calls, counted in the same way. Of messages: the number of calls for which the samples stand, rounded: those that wait for a message, without others of the procedure.
  across INTEGER, -- Sampled calls whose members are on several machines, whose clocks differ.
  by_clock INTEGER, -- Those of them that were split by when the members entered, which table clock tells: collectives with a root. In the others waiting is computed from the durations: a rank waited as long as its call took longer than that of the last, as far as table clock allows it. Its error is the time from the first to the last return of a member, but not more than four times clock.error_ns.
  clock_ns INTEGER, -- [ns] By how much waiting_ns may be wrong because the clocks are related with an error: for each call of by_clock and each member that may wait, twice the largest clock.error_ns of a member. This and by_clock are NULL in profiles of versions before 12.
  time_ns INTEGER, -- [ns] Time in the sampled calls, sum over the members; of messages as in waiting.time_ns.
  waiting_ns INTEGER, -- [ns] The part of it in which members waited for others.
  error_ns INTEGER, -- [ns] Standard error of the waiting in all calls that view split estimates: 0 if every call was sampled, NULL if fewer than four were, or of messages fewer than four blocks of 16. Plus clock_ns, scaled to all calls.
  spread_ns INTEGER, -- [ns] Median of the time from the first entry of a member to the last; of messages between the entries of the two sides.
  late_ns INTEGER, -- [ns] Sum over the samples of the time for which others waited for the last alone: from the entry of the last but one to its own; in a broadcast or scatter from the first entry of another rank to that of the root; of messages the waiting itself.
  PRIMARY KEY (comm, op, bin)
) WITHOUT ROWID;
""",
        key=('comm', 'op', 'bin'),
        since=11,
    ),
    'clock': Relation(
        'table',
        'How the clocks of the machines are related, in a run on several machines: nobody leaves a barrier, an allreduce or an alltoall before all have entered, so each sampled one bounds the difference between two clocks, and all together the line that translates one into the other. All leave soon after the last has entered, which narrows these bounds: the median of the differences between exits is taken to be wrong by at most twice the sum of the time of the operation and the deviation that three quarters of the calls stay below, or by more if the medians of different times contradict each other. In the index if the profile has shards.',
        (
            Column('rank', 'INTEGER', '', 'Lowest rank on the machine that has samples. The clock of the machine in the first row is the reference.'),
            Column('calls', 'INTEGER', '', 'Sampled calls that bound its difference to the reference, or to a machine that is related to it; 0 for the reference.'),
            Column('drift_ppm', 'REAL', '', 'By how many millionths the clock of the reference is faster than the rates tell that both machines have measured by their own system clocks. NULL if the clock is not related.', null=True),
            Column('error_ns', 'INTEGER', 'ns', 'The translation is wrong by at most this at any time in which calls were sampled, if the rate is constant. NULL if the clock is not related.', null=True),
            Column('excess_ns', 'INTEGER', 'ns', 'By how much the calls contradict a constant rate; 0: they do not. A clock that jumped or changed its rate has more; error_ns is at least twice as large.', null=True),
        ),
        """\
CREATE TABLE clock ( -- How the clocks of the machines are related, in a run on several machines: nobody leaves a barrier, an allreduce or an alltoall before all have entered, so each sampled one bounds the difference between two clocks, and all together the line that translates one into the other. All leave soon after the last has entered, which narrows these bounds: the median of the differences between exits is taken to be wrong by at most twice the sum of the time of the operation and the deviation that three quarters of the calls stay below, or by more if the medians of different times contradict each other. In the index if the profile has shards.
  rank INTEGER PRIMARY KEY, -- Lowest rank on the machine that has samples. The clock of the machine in the first row is the reference.
  calls INTEGER, -- Sampled calls that bound its difference to the reference, or to a machine that is related to it; 0 for the reference.
  drift_ppm REAL, -- By how many millionths the clock of the reference is faster than the rates tell that both machines have measured by their own system clocks. NULL if the clock is not related.
  error_ns INTEGER, -- [ns] The translation is wrong by at most this at any time in which calls were sampled, if the rate is constant. NULL if the clock is not related.
  excess_ns INTEGER -- [ns] By how much the calls contradict a constant rate; 0: they do not. A clock that jumped or changed its rate has more; error_ns is at least twice as large.
);
""",
        key=('rank',),
        since=12,
    ),
    'unsplit': Relation(
        'table',
        'Sampled calls that could not be split into waiting and operation; of messages, one end of each is a call. In the index if the profile has shards.',
        (
            Column('comm', 'INTEGER', '', 'Communicator.', ref='comm.id'),
            Column('op', 'INTEGER', '', 'MPI procedure.', ref='op.id'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.', low=-2, high=63),
            Column('reason', 'TEXT', '', 'members: some members have no sample of the call, because they paused, had less memory, or ended early; of a message, the other process has none; the neighbours of a process are unknown, in a recovered profile. no data: a block was empty, so some members need not wait for each other. machines: a rooted collective across machines whose clocks are not related, or with an error that is longer than the call; a message between machines whose clocks are not related. order: a member left before the one for which it waits had entered, so the numbers of the calls differ between the members; messages that were received in another order than they were sent, as far as their tags do not tell which is which. prefix: a prefix sum; they are split in profiles of later versions of commlens. threads: several threads send, or receive, messages between the same two processes in one communicator, so that their order is not known; their number. posting: a send of which it is not known when its receive was posted: by a persistent request, by one of several threads, or more than 256 requests before it was completed.', values=('members', 'no data', 'machines', 'order', 'prefix', 'threads', 'posting')),
            Column('calls', 'INTEGER', '', 'Number of sampled calls.'),
        ),
        """\
CREATE TABLE unsplit ( -- Sampled calls that could not be split into waiting and operation; of messages, one end of each is a call. In the index if the profile has shards.
  comm INTEGER REFERENCES comm(id), -- Communicator.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  bin INTEGER, -- Message size bin, as in key.bin.
  reason TEXT, -- members: some members have no sample of the call, because they paused, had less memory, or ended early; of a message, the other process has none; the neighbours of a process are unknown, in a recovered profile. no data: a block was empty, so some members need not wait for each other. machines: a rooted collective across machines whose clocks are not related, or with an error that is longer than the call; a message between machines whose clocks are not related. order: a member left before the one for which it waits had entered, so the numbers of the calls differ between the members; messages that were received in another order than they were sent, as far as their tags do not tell which is which. prefix: a prefix sum; they are split in profiles of later versions of commlens. threads: several threads send, or receive, messages between the same two processes in one communicator, so that their order is not known; their number. posting: a send of which it is not known when its receive was posted: by a persistent request, by one of several threads, or more than 256 requests before it was completed.
  calls INTEGER, -- Number of sampled calls.
  PRIMARY KEY (comm, op, bin, reason)
) WITHOUT ROWID;
""",
        key=('comm', 'op', 'bin', 'reason'),
        since=11,
    ),
    'scope': Relation(
        'table',
        'The scopes of the distributions in table spread, in a profile of summary detail; else empty. NULL in a column means all values together: a scope in which all columns but members are NULL is the whole run. If procedure and size have only one call site, the scope of this call site stands for all.',
        (
            Column('id', 'INTEGER', '', 'Number within this file.'),
            Column('family', 'INTEGER', '', 'Family of communicators, comm.family, or NULL; scopes of single communicators have none.', null=True),
            Column('comm', 'INTEGER', '', 'Communicator, or NULL.', ref='comm.id', null=True),
            Column('op', 'INTEGER', '', 'MPI procedure, or NULL.', ref='op.id', null=True),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin, or NULL.', low=-2, high=63, null=True),
            Column('callsite', 'INTEGER', '', 'Call site, or NULL.', ref='callsite.id', null=True),
            Column('key', 'INTEGER', '', 'Key, if the scope has only one; NULL for scopes that add up several.', ref='key.id', null=True),
            Column('members', 'INTEGER', 'processes', 'Ranks that are members of the communicator, or of one of the family, whether they made a call or not; NULL in scopes of procedures. Of a set: ranks that completed such requests.', high=2147483648, is_of_world=True, null=True),
            Column('region', 'INTEGER', '', 'Code region, or NULL. A scope with a region has only the time in this region.', ref='region.id', null=True, since=5),
        ),
        """\
CREATE TABLE scope ( -- The scopes of the distributions in table spread, in a profile of summary detail; else empty. NULL in a column means all values together: a scope in which all columns but members are NULL is the whole run. If procedure and size have only one call site, the scope of this call site stands for all.
  id INTEGER PRIMARY KEY, -- Number within this file.
  family INTEGER, -- Family of communicators, comm.family, or NULL; scopes of single communicators have none.
  comm INTEGER REFERENCES comm(id), -- Communicator, or NULL.
  op INTEGER REFERENCES op(id), -- MPI procedure, or NULL.
  bin INTEGER, -- Message size bin, as in key.bin, or NULL.
  callsite INTEGER REFERENCES callsite(id), -- Call site, or NULL.
  key INTEGER REFERENCES key(id), -- Key, if the scope has only one; NULL for scopes that add up several.
  members INTEGER, -- [processes] Ranks that are members of the communicator, or of one of the family, whether they made a call or not; NULL in scopes of procedures. Of a set: ranks that completed such requests.
  region INTEGER REFERENCES region(id) -- Code region, or NULL. A scope with a region has only the time in this region.
);
""",
        key=('id',),
        since=4,
        former_name='line',
    ),
    'spread': Relation(
        'table',
        'Distribution of a counter over the ranks, in a profile of summary detail; else empty. The ranks reduce it while they collect, so its size does not depend on the number of ranks.',
        (
            Column('scope', 'INTEGER', '', 'Scope that the counter belongs to.', ref='scope.id', former_name='line'),
            Column('counter', 'TEXT', '', 'A column of view cell, but timed and time_error_ns, summed over the keys of the scope; of a key also untimed: calls that were not timed. For a region: calls, time_ns, exclusive_ns, mpi_ns and outside_ns (time_ns - mpi_ns), as in view region_rank. For the whole run: a column of table rank, outside_ns (app_ns - mpi_ns), or a row of table overhead (own_init_ns, own_wait_ns, own_collect_ns, own_call_ns, own_calls_ns). Times are in nanoseconds, bytes in bytes. A counter that is 0 on all ranks has no row.'),
            Column('ranks', 'INTEGER', 'processes', 'Number of ranks that made such calls.', high=2147483648, is_of_world=True),
            Column('sum', 'INTEGER', '', 'Sum over these ranks; NULL for time_min_ns and time_max_ns.', null=True),
            Column('min', 'INTEGER', '', 'Smallest value of a rank.'),
            Column('min_rank', 'INTEGER', '', 'World rank with this value; the lowest if several have it.', high=2147483648, is_of_world=True),
            Column('max', 'INTEGER', '', 'Largest value of a rank.'),
            Column('max_rank', 'INTEGER', '', 'World rank with this value; the lowest if several have it.', high=2147483648, is_of_world=True),
            Column('p05', 'INTEGER', '', '5 % quantile over the ranks. All quantiles are within 1/16 of the true value, and NULL if all ranks have the same value.', null=True),
            Column('p25', 'INTEGER', '', '25 % quantile.', null=True),
            Column('p50', 'INTEGER', '', 'Median.', null=True),
            Column('p75', 'INTEGER', '', '75 % quantile.', null=True),
            Column('p95', 'INTEGER', '', '95 % quantile.', null=True),
        ),
        """\
CREATE TABLE spread ( -- Distribution of a counter over the ranks, in a profile of summary detail; else empty. The ranks reduce it while they collect, so its size does not depend on the number of ranks.
  scope INTEGER REFERENCES scope(id), -- Scope that the counter belongs to.
  counter TEXT, -- A column of view cell, but timed and time_error_ns, summed over the keys of the scope; of a key also untimed: calls that were not timed. For a region: calls, time_ns, exclusive_ns, mpi_ns and outside_ns (time_ns - mpi_ns), as in view region_rank. For the whole run: a column of table rank, outside_ns (app_ns - mpi_ns), or a row of table overhead (own_init_ns, own_wait_ns, own_collect_ns, own_call_ns, own_calls_ns). Times are in nanoseconds, bytes in bytes. A counter that is 0 on all ranks has no row.
  ranks INTEGER, -- [processes] Number of ranks that made such calls.
  sum INTEGER, -- Sum over these ranks; NULL for time_min_ns and time_max_ns.
  min INTEGER, -- Smallest value of a rank.
  min_rank INTEGER, -- World rank with this value; the lowest if several have it.
  max INTEGER, -- Largest value of a rank.
  max_rank INTEGER, -- World rank with this value; the lowest if several have it.
  p05 INTEGER, -- 5 % quantile over the ranks. All quantiles are within 1/16 of the true value, and NULL if all ranks have the same value.
  p25 INTEGER, -- 25 % quantile.
  p50 INTEGER, -- Median.
  p75 INTEGER, -- 75 % quantile.
  p95 INTEGER, -- 95 % quantile.
  PRIMARY KEY (scope, counter)
) WITHOUT ROWID;
""",
        key=('scope', 'counter'),
        since=4,
    ),
    'position': Relation(
        'table',
        'Last call of each thread of the processes that did not reach MPI_Finalize.',
        (
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('thread', 'INTEGER', '', 'Number of the thread, from 0, in the order of their first MPI calls.'),
            Column('inside', 'INTEGER', '', '1: the thread was inside this call. 0: it was outside MPI, and this was its last call.', high=1),
            Column('op', 'INTEGER', '', 'MPI procedure.', ref='op.id', zero=True),
            Column('comm', 'INTEGER', '', 'Communicator of the call.', ref='comm.id', zero=True),
            Column('callsite', 'INTEGER', '', 'Call site, or 0.', ref='callsite.id', zero=True),
            Column('since_ns', 'INTEGER', 'ns', 'Begin of the call, since MPI_Init returned; if it went untimed (COMMLENS_CLOCK), about that of the last timed call of the thread, whatever it called.'),
            Column('region', 'INTEGER', '', 'Code region of the thread, or 0.', ref='region.id', zero=True, since=5, absent='0'),
            Column('dest', 'INTEGER', '', 'Receiver of a blocking send, as a rank of the communicator; -2 is MPI_PROC_NULL. NULL if the procedure has none.', low=-2, high=2147483647, null=True, since=8),
            Column('dest_tag', 'INTEGER', '', 'Tag of the message to dest.', null=True, since=8),
            Column('source', 'INTEGER', '', 'Sender for which a blocking receive or probe waits, as a rank of the communicator; -1 is MPI_ANY_SOURCE, -2 is MPI_PROC_NULL. NULL if the procedure has none.', low=-2, high=2147483647, null=True, since=8),
            Column('source_tag', 'INTEGER', '', 'Tag of the message from source; -1 is MPI_ANY_TAG.', low=-1, high=2147483647, null=True, since=8),
        ),
        """\
CREATE TABLE position ( -- Last call of each thread of the processes that did not reach MPI_Finalize.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  thread INTEGER, -- Number of the thread, from 0, in the order of their first MPI calls.
  inside INTEGER, -- 1: the thread was inside this call. 0: it was outside MPI, and this was its last call.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  comm INTEGER REFERENCES comm(id), -- Communicator of the call.
  callsite INTEGER REFERENCES callsite(id), -- Call site, or 0.
  since_ns INTEGER, -- [ns] Begin of the call, since MPI_Init returned; if it went untimed (COMMLENS_CLOCK), about that of the last timed call of the thread, whatever it called.
  region INTEGER REFERENCES region(id), -- Code region of the thread, or 0.
  dest INTEGER, -- Receiver of a blocking send, as a rank of the communicator; -2 is MPI_PROC_NULL. NULL if the procedure has none.
  dest_tag INTEGER, -- Tag of the message to dest.
  source INTEGER, -- Sender for which a blocking receive or probe waits, as a rank of the communicator; -1 is MPI_ANY_SOURCE, -2 is MPI_PROC_NULL. NULL if the procedure has none.
  source_tag INTEGER, -- Tag of the message from source; -1 is MPI_ANY_TAG.
  PRIMARY KEY (rank, thread)
) WITHOUT ROWID;
""",
        key=('rank', 'thread'),
        since=3,
    ),
    'shard': Relation(
        'table',
        'The shards of a profile, in index.db; empty if the profile is one file.',
        (
            Column('number', 'INTEGER', '', 'Number of the file, from 0.'),
            Column('file', 'TEXT', '', 'Name of the file, or NULL if it could not be written.', null=True),
            Column('first_rank', 'INTEGER', '', 'First world rank of its block.', high=2147483648, is_of_world=True),
            Column('ranks', 'INTEGER', 'processes', 'Processes whose data is in it.', high=2147483648, is_of_world=True),
            Column('cells', 'INTEGER', '', 'Rows of its view cell.'),
            Column('bytes', 'INTEGER', 'bytes', 'Size of the file.'),
            Column('crc32', 'INTEGER', '', 'CRC-32 of the file, as zlib computes it.', high=4294967295),
        ),
        """\
CREATE TABLE shard ( -- The shards of a profile, in index.db; empty if the profile is one file.
  number INTEGER PRIMARY KEY, -- Number of the file, from 0.
  file TEXT, -- Name of the file, or NULL if it could not be written.
  first_rank INTEGER, -- First world rank of its block.
  ranks INTEGER, -- [processes] Processes whose data is in it.
  cells INTEGER, -- Rows of its view cell.
  bytes INTEGER, -- [bytes] Size of the file.
  crc32 INTEGER -- CRC-32 of the file, as zlib computes it.
);
""",
        key=('number',),
        since=3,
    ),
    'overhead': Relation(
        'table',
        'Time that commlens itself takes, by phase.',
        (
            Column('rank', 'INTEGER', '', 'World rank.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('what', 'TEXT', '', 'Phase. init: inside MPI_Init. The phases of MPI_Finalize follow each other. wait: until all ranks arrived, or COMMLENS_PATIENCE expired. collect: until the data of this rank is ready to send. The others exist on ranks that write a file. gather: until the data of all ranks of the block arrived. agree: until all writers use the same ids, and samples are split into waiting and operation. split: the part of agree for this (since version 13). write: building the file. store: until it is on disk. Renaming the file, notifying the other ranks and removing the arenas are not included. call: estimate for one measured call. calls: this estimate times the calls of the rank.'),
            Column('ns', 'INTEGER', 'ns', 'Time.'),
        ),
        """\
CREATE TABLE overhead ( -- Time that commlens itself takes, by phase.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  what TEXT, -- Phase. init: inside MPI_Init. The phases of MPI_Finalize follow each other. wait: until all ranks arrived, or COMMLENS_PATIENCE expired. collect: until the data of this rank is ready to send. The others exist on ranks that write a file. gather: until the data of all ranks of the block arrived. agree: until all writers use the same ids, and samples are split into waiting and operation. split: the part of agree for this (since version 13). write: building the file. store: until it is on disk. Renaming the file, notifying the other ranks and removing the arenas are not included. call: estimate for one measured call. calls: this estimate times the calls of the rank.
  ns INTEGER, -- [ns] Time.
  PRIMARY KEY (rank, what)
) WITHOUT ROWID;
""",
        key=('rank', 'what'),
    ),
    'cell': Relation(
        'view',
        'The counters: one row per key and rank.',
        (
            Column('key', 'INTEGER', '', 'Key of the counters, key.id.'),
            Column('rank', 'INTEGER', '', 'World rank that counted.'),
            Column('calls', 'INTEGER', '', 'Number of calls.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times inside these calls.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call that was timed; 0 if none was.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call that was timed.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers; docs/bytes.md has the rule.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers; docs/bytes.md has the rule.'),
            Column('noncontiguous', 'INTEGER', '', 'Calls with a non-contiguous datatype: the elements of a block leave gaps in memory, so MPI may have to pack them. docs/bytes.md has the rule.'),
            Column('timed', 'INTEGER', '', 'Calls that were timed. If these are not all, time_ns is an estimate.'),
            Column('time_error_ns', 'INTEGER', 'ns', 'Standard error of time_ns; 0 if it is exact.'),
        ),
        """\
CREATE VIEW cell AS -- The counters: one row per key and rank.
SELECT key.id AS key, cell_row.id - key.id AS rank,
       key.usual_calls + cell_row.calls AS calls, cell_row.time_ns, cell_row.time_min_ns, cell_row.time_max_ns,
       key.usual_sent + cell_row.bytes_sent AS bytes_sent,
       key.usual_received + cell_row.bytes_received AS bytes_received,
       key.usual_noncontig + cell_row.noncontiguous AS noncontiguous,
       key.usual_calls + cell_row.calls
         - COALESCE((SELECT calls FROM untimed WHERE untimed.key = key.id AND rank = cell_row.id - key.id), 0) AS timed,
       COALESCE((SELECT time_error_ns FROM untimed WHERE untimed.key = key.id AND rank = cell_row.id - key.id), 0)
         AS time_error_ns
  FROM key CROSS JOIN cell_row
    ON cell_row.id BETWEEN key.id AND key.id + (SELECT CAST(value AS INTEGER) FROM meta WHERE meta.key = 'ranks') - 1;
""",
        since=3,
    ),
    'key_total': Relation(
        'view',
        'The counters of every key, summed over the ranks; in full and in summary detail.',
        (
            Column('key', 'INTEGER', '', 'Key of the counters, key.id.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times of all ranks.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call of all ranks.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call of all ranks.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
            Column('noncontiguous', 'INTEGER', '', 'Calls with a non-contiguous datatype.'),
        ),
        """\
CREATE VIEW key_total AS -- The counters of every key, summed over the ranks; in full and in summary detail.
SELECT key, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
       -- not known of a rank without a timed call; a call that did not return has a time, and is no call
       COALESCE(MIN(CASE WHEN calls > 0 AND time_max_ns > 0 THEN time_min_ns END), 0) AS time_min_ns,
       MAX(time_max_ns) AS time_max_ns, SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received,
       SUM(noncontiguous) AS noncontiguous
  FROM cell GROUP BY key
UNION ALL
SELECT scope.key, SUM(CASE counter WHEN 'calls' THEN sum ELSE 0 END),
       SUM(CASE counter WHEN 'time_ns' THEN sum ELSE 0 END),
       COALESCE(MIN(CASE counter WHEN 'time_min_ns' THEN min END), 0),
       COALESCE(MAX(CASE counter WHEN 'time_max_ns' THEN max END), 0),
       SUM(CASE counter WHEN 'bytes_sent' THEN sum ELSE 0 END),
       SUM(CASE counter WHEN 'bytes_received' THEN sum ELSE 0 END),
       SUM(CASE counter WHEN 'noncontiguous' THEN sum ELSE 0 END)
  FROM scope JOIN spread ON spread.scope = scope.id WHERE scope.key IS NOT NULL GROUP BY scope.key;
""",
        since=4,
    ),
    'size_bin': Relation(
        'view',
        'Range of message sizes of every bin.',
        (
            Column('bin', 'INTEGER', '', 'Bin, as in key.bin; -1 is the bin of calls whose blocks differ in size, -2 that of calls to MPI_PROC_NULL.'),
            Column('size_low', 'INTEGER', 'bytes', 'Smallest size of the bin, NULL for bins -1 and -2.'),
            Column('size_high', 'INTEGER', 'bytes', 'Largest size of the bin, NULL for bins -1 and -2.'),
        ),
        """\
CREATE VIEW size_bin AS -- Range of message sizes of every bin.
WITH RECURSIVE power(bin) AS (SELECT 0 UNION ALL SELECT bin + 1 FROM power WHERE bin < 63)
SELECT -2 AS bin, NULL AS size_low, NULL AS size_high
 UNION ALL
SELECT -1, NULL, NULL
UNION ALL
SELECT bin, CASE bin WHEN 0 THEN 0 ELSE 1 << (bin - 1) END, ~(-1 << bin) FROM power;
""",
    ),
    'pair': Relation(
        'view',
        'Messages and bytes from each source to each destination, as one of the two processes counted them, summed over message sizes. An unknown process is NULL.',
        (
            Column('comm', 'INTEGER', '', 'Communicator, comm.id.'),
            Column('kind', 'TEXT', '', 'Kind of traffic, flow.name.'),
            Column('op', 'INTEGER', '', 'Procedure, op.id, or 0.'),
            Column('region', 'INTEGER', '', 'Code region, region.id, or 0.'),
            Column('slice', 'INTEGER', '', 'Time slice, or 0.'),
            Column('source', 'INTEGER', '', 'World rank of the source.'),
            Column('destination', 'INTEGER', '', 'World rank of the destination.'),
            Column('messages', 'INTEGER', '', 'Messages.'),
            Column('bytes', 'INTEGER', 'bytes', 'Their bytes.'),
        ),
        """\
CREATE VIEW pair AS -- Messages and bytes from each source to each destination, as one of the two processes counted them, summed over message sizes. An unknown process is NULL.
SELECT comm, flow.name AS kind, op, region, slice,
       CASE outward WHEN 1 THEN rank ELSE peer END AS source,
       CASE outward WHEN 1 THEN peer ELSE rank END AS destination,
       SUM(messages) AS messages, SUM(bytes) AS bytes
  FROM peer JOIN flow ON flow.id = peer.flow
 WHERE flow.name NOT IN ('one_to_all', 'all_to_one', 'all_to_all')
 GROUP BY comm, flow, op, region, slice, rank, peer, first;
""",
        since=6,
    ),
    'member_range': Relation(
        'view',
        'Members of every comm as ranges of world ranks, parsed from comm.members. A set has the members of its communicators; comm 0 has all ranks.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('low', 'INTEGER', '', 'First world rank.'),
            Column('high', 'INTEGER', '', 'Last world rank.'),
            Column('stride', 'INTEGER', '', 'Distance between consecutive ranks.'),
        ),
        """\
CREATE VIEW member_range AS -- Members of every comm as ranges of world ranks, parsed from comm.members. A set has the members of its communicators; comm 0 has all ranks.
WITH RECURSIVE
  written(comm, members) AS (
    SELECT id, members FROM comm WHERE members IS NOT NULL
    UNION ALL
    SELECT comm_set.comm, comm.members FROM comm_set JOIN comm ON comm.id = comm_set.member
     WHERE comm.members IS NOT NULL
    UNION ALL
    SELECT comm.id, '0-' || (SELECT MAX(rank) FROM rank) FROM comm WHERE comm.kind = 'none'),
  piece(comm, token, rest) AS (
    SELECT comm, '', REPLACE(REPLACE(members, '|', ','), ' ', '') || ',' FROM written
    UNION ALL
    SELECT comm, SUBSTR(rest, 1, INSTR(rest, ',') - 1), SUBSTR(rest, INSTR(rest, ',') + 1)
      FROM piece WHERE rest <> '')
SELECT comm,
       CAST(token AS INTEGER) AS low,
       CAST(SUBSTR(token, INSTR(token, '-') + 1) AS INTEGER) AS high,
       CASE INSTR(token, ':') WHEN 0 THEN 1
            ELSE CAST(SUBSTR(token, INSTR(token, ':') + 1) AS INTEGER) END AS stride
  FROM piece WHERE token GLOB '[0-9]*';
""",
    ),
    'member': Relation(
        'view',
        'World ranks of the members of every comm, one row per member.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('rank', 'INTEGER', '', 'World rank of one member.'),
        ),
        """\
CREATE VIEW member AS -- World ranks of the members of every comm, one row per member.
SELECT DISTINCT member_range.comm, rank.rank
  FROM member_range JOIN rank
    ON rank.rank BETWEEN low AND high AND (rank.rank - low) % stride = 0;
""",
    ),
    'counter': Relation(
        'view',
        'Every cell with names instead of ids; a start for your own queries.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('communicator', 'TEXT', '', 'Its name.'),
            Column('family', 'INTEGER', '', 'Its family.'),
            Column('operation', 'TEXT', '', 'Name of the MPI procedure.'),
            Column('class', 'TEXT', '', 'Its class.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('size_low', 'INTEGER', 'bytes', 'Smallest message size of the bin, NULL for bins -1 and -2.'),
            Column('size_high', 'INTEGER', 'bytes', 'Largest message size of the bin, NULL for bins -1 and -2.'),
            Column('region', 'INTEGER', '', 'Code region, region.id.'),
            Column('callsite', 'INTEGER', '', 'Call site, callsite.id.'),
            Column('rank', 'INTEGER', '', 'World rank that counted.'),
            Column('calls', 'INTEGER', '', 'Number of calls.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times inside these calls.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers.'),
            Column('noncontiguous', 'INTEGER', '', 'Calls with a non-contiguous datatype.'),
            Column('timed', 'INTEGER', '', 'Calls that were timed. If these are not all, time_ns is an estimate.'),
            Column('time_error_ns', 'INTEGER', 'ns', 'Standard error of time_ns.'),
        ),
        """\
CREATE VIEW counter AS -- Every cell with names instead of ids; a start for your own queries.
SELECT key.comm, comm.name AS communicator, comm.family, op.name AS operation, op.class, key.bin,
       CASE WHEN key.bin > 0 THEN 1 << (key.bin - 1) WHEN key.bin = 0 THEN 0 END AS size_low,
       CASE WHEN key.bin >= 0 THEN ~(-1 << key.bin) END AS size_high,
       key.region, key.callsite, cell.rank, cell.calls, cell.time_ns, cell.time_min_ns, cell.time_max_ns,
       cell.bytes_sent, cell.bytes_received, cell.noncontiguous, cell.timed, cell.time_error_ns
  FROM cell JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op;
""",
    ),
    'thread_counter': Relation(
        'view',
        'The rows of thread_cell with names instead of ids.',
        (
            Column('rank', 'INTEGER', '', 'World rank.'),
            Column('thread', 'INTEGER', '', 'As in table thread.'),
            Column('name', 'TEXT', '', 'Name of the thread.'),
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('communicator', 'TEXT', '', 'Its name.'),
            Column('operation', 'TEXT', '', 'Name of the MPI procedure.'),
            Column('class', 'TEXT', '', 'Its class.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('region', 'INTEGER', '', 'Code region, region.id.'),
            Column('callsite', 'INTEGER', '', 'Call site, callsite.id.'),
            Column('calls', 'INTEGER', '', 'Number of calls.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times inside these calls.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers.'),
        ),
        """\
CREATE VIEW thread_counter AS -- The rows of thread_cell with names instead of ids.
SELECT part.rank, part.thread, thread.name, key.comm, comm.name AS communicator, op.name AS operation, op.class, key.bin,
       key.region, key.callsite, part.calls, part.time_ns, part.time_min_ns, part.time_max_ns, part.bytes_sent,
       part.bytes_received
  FROM thread_cell AS part JOIN key ON key.id = part.key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op
       LEFT JOIN thread ON thread.rank = part.rank AND thread.thread = part.thread;
""",
        since=16,
    ),
    'procedure': Relation(
        'view',
        'MPI procedures that the application imports or calls: one row per procedure, state and reason.',
        (
            Column('procedure', 'TEXT', '', 'Name in C.'),
            Column('class', 'TEXT', '', 'Class, as in op.class; NULL if the procedure is not in op.'),
            Column('state', 'TEXT', '', 'measured, skipped, absent or unseen, as in coverage.state.'),
            Column('reason', 'TEXT', '', 'As in coverage.reason.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks; NULL if they are not in cells.'),
            Column('objects', 'TEXT', '', 'Files that import it, separated by commas. NULL if none does, because the application looked the name up at run time.'),
        ),
        """\
CREATE VIEW procedure AS -- MPI procedures that the application imports or calls: one row per procedure, state and reason.
WITH called AS (
       SELECT op.name AS procedure, SUM(part.calls) AS calls
         FROM key_total AS part JOIN key ON key.id = part.key JOIN op ON op.id = key.op
        WHERE op.id <> 0 GROUP BY op.name),
     imported AS (
       SELECT procedure, state, reason, GROUP_CONCAT(DISTINCT object) AS objects
         FROM (SELECT * FROM coverage ORDER BY object) GROUP BY procedure, state, reason)
SELECT imported.procedure, op.class, state, reason,
       CASE WHEN state = 'measured' AND reason IS NULL THEN COALESCE(called.calls, 0) END AS calls, objects
  FROM imported LEFT JOIN op ON op.name = imported.procedure
                LEFT JOIN called ON called.procedure = imported.procedure
UNION ALL
SELECT called.procedure, op.class, 'measured', NULL, called.calls, NULL
  FROM called JOIN op ON op.name = called.procedure
 WHERE called.procedure NOT IN (SELECT procedure FROM coverage WHERE state = 'measured');
""",
    ),
    'family': Relation(
        'view',
        'Families of communicators, one row each; a single communicator is a family of one.',
        (
            Column('family', 'INTEGER', '', 'Number of the family, comm.family.'),
            Column('name', 'TEXT', '', 'Common name, with * for the part that differs, such as s*.1; {*} for several sets. No two families have the same name: #7, the number of the family, follows if communicators of another family match the name.'),
            Column('kind', 'TEXT', '', 'intra, inter, set or none. A process stores 256 different sets; all others share one set without members, {*}.'),
            Column('communicators', 'INTEGER', '', 'Number of communicators.'),
            Column('size_min', 'INTEGER', 'processes', 'Size of the smallest, both groups of an intercommunicator together.'),
            Column('size_max', 'INTEGER', 'processes', 'Size of the largest.'),
            Column('parent', 'INTEGER', '', 'Family of their parents, or NULL.'),
            Column('creator', 'TEXT', '', 'Procedure that created them, or NULL.'),
            Column('callsite', 'INTEGER', '', 'Call site that created them, callsite.id, or NULL.'),
            Column('user_name', 'TEXT', '', 'Name that the application set, if it is the same for all, else NULL.'),
            Column('topology', 'TEXT', '', 'Topology, if it is the same for all, else NULL.'),
        ),
        """\
CREATE VIEW family AS -- Families of communicators, one row each; a single communicator is a family of one.
WITH
  part AS (
    SELECT family, SUBSTR(name, 1, 1) AS letter, SUBSTR(name, 2, INSTR(name, '.') - 2) AS leader,
           SUBSTR(name, INSTR(name, '.') + 1) AS number
      FROM comm WHERE kind IN ('intra', 'inter')),
  -- names and patterns that communicators of several families match
  shared AS (
    SELECT pattern
      FROM (SELECT family, name AS pattern FROM comm
            UNION ALL SELECT family, letter || '*.' || number FROM part
            UNION ALL SELECT family, letter || leader || '.*' FROM part
            UNION ALL SELECT family, letter || '*.*' FROM part
            UNION ALL SELECT family, '{*}' FROM comm WHERE kind = 'set')
     GROUP BY pattern HAVING MIN(family) <> MAX(family)),
  joined AS (
    SELECT comm.family,
           CASE WHEN COUNT(*) = 1 THEN MIN(comm.name)
                WHEN MIN(comm.kind) = 'set' THEN '{*}'
                ELSE SUBSTR(MIN(comm.name), 1, 1)
                  || CASE WHEN COUNT(comm.leader) = COUNT(*) AND MIN(comm.leader) = MAX(comm.leader)
                          THEN MIN(comm.leader) ELSE '*' END || '.'
                  || CASE WHEN MIN(SUBSTR(comm.name, INSTR(comm.name, '.') + 1))
                             = MAX(SUBSTR(comm.name, INSTR(comm.name, '.') + 1))
                          THEN MIN(SUBSTR(comm.name, INSTR(comm.name, '.') + 1)) ELSE '*' END
           END AS name,
           MIN(comm.kind) AS kind,
           SUM(comm.communicators) AS communicators,
           MIN(comm.size + COALESCE(comm.remote_size, 0)) AS size_min,
           MAX(comm.size + COALESCE(comm.remote_size, 0)) AS size_max,
           MIN(parent.family) AS parent,
           MIN(op.name) AS creator,
           MIN(comm.callsite) AS callsite,
           CASE WHEN COUNT(comm.user_name) = COUNT(*) AND MIN(comm.user_name) = MAX(comm.user_name)
                THEN MIN(comm.user_name) END AS user_name,
           CASE WHEN COUNT(comm.topology) = COUNT(*) AND MIN(comm.topology) = MAX(comm.topology)
                THEN MIN(comm.topology) END AS topology
      FROM comm LEFT JOIN comm AS parent ON parent.id = comm.parent LEFT JOIN op ON op.id = comm.creator
     GROUP BY comm.family)
SELECT family,
       name || CASE WHEN name IN (SELECT pattern FROM shared)
                      OR name IN (SELECT name FROM joined GROUP BY name HAVING COUNT(*) > 1)
                    THEN '#' || family ELSE '' END AS name,
       kind, communicators, size_min, size_max, parent, creator, callsite, user_name, topology
  FROM joined;
""",
    ),
    'comm_total': Relation(
        'view',
        'Totals of every comm that has calls: the communicator lines of report --unfold.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('ranks', 'INTEGER', 'processes', 'Ranks of this profile that are members.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times of all ranks.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Time of the rank that spent the most.'),
            Column('rank_avg_ns', 'INTEGER', 'ns', 'time_ns / ranks: average over all members, including those without a call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
        """\
CREATE VIEW comm_total AS -- Totals of every comm that has calls: the communicator lines of report --unfold.
WITH total AS (
  SELECT key.comm, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
         SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
    FROM key_total AS part JOIN key ON key.id = part.key
   GROUP BY key.comm)
SELECT total.comm, size.ranks, calls, time_ns,
       COALESCE((SELECT MAX(spent) FROM (SELECT SUM(cell.time_ns) AS spent FROM key JOIN cell ON cell.key = key.id
                                 WHERE key.comm = total.comm GROUP BY cell.rank)),
                (SELECT max FROM scope JOIN spread ON spread.scope = scope.id
                  WHERE spread.counter = 'time_ns' AND scope.comm = total.comm AND scope.op IS NULL)) AS rank_max_ns,
       (2 * time_ns + size.ranks) / (2 * size.ranks) AS rank_avg_ns,
       bytes_sent, bytes_received
  FROM total JOIN (SELECT comm, COUNT(*) AS ranks FROM member GROUP BY comm
                    UNION ALL SELECT comm, members FROM scope WHERE comm IS NOT NULL AND members IS NOT NULL) AS size
    ON size.comm = total.comm;
""",
    ),
    'comm_operation': Relation(
        'view',
        'Totals of every comm, operation and size bin: the rows of report --unfold.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('op', 'INTEGER', '', 'MPI procedure, op.id.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times of all ranks.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Time of the rank that spent the most.'),
            Column('rank_avg_ns', 'INTEGER', 'ns', 'time_ns / members: average over all members, including those without a call.'),
            Column('call_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('call_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
        """\
CREATE VIEW comm_operation AS -- Totals of every comm, operation and size bin: the rows of report --unfold.
WITH total AS (
  SELECT key.comm, key.op, key.bin, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
         COALESCE(MIN(CASE WHEN part.calls > 0 AND part.time_max_ns > 0 THEN part.time_min_ns END), 0) AS call_min_ns,
         MAX(part.time_max_ns) AS call_max_ns,
         SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
    FROM key_total AS part JOIN key ON key.id = part.key
   GROUP BY key.comm, key.op, key.bin)
SELECT total.comm, op, bin, calls, time_ns,
       COALESCE((SELECT MAX(spent) FROM (SELECT SUM(cell.time_ns) AS spent FROM key JOIN cell ON cell.key = key.id
                                 WHERE key.comm = total.comm AND key.op = total.op AND key.bin = total.bin
                                 GROUP BY cell.rank)),
                (SELECT max FROM scope JOIN spread ON spread.scope = scope.id
                  WHERE spread.counter = 'time_ns' AND scope.comm = total.comm AND scope.op = total.op
                    AND scope.bin = total.bin ORDER BY scope.callsite IS NOT NULL LIMIT 1)) AS rank_max_ns,
       (2 * time_ns + size.ranks) / (2 * size.ranks) AS rank_avg_ns,
       call_min_ns, call_max_ns, bytes_sent, bytes_received
  FROM total JOIN (SELECT comm, COUNT(*) AS ranks FROM member GROUP BY comm
                    UNION ALL SELECT comm, members FROM scope WHERE comm IS NOT NULL AND members IS NOT NULL) AS size
    ON size.comm = total.comm;
""",
    ),
    'family_total': Relation(
        'view',
        'Totals of every family that has calls: the communicator lines of a report.',
        (
            Column('family', 'INTEGER', '', 'The family, comm.family.'),
            Column('ranks', 'INTEGER', 'processes', 'Ranks of this profile that are members of at least one of its communicators.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times of all ranks.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Time of the rank that spent the most in all communicators of the family together.'),
            Column('rank_avg_ns', 'INTEGER', 'ns', 'time_ns / ranks: average over all members, including those without a call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
        """\
CREATE VIEW family_total AS -- Totals of every family that has calls: the communicator lines of a report.
WITH total AS (
  SELECT comm.family, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
         SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
    FROM key_total AS part JOIN key ON key.id = part.key JOIN comm ON comm.id = key.comm
   GROUP BY comm.family)
SELECT total.family, size.ranks, calls, time_ns,
       COALESCE((SELECT MAX(spent) FROM (SELECT SUM(cell.time_ns) AS spent
                                  FROM comm JOIN key ON key.comm = comm.id JOIN cell ON cell.key = key.id
                                 WHERE comm.family = total.family GROUP BY cell.rank)),
                (SELECT max FROM scope JOIN spread ON spread.scope = scope.id
                  WHERE spread.counter = 'time_ns' AND scope.family = total.family AND scope.op IS NULL)) AS rank_max_ns,
       (2 * time_ns + size.ranks) / (2 * size.ranks) AS rank_avg_ns,
       bytes_sent, bytes_received
  FROM total
  JOIN (SELECT comm.family, COUNT(DISTINCT member.rank) AS ranks FROM member JOIN comm ON comm.id = member.comm
         GROUP BY comm.family
        UNION ALL SELECT family, members FROM scope WHERE family IS NOT NULL AND members IS NOT NULL) AS size
    ON size.family = total.family;
""",
    ),
    'family_operation': Relation(
        'view',
        'Totals of every family, operation and size bin: the rows of a report without options.',
        (
            Column('family', 'INTEGER', '', 'The family, comm.family.'),
            Column('op', 'INTEGER', '', 'MPI procedure, op.id.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times of all ranks.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Time of the rank that spent the most.'),
            Column('rank_avg_ns', 'INTEGER', 'ns', 'time_ns / members of the family: average over all members, including those without a call.'),
            Column('call_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('call_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
        """\
CREATE VIEW family_operation AS -- Totals of every family, operation and size bin: the rows of a report without options.
WITH total AS (
  SELECT comm.family, key.op, key.bin, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
         COALESCE(MIN(CASE WHEN part.calls > 0 AND part.time_max_ns > 0 THEN part.time_min_ns END), 0) AS call_min_ns,
         MAX(part.time_max_ns) AS call_max_ns,
         SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
    FROM key_total AS part JOIN key ON key.id = part.key JOIN comm ON comm.id = key.comm
   GROUP BY comm.family, key.op, key.bin)
SELECT total.family, op, bin, calls, time_ns,
       COALESCE((SELECT MAX(spent) FROM (SELECT SUM(cell.time_ns) AS spent
                                  FROM comm JOIN key ON key.comm = comm.id JOIN cell ON cell.key = key.id
                                 WHERE comm.family = total.family AND key.op = total.op AND key.bin = total.bin
                                 GROUP BY cell.rank)),
                (SELECT max FROM scope JOIN spread ON spread.scope = scope.id
                  WHERE spread.counter = 'time_ns' AND scope.family = total.family AND scope.op = total.op
                    AND scope.bin = total.bin ORDER BY scope.callsite IS NOT NULL LIMIT 1)) AS rank_max_ns,
       (2 * time_ns + size.ranks) / (2 * size.ranks) AS rank_avg_ns,
       call_min_ns, call_max_ns, bytes_sent, bytes_received
  FROM total
  JOIN (SELECT comm.family, COUNT(DISTINCT member.rank) AS ranks FROM member JOIN comm ON comm.id = member.comm
         GROUP BY comm.family
        UNION ALL SELECT family, members FROM scope WHERE family IS NOT NULL AND members IS NOT NULL) AS size
    ON size.family = total.family;
""",
    ),
    'region_path': Relation(
        'view',
        'Code regions with their full path.',
        (
            Column('region', 'INTEGER', '', 'The region, region.id.'),
            Column('depth', 'INTEGER', '', '0 for the whole program, 1 for an outermost region.'),
            Column('path', 'TEXT', '', 'The names from the outermost region to this one, joined by /; empty for the whole program.'),
        ),
        """\
CREATE VIEW region_path AS -- Code regions with their full path.
WITH RECURSIVE walk(region, depth, path) AS (
  SELECT id, 0, '' FROM region WHERE parent IS NULL
  UNION ALL
  SELECT region.id, walk.depth + 1, CASE walk.path WHEN '' THEN region.name ELSE walk.path || '/' || region.name END
    FROM region JOIN walk ON region.parent = walk.region)
SELECT region, depth, path FROM walk;
""",
        since=5,
    ),
    'event': Relation(
        'view',
        'Table event_count with names, and with the estimated number of events.',
        (
            Column('event', 'TEXT', '', 'Name of the event.'),
            Column('unit', 'TEXT', '', 'ns, or empty for a number of events.'),
            Column('region', 'INTEGER', '', 'Innermost region, region.id.'),
            Column('path', 'TEXT', '', 'Its path, as in region_path; empty outside all regions.'),
            Column('communicator', 'TEXT', '', 'Name of the communicator, NULL outside MPI.'),
            Column('operation', 'TEXT', '', 'Name of the MPI procedure, NULL outside MPI.'),
            Column('rank', 'INTEGER', '', 'World rank.'),
            Column('count', 'INTEGER', '', 'Events that were counted.'),
            Column('events', 'REAL', '', 'Estimated number of events: count * enabled_ns / running_ns. NULL if the event was never counted in the time that it should have been.'),
            Column('counted', 'REAL', '', 'Part of the time in which it was counted, running_ns / enabled_ns; NULL without any time.'),
        ),
        """\
CREATE VIEW event AS -- Table event_count with names, and with the estimated number of events.
SELECT metric.name AS event, metric.unit AS unit, event_count.region AS region, region_path.path AS path,
       CASE event_count.op WHEN 0 THEN NULL ELSE comm.name END AS communicator,
       CASE event_count.op WHEN 0 THEN NULL ELSE op.name END AS operation, rank, "count",
       CASE WHEN enabled_ns <= running_ns THEN 1.0 * "count" WHEN running_ns > 0 THEN 1.0 * "count" * enabled_ns / running_ns END AS events,
       1.0 * running_ns / NULLIF(enabled_ns, 0) AS counted
  FROM event_count
       JOIN metric ON metric.id = event_count.metric
       JOIN region_path ON region_path.region = event_count.region
       JOIN comm ON comm.id = event_count.comm
       JOIN op ON op.id = event_count.op;
""",
        since=16,
    ),
    'region_rank': Relation(
        'view',
        'Totals of every code region on every rank that entered it. Region 0 is the time of the process from MPI_Init to MPI_Finalize.',
        (
            Column('region', 'INTEGER', '', 'The region, region.id.'),
            Column('rank', 'INTEGER', '', 'World rank.'),
            Column('calls', 'INTEGER', '', 'Number of times it was entered.'),
            Column('time_ns', 'INTEGER', 'ns', 'Inclusive time.'),
            Column('exclusive_ns', 'INTEGER', 'ns', 'Time without nested regions. NULL for region 0, because regions may begin before it and end after it.'),
            Column('mpi_ns', 'INTEGER', 'ns', 'Time inside measured MPI calls, including those in nested regions.'),
            Column('useful_ns', 'INTEGER', 'ns', 'time_ns - mpi_ns, or 0 if an estimated mpi_ns is more than that (table untimed). NULL for region 0 of a process with several threads in MPI, because mpi_ns is then the sum over its threads.'),
        ),
        """\
CREATE VIEW region_rank AS -- Totals of every code region on every rank that entered it. Region 0 is the time of the process from MPI_Init to MPI_Finalize.
SELECT CAST(0 AS INTEGER) AS region, rank, 1 AS calls, app_ns AS time_ns, NULL AS exclusive_ns, mpi_ns,
       CASE WHEN threads <= 1 THEN MAX(app_ns - mpi_ns, 0) END AS useful_ns
  FROM rank
UNION ALL
SELECT region, rank, SUM(calls), SUM(time_ns), SUM(time_ns - nested_ns), SUM(mpi_ns), MAX(SUM(time_ns - mpi_ns), 0)
  FROM region_time GROUP BY region, rank;
""",
        since=5,
    ),
    'region_useful': Relation(
        'view',
        'Time of every code region on every rank that entered it, without nested regions and without MPI.',
        (
            Column('region', 'INTEGER', '', 'The region, region.id; never 0.'),
            Column('rank', 'INTEGER', '', 'World rank.'),
            Column('useful_ns', 'INTEGER', 'ns', 'Time in the region outside measured MPI calls, without nested regions. With several threads, their sum.'),
        ),
        """\
CREATE VIEW region_useful AS -- Time of every code region on every rank that entered it, without nested regions and without MPI.
SELECT region, rank, MAX(SUM(useful_ns), 0) AS useful_ns
  FROM (SELECT region, rank, SUM(time_ns - mpi_ns) AS useful_ns FROM region_time GROUP BY region, rank
        UNION ALL
        SELECT region.parent, part.rank, -SUM(part.time_ns - part.mpi_ns)
          FROM region_time AS part JOIN region ON region.id = part.region WHERE region.parent > 0
         GROUP BY region.parent, part.rank)
 GROUP BY region, rank;
""",
        since=5,
    ),
    'split': Relation(
        'view',
        'Time in calls that wait for other processes, split into this waiting and the operation itself, by family of communicators, procedure and message size. Estimated: for each communicator and rank, the share of waiting in its sampled calls times the time of all its calls; communicators of a family that have no samples have the share of the others. Rows without samples are left out.',
        (
            Column('family', 'INTEGER', '', 'Family of communicators, comm.family.'),
            Column('op', 'INTEGER', '', 'MPI procedure, op.id.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Their time.'),
            Column('samples', 'INTEGER', '', 'Sampled calls, as in sampled.samples.'),
            Column('sampled_ns', 'INTEGER', 'ns', 'Time in the sampled calls, sum over the members.'),
            Column('waiting_ns', 'INTEGER', 'ns', 'Estimated time in which ranks waited for others.'),
            Column('operation_ns', 'INTEGER', 'ns', 'The rest of time_ns: the operation itself.'),
        ),
        """\
CREATE VIEW split AS -- Time in calls that wait for other processes, split into this waiting and the operation itself, by family of communicators, procedure and message size. Estimated: for each communicator and rank, the share of waiting in its sampled calls times the time of all its calls; communicators of a family that have no samples have the share of the others. Rows without samples are left out.
WITH part AS (
       SELECT comm, op, bin, rank, 1.0 * SUM(waiting_ns) / SUM(time_ns) AS share
         FROM waiting GROUP BY comm, op, bin, rank HAVING SUM(time_ns) > 0),
     counted AS (
       SELECT key.comm, key.op, key.bin, cell.rank, SUM(cell.calls) AS calls, SUM(cell.time_ns) AS time_ns
         FROM cell JOIN key ON key.id = cell.key
        WHERE EXISTS (SELECT 1 FROM sampled AS s WHERE s.op = key.op)
        GROUP BY key.comm, key.op, key.bin, cell.rank),
     waited AS (
       SELECT comm.family, counted.op, counted.bin, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
              1.0 * SUM(time_ns) * SUM(time_ns * share)
              / NULLIF(SUM(CASE WHEN share IS NOT NULL THEN time_ns END), 0) AS waiting_ns
         FROM counted JOIN comm ON comm.id = counted.comm LEFT JOIN part USING (comm, op, bin, rank)
        GROUP BY comm.family, counted.op, counted.bin),
     seen AS (
       SELECT comm.family, op, bin, SUM(samples) AS samples, SUM(time_ns) AS sampled_ns
         FROM sampled JOIN comm ON comm.id = sampled.comm GROUP BY comm.family, op, bin)
SELECT family, op, bin, calls, time_ns, samples, sampled_ns, CAST(waiting_ns AS INTEGER) AS waiting_ns,
       time_ns - CAST(waiting_ns AS INTEGER) AS operation_ns
  FROM waited JOIN seen USING (family, op, bin) WHERE waiting_ns IS NOT NULL;
""",
        since=11,
    ),
    'region_total': Relation(
        'view',
        'Totals of every code region over the ranks, with the efficiencies of the POP methodology (docs/reference/efficiency.md); region 0 is the whole run.',
        (
            Column('region', 'INTEGER', '', 'The region, region.id.'),
            Column('ranks', 'INTEGER', 'processes', 'Number of ranks that entered it.'),
            Column('calls', 'INTEGER', '', 'Number of times all ranks entered it.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the inclusive times of all ranks.'),
            Column('exclusive_ns', 'INTEGER', 'ns', 'Sum of the exclusive times of all ranks, or NULL.'),
            Column('mpi_ns', 'INTEGER', 'ns', 'Sum of the times inside measured MPI calls of all ranks.'),
            Column('rank_min_ns', 'INTEGER', 'ns', 'Smallest inclusive time of a rank.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Largest inclusive time of a rank.'),
            Column('load_balance', 'REAL', '', 'Average over the ranks of the time outside MPI, divided by the maximum. The efficiencies are NULL if this time is unknown for a rank.'),
            Column('communication_efficiency', 'REAL', '', 'Largest time outside MPI of a rank, divided by the largest inclusive time of a rank.'),
            Column('parallel_efficiency', 'REAL', '', 'Product of the two: average time outside MPI, divided by the largest inclusive time.'),
        ),
        """\
CREATE VIEW region_total AS -- Totals of every code region over the ranks, with the efficiencies of the POP methodology (docs/reference/efficiency.md); region 0 is the whole run.
WITH total AS (
  SELECT region, COUNT(*) AS ranks, SUM(calls) AS calls, SUM(time_ns) AS time_ns, SUM(exclusive_ns) AS exclusive_ns,
         SUM(mpi_ns) AS mpi_ns, MIN(time_ns) AS rank_min_ns, MAX(time_ns) AS rank_max_ns,
         COUNT(useful_ns) AS useful_ranks, SUM(useful_ns) AS useful_sum, MAX(useful_ns) AS useful_max
    FROM region_rank GROUP BY region
  UNION ALL
  SELECT COALESCE(scope.region, 0), MAX(spread.ranks),
         CASE WHEN scope.region IS NULL THEN MAX(spread.ranks) ELSE SUM(CASE counter WHEN 'calls' THEN sum ELSE 0 END) END,
         SUM(CASE WHEN counter IN ('time_ns', 'app_ns') THEN sum ELSE 0 END),
         CASE WHEN scope.region IS NOT NULL THEN SUM(CASE counter WHEN 'exclusive_ns' THEN sum ELSE 0 END) END,
         SUM(CASE counter WHEN 'mpi_ns' THEN sum ELSE 0 END),
         MAX(CASE WHEN counter IN ('time_ns', 'app_ns') THEN min END),
         MAX(CASE WHEN counter IN ('time_ns', 'app_ns') THEN max END),
         -- threads that call MPI at the same time: the time outside MPI is unknown
         CASE WHEN COALESCE(MAX(CASE counter WHEN 'threads' THEN max END), 1) <= 1
              THEN MAX(CASE counter WHEN 'outside_ns' THEN spread.ranks END) END,
         SUM(CASE counter WHEN 'outside_ns' THEN sum END),
         MAX(CASE counter WHEN 'outside_ns' THEN max END)
    FROM scope JOIN spread ON spread.scope = scope.id
   WHERE scope.comm IS NULL AND scope.family IS NULL GROUP BY COALESCE(scope.region, 0))
SELECT region, ranks, calls, time_ns, exclusive_ns, mpi_ns, rank_min_ns, rank_max_ns,
       CASE useful_ranks WHEN ranks THEN 1.0 * useful_sum / ranks / NULLIF(useful_max, 0) END AS load_balance,
       CASE useful_ranks WHEN ranks THEN 1.0 * useful_max / NULLIF(rank_max_ns, 0) END AS communication_efficiency,
       CASE useful_ranks WHEN ranks THEN 1.0 * useful_sum / ranks / NULLIF(rank_max_ns, 0) END AS parallel_efficiency
  FROM total;
""",
        since=5,
    ),
    'region_operation': Relation(
        'view',
        'Calls per region, communicator, operation and size bin, summed over the ranks. A call counts in the innermost region only.',
        (
            Column('region', 'INTEGER', '', 'The innermost region, region.id.'),
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('op', 'INTEGER', '', 'MPI procedure, op.id.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times of all ranks.'),
            Column('call_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('call_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
        """\
CREATE VIEW region_operation AS -- Calls per region, communicator, operation and size bin, summed over the ranks. A call counts in the innermost region only.
SELECT key.region, key.comm, key.op, key.bin, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
       COALESCE(MIN(CASE WHEN part.calls > 0 AND part.time_max_ns > 0 THEN part.time_min_ns END), 0) AS call_min_ns,
       MAX(part.time_max_ns) AS call_max_ns,
       SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
  FROM key_total AS part JOIN key ON key.id = part.key
 GROUP BY key.region, key.comm, key.op, key.bin;
""",
        since=5,
    ),
}

FORMER: dict[str, Relation] = {
    'cell': Relation(
        'table',
        'The counters: one row per key and rank.',
        (
            Column('key', 'INTEGER', '', 'Key of the counters, key.id.', ref='key.id'),
            Column('rank', 'INTEGER', '', 'World rank that counted.', high=2147483648, is_of_world=True, ref='rank.rank'),
            Column('calls', 'INTEGER', '', 'Number of calls that returned.'),
            Column('time_ns', 'INTEGER', 'ns', 'Sum of the times inside these calls. If meta.open_calls is counted, rows of bin 0 include the calls that did not return, up to the last sign of life of the process.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers.'),
            Column('noncontiguous', 'INTEGER', '', 'Calls with a non-contiguous datatype.'),
            Column('timed', 'INTEGER', '', 'Calls that were timed: all.', since=17, absent='calls'),
            Column('time_error_ns', 'INTEGER', 'ns', 'Standard error of time_ns: none.', since=17, absent='0'),
        ),
        """\
CREATE TABLE cell ( -- The counters: one row per key and rank.
  key INTEGER REFERENCES key(id), -- Key of the counters, key.id.
  rank INTEGER REFERENCES rank(rank), -- World rank that counted.
  calls INTEGER, -- Number of calls that returned.
  time_ns INTEGER, -- [ns] Sum of the times inside these calls. If meta.open_calls is counted, rows of bin 0 include the calls that did not return, up to the last sign of life of the process.
  time_min_ns INTEGER, -- [ns] Shortest call.
  time_max_ns INTEGER, -- [ns] Longest call.
  bytes_sent INTEGER, -- [bytes] Bytes read from send buffers.
  bytes_received INTEGER, -- [bytes] Bytes written to receive buffers.
  noncontiguous INTEGER, -- Calls with a non-contiguous datatype.
  timed INTEGER, -- Calls that were timed: all.
  time_error_ns INTEGER, -- [ns] Standard error of time_ns: none.
  PRIMARY KEY (key, rank)
) WITHOUT ROWID;
""",
        key=('key', 'rank'),
    ),
}

FORMER_UNTIL = {'cell': 2}

META_KEYS: dict[str, str] = {
    'schema_version': 'The schema version of this file; the same number as PRAGMA user_version.',
    'commlens_version': 'Version of the library that measured.',
    'commlens_build': 'Compiler, build type and MPI family of the library.',
    'command_line': 'Command line of world rank 0, with arguments quoted for a POSIX shell where needed. *** replaces possible secrets (COMMLENS_COMMAND_LINE).',
    'program': 'File name of the executable of world rank 0.',
    'working_directory': 'Working directory of world rank 0 when MPI was initialised.',
    'start_time': 'Time at which MPI_Init returned on world rank 0: UTC, ISO 8601.',
    'elapsed_ns': 'Time from the return of MPI_Init to the call of MPI_Finalize, in nanoseconds: the largest rank.app_ns. In a recovered profile up to the last sign of life.',
    'ranks': 'Number of processes in MPI_COMM_WORLD.',
    'ranks_collected': 'Number of processes whose data is in this file.',
    'slice_ns': 'Length of the time slices in table slice, nanoseconds.',
    'slice_of': 'Granularity of table slice: communicator, or family if communicators need too many rows.',
    'nodes': 'Number of different host names.',
    'detail': 'full: every rank has its own rows. summary (COMMLENS_DETAIL): tables scope and spread have statistics over all ranks, and the tables of single ranks are empty.',
    'shard': 'Number of this file if it is a shard of a profile, else empty.',
    'open_calls': 'counted if rows include the time of calls that did not return, as in profiles that commlens recover makes; else empty.',
    'full_paths': 'Number of processes that had no room for another call path (COMMLENS_FRAMES), and counted calls on further paths at their call site alone. Empty in a recovered profile.',
    'mpi_library': 'First line of the text that MPI_Get_library_version returns.',
    'mpi_family': 'Binary interface of the MPI library: openmpi, mpich or abi.',
    'mpi_standard': 'Version of the MPI standard the library reports, as in 3.1.',
    'thread_level': 'Thread support MPI provided: single, funneled, serialized or multiple.',
    'job_id': 'Job id of the batch system (SLURM_JOB_ID, PBS_JOBID, LSB_JOBID, JOB_ID, COBALT_JOBID), or empty.',
    'inside': "Whether table peer contains the messages inside collectives and other calls (COMMLENS_MATRIX=all): measured, not asked for, or 'not seen: ' and the reason on rank 0. If it does not, the reader can only model them.",
    'clock': 'Clock of the measurement: tsc (x86-64), cntvct_el0 (aarch64), or clock_gettime.',
    'options': 'All COMMLENS_ options and their values, one NAME=value per line.',
}

META_NUMBERS = ('schema_version', 'elapsed_ns', 'ranks', 'ranks_collected', 'slice_ns', 'nodes', 'shard', 'full_paths')

SQL = "".join(
    [
        f"PRAGMA application_id = {APPLICATION_ID};\nPRAGMA user_version = {VERSION};\n",
        *(relation.sql for relation in RELATIONS.values() if not relation.added_by),
    ]
)

ADDED_SQL = "".join(relation.sql for relation in RELATIONS.values() if relation.added_by)
