# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/schema.py from spec/schema.toml.
"""Tables and views of a profile, as this reader knows them."""

from __future__ import annotations

from typing import NamedTuple

VERSION = 3
APPLICATION_ID = 1129073742


class Column(NamedTuple):
    """One column of a table or view."""

    name: str
    type: str
    unit: str
    doc: str


class Relation(NamedTuple):
    """One table or view."""

    kind: str
    doc: str
    columns: tuple[Column, ...]


RELATIONS: dict[str, Relation] = {
    'meta': Relation(
        'table',
        'One line per fact about the run: what ran, where, with which MPI, and with which options.',
        (
            Column('key', 'TEXT', '', "Name of the fact; the names are listed under 'Keys of meta'."),
            Column('value', 'TEXT', '', 'Its value, as text.'),
        ),
    ),
    'rank': Relation(
        'table',
        'One row per process of MPI_COMM_WORLD.',
        (
            Column('rank', 'INTEGER', '', 'Rank in MPI_COMM_WORLD.'),
            Column('world', 'INTEGER', '', 'Random 64-bit id of the MPI_COMM_WORLD this process belongs to.'),
            Column('node', 'TEXT', '', 'Host name.'),
            Column('pid', 'INTEGER', '', 'Process id on that host.'),
            Column('cpus', 'TEXT', '', 'CPUs the process may run on when MPI was initialised, as ranges: 0-3,8.'),
            Column('init_ns', 'INTEGER', 'ns', 'Time inside MPI_Init or MPI_Init_thread, without ours.'),
            Column('app_ns', 'INTEGER', 'ns', 'From the return of MPI_Init to the call of MPI_Finalize.'),
            Column('mpi_ns', 'INTEGER', 'ns', 'Time inside measured MPI calls of this process, all threads added up; the sum of time_ns of its cells.'),
            Column('threads', 'INTEGER', '', 'Threads that made at least one measured MPI call.'),
            Column('calls', 'INTEGER', '', 'Measured MPI calls of this process; the sum of calls of its cells.'),
            Column('lost_calls', 'INTEGER', '', 'Calls counted without their key because memory ran out; they are under comm 0, op 0. Normally 0.'),
            Column('state', 'TEXT', '', 'How the process ended: finalized, or what is known of one whose calls were recovered: running (still there when somebody looked), ended (without MPI_Finalize), exited, aborted (MPI_Abort), or the name of the signal.'),
        ),
    ),
    'comm': Relation(
        'table',
        "One row per communicator, plus two kinds that are none: 'none' for calls that have no communicator, 'set' for completion calls whose requests belong to several.",
        (
            Column('id', 'INTEGER', '', "Number within this file; 0 is 'no communicator'."),
            Column('hash', 'INTEGER', '', '64-bit identity, the same on every member, computed without communication.'),
            Column('name', 'TEXT', '', "Letter of the creating procedure, world rank of the leader, and the leader's count of communicators: W0.0, s0.1. A + at the end: it is the first of many that share the row."),
            Column('user_name', 'TEXT', '', 'The name the application gave with MPI_Comm_set_name, or NULL.'),
            Column('kind', 'TEXT', '', 'intra, inter, set or none. A process names 256 different sets; all others count under one set without members, {*}.'),
            Column('parent', 'INTEGER', '', 'Communicator it was made from, or NULL.'),
            Column('creator', 'INTEGER', '', 'Procedure that made it, or NULL for predefined ones.'),
            Column('callsite', 'INTEGER', '', "Where the application made it, or NULL; the leader's call site where ranks differ."),
            Column('size', 'INTEGER', 'processes', "Processes in it; of an intercommunicator, in the leader's local group. NULL for none and set."),
            Column('remote_size', 'INTEGER', 'processes', 'Processes in the remote group of an intercommunicator, else NULL.'),
            Column('leader', 'INTEGER', '', 'World rank of its rank 0, or NULL.'),
            Column('members', 'TEXT', '', "World ranks in the order of its ranks, as ranges with an optional stride: 0-3, 0-14:2, 5. Of an intercommunicator both groups, joined by ' | '."),
            Column('topology', 'TEXT', '', 'cart 4x2 periodic 10; graph 3 nodes 4 edges; dist_graph or dist_graph weighted; or NULL.'),
            Column('created_ns', 'INTEGER', 'ns', 'When the leader had it, since its MPI_Init returned.'),
            Column('freed_ns', 'INTEGER', 'ns', 'When the leader freed it, since its MPI_Init returned, or NULL.'),
            Column('family', 'INTEGER', '', 'Communicators made by the same procedure at the same call site from the same family of parents share this number.'),
            Column('communicators', 'INTEGER', '', 'How many communicators share this row: 1, or more for those beyond COMMLENS_COMMS of one parent, of one procedure, leader and size.'),
        ),
    ),
    'comm_set': Relation(
        'table',
        "Which communicators a comm of kind 'set' stands for.",
        (
            Column('comm', 'INTEGER', '', 'The set.'),
            Column('member', 'INTEGER', '', 'One communicator in it.'),
        ),
    ),
    'op': Relation(
        'table',
        'The MPI procedures; the same ids in every profile of one schema version. Large-count forms (_c) share the row of the plain form.',
        (
            Column('id', 'INTEGER', '', "Number of the procedure; 0 is 'unknown'."),
            Column('name', 'TEXT', '', 'Name in C: MPI_Allreduce.'),
            Column('class', 'TEXT', '', 'p2p, collective, neighbor, rma, io, completion, comm or other.'),
        ),
    ),
    'coverage': Relation(
        'table',
        "The MPI names that the application imports, in its executable and shared objects loaded in MPI_Finalize, and whether commlens measures their calls: what tells 'never called' from 'not seen'.",
        (
            Column('symbol', 'TEXT', '', 'The name as it is imported: MPI_Send, PMPI_Send, MPI_Send_c, mpi_send_.'),
            Column('object', 'TEXT', '', 'File name of the executable or shared object that imports it.'),
            Column('procedure', 'TEXT', '', 'The procedure it stands for, by its name in C as in op.name; the symbol where it stands for none.'),
            Column('state', 'TEXT', '', 'measured; skipped: left out on purpose; absent: the MPI library does not have it; unseen: its calls are missing in this profile.'),
            Column('reason', 'TEXT', '', 'Why its calls are not in cells, else NULL.'),
            Column('ranks', 'INTEGER', 'processes', 'Processes of this profile that import it.'),
        ),
    ),
    'region': Relation(
        'table',
        'Code regions, as a tree; region 0 is the whole program.',
        (
            Column('id', 'INTEGER', '', 'Number within this file.'),
            Column('parent', 'INTEGER', '', 'Enclosing region, or NULL.'),
            Column('name', 'TEXT', '', 'Name of the region; empty for the whole program.'),
        ),
    ),
    'callsite': Relation(
        'table',
        'Places in the application that call MPI: the return address of the outermost MPI call.',
        (
            Column('id', 'INTEGER', '', 'Number within this file.'),
            Column('module', 'TEXT', '', 'Path of the executable or shared object; empty when it is not known.'),
            Column('build_id', 'TEXT', '', 'GNU build id of the module, hexadecimal, or empty.'),
            Column('offset', 'INTEGER', 'bytes', 'Return address minus load address of the module.'),
        ),
    ),
    'key': Relation(
        'table',
        'What a cell counts, without the rank: one row per combination that occurred.',
        (
            Column('id', 'INTEGER', '', 'Number within this file, a multiple of the number of ranks in MPI_COMM_WORLD.'),
            Column('comm', 'INTEGER', '', 'Communicator.'),
            Column('op', 'INTEGER', '', 'MPI procedure.'),
            Column('bin', 'INTEGER', '', 'Message size bin: 0 for no bytes, k for 2^(k-1) <= size < 2^k bytes, -1 for calls whose blocks differ in size (v and w collectives).'),
            Column('region', 'INTEGER', '', 'Code region.'),
            Column('callsite', 'INTEGER', '', 'Call site, or 0 when call sites are off.'),
            Column('usual_calls', 'INTEGER', '', 'Calls of one rank, as many as most ranks have; cell_row has differences to it.'),
            Column('usual_sent', 'INTEGER', 'bytes', 'Bytes sent by one rank, likewise.'),
            Column('usual_received', 'INTEGER', 'bytes', 'Bytes received by one rank, likewise.'),
            Column('usual_noncontig', 'INTEGER', '', 'Calls of one rank with a non-contiguous datatype, likewise.'),
        ),
    ),
    'cell_row': Relation(
        'table',
        'The counters as they are stored, one row per key and rank; view cell has them as they are. Counts and bytes are differences to what key says is usual: where all ranks do the same these are 0, which takes no room.',
        (
            Column('id', 'INTEGER', '', 'key.id + world rank: keys are as far from each other as there are ranks in MPI_COMM_WORLD.'),
            Column('calls', 'INTEGER', '', 'Number of calls, less key.usual_calls.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time inside these calls, added up.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes sent, less key.usual_sent.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes received, less key.usual_received.'),
            Column('noncontiguous', 'INTEGER', '', 'Calls with a non-contiguous datatype, less key.usual_noncontig.'),
        ),
    ),
    'slice': Relation(
        'table',
        'The same counters over time: the time since MPI_Init is cut into at most 128 slices of meta.slice_ns, fewer where a thread would keep more than 8,192 entries, or the profile would have more than 65,536 rows and more than an eighth of those of cell; rows are there for slices in which something happened.',
        (
            Column('comm', 'INTEGER', '', 'Communicator; where meta.slice_of is family, the first one of the family for all of them.'),
            Column('op', 'INTEGER', '', 'MPI procedure.'),
            Column('rank', 'INTEGER', '', 'World rank.'),
            Column('slot', 'INTEGER', '', 'Slice, from 0: it begins slot * slice_ns after MPI_Init returned on this rank. What was before counts in 0.'),
            Column('calls', 'INTEGER', '', 'Calls that ended in it.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time inside MPI in it; a long call has its time in all slices it spans.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes sent by calls that ended in it.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes received that were known by its end: those of a request count when it is completed.'),
        ),
    ),
    'position': Relation(
        'table',
        'Where the threads of a process were that did not reach MPI_Finalize; empty for those that did.',
        (
            Column('rank', 'INTEGER', '', 'World rank.'),
            Column('thread', 'INTEGER', '', 'Thread, in the order of their first MPI calls, from 0.'),
            Column('inside', 'INTEGER', '', '1: in this call; 0: outside MPI, and this was its last call.'),
            Column('op', 'INTEGER', '', 'MPI procedure.'),
            Column('comm', 'INTEGER', '', 'Communicator of the call.'),
            Column('callsite', 'INTEGER', '', 'Where the application called, or 0.'),
            Column('since_ns', 'INTEGER', 'ns', 'When the call began, since MPI_Init returned.'),
        ),
    ),
    'shard': Relation(
        'table',
        'The files of a profile that has several; empty where it is one file. In index.db.',
        (
            Column('number', 'INTEGER', '', 'Number of the file, from 0.'),
            Column('file', 'TEXT', '', 'Its name, or NULL when it could not be written.'),
            Column('first_rank', 'INTEGER', '', 'First world rank of its block.'),
            Column('ranks', 'INTEGER', 'processes', 'Processes whose data is in it.'),
            Column('cells', 'INTEGER', '', 'Rows of its table cell.'),
            Column('bytes', 'INTEGER', 'bytes', 'Its size.'),
            Column('crc32', 'INTEGER', '', 'CRC-32 of its bytes, as zlib computes it.'),
        ),
    ),
    'overhead': Relation(
        'table',
        'What commlens itself cost.',
        (
            Column('rank', 'INTEGER', '', 'World rank.'),
            Column('what', 'TEXT', '', "init: inside MPI_Init. collect: inside MPI_Finalize, until this rank's data is ready to send. gather: on a rank that writes a file, from the beginning until it has the data of all ranks of its block. agree: there, until all who write have the same numbers. write: there, building the file, up to writing it to disk. call: estimated for one measured call. calls: that, times the calls of the rank."),
            Column('ns', 'INTEGER', 'ns', 'Time.'),
        ),
    ),
    'cell': Relation(
        'view',
        'The counters: one row per key and rank.',
        (
            Column('key', 'INTEGER', '', 'What is counted, key.id.'),
            Column('rank', 'INTEGER', '', 'World rank that counted.'),
            Column('calls', 'INTEGER', '', 'Number of calls.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time inside these calls, added up.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers; docs/bytes.md has the rule.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers; docs/bytes.md has the rule.'),
            Column('noncontiguous', 'INTEGER', '', 'Calls of these with a non-contiguous datatype: its elements, as many as a block of the message has, leave gaps in memory, so that MPI must pack them. docs/bytes.md has the rule.'),
        ),
    ),
    'size_bin': Relation(
        'view',
        'The message sizes of every bin.',
        (
            Column('bin', 'INTEGER', '', 'Bin as in key.bin; -1 is the bin of calls whose blocks differ in size.'),
            Column('size_low', 'INTEGER', 'bytes', 'Smallest size in it, NULL for bin -1.'),
            Column('size_high', 'INTEGER', 'bytes', 'Largest size in it, NULL for bin -1.'),
        ),
    ),
    'member_range': Relation(
        'view',
        'The members of every comm as ranges of world ranks: comm.members taken apart. A set has the members of its communicators, comm 0 has all ranks.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('low', 'INTEGER', '', 'First world rank.'),
            Column('high', 'INTEGER', '', 'Last world rank.'),
            Column('stride', 'INTEGER', '', 'Distance from one to the next.'),
        ),
    ),
    'member': Relation(
        'view',
        'Which world ranks belong to which comm.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('rank', 'INTEGER', '', 'World rank of one member.'),
        ),
    ),
    'counter': Relation(
        'view',
        'Every cell with names in place of numbers: the view to start own queries from.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('communicator', 'TEXT', '', 'Its name.'),
            Column('family', 'INTEGER', '', 'Its family.'),
            Column('operation', 'TEXT', '', 'Name of the MPI procedure.'),
            Column('class', 'TEXT', '', 'Its class.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('size_low', 'INTEGER', 'bytes', 'Smallest message size of the bin, NULL for bin -1.'),
            Column('size_high', 'INTEGER', 'bytes', 'Largest message size of the bin, NULL for bin -1.'),
            Column('region', 'INTEGER', '', 'Code region, region.id.'),
            Column('callsite', 'INTEGER', '', 'Call site, callsite.id.'),
            Column('rank', 'INTEGER', '', 'World rank that counted.'),
            Column('calls', 'INTEGER', '', 'Number of calls.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time inside these calls, added up.'),
            Column('time_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('time_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers.'),
            Column('noncontiguous', 'INTEGER', '', 'Calls with a non-contiguous datatype.'),
        ),
    ),
    'procedure': Relation(
        'view',
        'What the application imports or calls of MPI: one row per procedure, state and reason.',
        (
            Column('procedure', 'TEXT', '', 'Name in C.'),
            Column('class', 'TEXT', '', 'Its class as in op.class, or NULL when it is not in op.'),
            Column('state', 'TEXT', '', 'measured, skipped, absent or unseen, as in coverage.state.'),
            Column('reason', 'TEXT', '', 'As in coverage.reason.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks; NULL where they are not in cells.'),
            Column('objects', 'TEXT', '', 'Files that import it, joined by a comma; NULL when none does and the application has looked the name up.'),
        ),
    ),
    'family': Relation(
        'view',
        'Families of communicators, one row each; communicators that are alone are a family of one.',
        (
            Column('family', 'INTEGER', '', 'Number of the family, comm.family.'),
            Column('name', 'TEXT', '', 'Common name: the name of a single one; else with * for what differs, s*.1; {*} for several sets.'),
            Column('kind', 'TEXT', '', 'intra, inter, set or none. A process names 256 different sets; all others count under one set without members, {*}.'),
            Column('communicators', 'INTEGER', '', 'How many communicators.'),
            Column('size_min', 'INTEGER', 'processes', 'Size of the smallest, both groups of an intercommunicator together.'),
            Column('size_max', 'INTEGER', 'processes', 'Size of the largest.'),
            Column('parent', 'INTEGER', '', 'Family of the communicators they were made from, or NULL.'),
            Column('creator', 'TEXT', '', 'Procedure that made them, or NULL.'),
            Column('callsite', 'INTEGER', '', 'Where they were made, callsite.id, or NULL.'),
            Column('user_name', 'TEXT', '', 'The name the application gave, if it gave all the same, else NULL.'),
            Column('topology', 'TEXT', '', 'Their topology, if all have the same, else NULL.'),
        ),
    ),
    'comm_total': Relation(
        'view',
        'Totals of every comm that has calls: what a report prints for a communicator that is not folded.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('ranks', 'INTEGER', 'processes', 'Ranks of this profile that are members.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time of all ranks added up.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Time of the rank that spent most.'),
            Column('rank_avg_ns', 'INTEGER', 'ns', 'time_ns / ranks: the average over all members, those without a call included.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
    ),
    'comm_operation': Relation(
        'view',
        'Totals of every comm, operation and size bin: the rows of a report that is not folded.',
        (
            Column('comm', 'INTEGER', '', 'The communicator, comm.id.'),
            Column('op', 'INTEGER', '', 'MPI procedure, op.id.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time of all ranks added up.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Time of the rank that spent most.'),
            Column('rank_avg_ns', 'INTEGER', 'ns', 'time_ns / members: the average over all members, those without a call included.'),
            Column('call_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('call_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
    ),
    'family_total': Relation(
        'view',
        'Totals of every family that has calls: the communicator lines of a report.',
        (
            Column('family', 'INTEGER', '', 'The family, comm.family.'),
            Column('ranks', 'INTEGER', 'processes', 'Ranks of this profile that are members of at least one of its communicators.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time of all ranks added up.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Time of the rank that spent most in all communicators of the family together.'),
            Column('rank_avg_ns', 'INTEGER', 'ns', 'time_ns / ranks: the average over all members, those without a call included.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
    ),
    'family_operation': Relation(
        'view',
        'Totals of every family, operation and size bin: the rows of a report without options.',
        (
            Column('family', 'INTEGER', '', 'The family, comm.family.'),
            Column('op', 'INTEGER', '', 'MPI procedure, op.id.'),
            Column('bin', 'INTEGER', '', 'Message size bin, as in key.bin.'),
            Column('calls', 'INTEGER', '', 'Calls of all ranks.'),
            Column('time_ns', 'INTEGER', 'ns', 'Time of all ranks added up.'),
            Column('rank_max_ns', 'INTEGER', 'ns', 'Time of the rank that spent most.'),
            Column('rank_avg_ns', 'INTEGER', 'ns', 'time_ns / members of the family: the average over all members, those without a call included.'),
            Column('call_min_ns', 'INTEGER', 'ns', 'Shortest call.'),
            Column('call_max_ns', 'INTEGER', 'ns', 'Longest call.'),
            Column('bytes_sent', 'INTEGER', 'bytes', 'Bytes read from send buffers by all ranks.'),
            Column('bytes_received', 'INTEGER', 'bytes', 'Bytes written to receive buffers of all ranks.'),
        ),
    ),
}

META_KEYS: dict[str, str] = {
    'schema_version': 'The schema version of this file; the same number as PRAGMA user_version.',
    'commlens_version': 'Version of the library that measured.',
    'commlens_build': 'Compiler, build type and MPI family the library was built for.',
    'command_line': 'Command line of world rank 0, arguments quoted for a POSIX shell where needed.',
    'program': 'File name of the executable of world rank 0.',
    'working_directory': 'Working directory of world rank 0 when MPI was initialised.',
    'start_time': 'When MPI_Init returned on world rank 0: UTC, ISO 8601.',
    'elapsed_ns': 'From the return of MPI_Init to the call of MPI_Finalize: the longest of all ranks, nanoseconds.',
    'ranks': 'Number of processes in MPI_COMM_WORLD.',
    'ranks_collected': 'Number of processes whose data is in this file.',
    'slice_ns': 'Width of the slices of time in table slice, nanoseconds.',
    'slice_of': 'What table slice tells apart: communicator, or family where that would be too many rows.',
    'nodes': 'Number of different host names.',
    'shard': 'Number of this file where it is one of several of a profile, else empty.',
    'mpi_library': 'First line of what MPI_Get_library_version reports.',
    'mpi_family': 'Binary interface of the MPI library: openmpi, mpich or abi.',
    'mpi_standard': 'Version of the MPI standard the library reports, as in 3.1.',
    'thread_level': 'Thread support MPI provided: single, funneled, serialized or multiple.',
    'job_id': 'Job id of the batch system (SLURM_JOB_ID, PBS_JOBID, LSB_JOBID, JOB_ID, COBALT_JOBID), or empty.',
    'clock': 'What time was read from: tsc or clock_gettime.',
    'options': 'The COMMLENS_ options in force, one NAME=value per line, all of them.',
}

SQL = """\
PRAGMA application_id = 1129073742;
PRAGMA user_version = 3;
CREATE TABLE meta ( -- One line per fact about the run: what ran, where, with which MPI, and with which options.
  key TEXT, -- Name of the fact; the names are listed under 'Keys of meta'.
  value TEXT, -- Its value, as text.
  PRIMARY KEY (key)
) WITHOUT ROWID;
CREATE TABLE rank ( -- One row per process of MPI_COMM_WORLD.
  rank INTEGER PRIMARY KEY, -- Rank in MPI_COMM_WORLD.
  world INTEGER, -- Random 64-bit id of the MPI_COMM_WORLD this process belongs to.
  node TEXT, -- Host name.
  pid INTEGER, -- Process id on that host.
  cpus TEXT, -- CPUs the process may run on when MPI was initialised, as ranges: 0-3,8.
  init_ns INTEGER, -- [ns] Time inside MPI_Init or MPI_Init_thread, without ours.
  app_ns INTEGER, -- [ns] From the return of MPI_Init to the call of MPI_Finalize.
  mpi_ns INTEGER, -- [ns] Time inside measured MPI calls of this process, all threads added up; the sum of time_ns of its cells.
  threads INTEGER, -- Threads that made at least one measured MPI call.
  calls INTEGER, -- Measured MPI calls of this process; the sum of calls of its cells.
  lost_calls INTEGER, -- Calls counted without their key because memory ran out; they are under comm 0, op 0. Normally 0.
  state TEXT -- How the process ended: finalized, or what is known of one whose calls were recovered: running (still there when somebody looked), ended (without MPI_Finalize), exited, aborted (MPI_Abort), or the name of the signal.
);
CREATE TABLE comm ( -- One row per communicator, plus two kinds that are none: 'none' for calls that have no communicator, 'set' for completion calls whose requests belong to several.
  id INTEGER PRIMARY KEY, -- Number within this file; 0 is 'no communicator'.
  hash INTEGER, -- 64-bit identity, the same on every member, computed without communication.
  name TEXT, -- Letter of the creating procedure, world rank of the leader, and the leader's count of communicators: W0.0, s0.1. A + at the end: it is the first of many that share the row.
  user_name TEXT, -- The name the application gave with MPI_Comm_set_name, or NULL.
  kind TEXT, -- intra, inter, set or none. A process names 256 different sets; all others count under one set without members, {*}.
  parent INTEGER REFERENCES comm(id), -- Communicator it was made from, or NULL.
  creator INTEGER REFERENCES op(id), -- Procedure that made it, or NULL for predefined ones.
  callsite INTEGER REFERENCES callsite(id), -- Where the application made it, or NULL; the leader's call site where ranks differ.
  size INTEGER, -- [processes] Processes in it; of an intercommunicator, in the leader's local group. NULL for none and set.
  remote_size INTEGER, -- [processes] Processes in the remote group of an intercommunicator, else NULL.
  leader INTEGER, -- World rank of its rank 0, or NULL.
  members TEXT, -- World ranks in the order of its ranks, as ranges with an optional stride: 0-3, 0-14:2, 5. Of an intercommunicator both groups, joined by ' | '.
  topology TEXT, -- cart 4x2 periodic 10; graph 3 nodes 4 edges; dist_graph or dist_graph weighted; or NULL.
  created_ns INTEGER, -- [ns] When the leader had it, since its MPI_Init returned.
  freed_ns INTEGER, -- [ns] When the leader freed it, since its MPI_Init returned, or NULL.
  family INTEGER, -- Communicators made by the same procedure at the same call site from the same family of parents share this number.
  communicators INTEGER -- How many communicators share this row: 1, or more for those beyond COMMLENS_COMMS of one parent, of one procedure, leader and size.
);
CREATE TABLE comm_set ( -- Which communicators a comm of kind 'set' stands for.
  comm INTEGER REFERENCES comm(id), -- The set.
  member INTEGER REFERENCES comm(id), -- One communicator in it.
  PRIMARY KEY (comm, member)
) WITHOUT ROWID;
CREATE TABLE op ( -- The MPI procedures; the same ids in every profile of one schema version. Large-count forms (_c) share the row of the plain form.
  id INTEGER PRIMARY KEY, -- Number of the procedure; 0 is 'unknown'.
  name TEXT, -- Name in C: MPI_Allreduce.
  class TEXT -- p2p, collective, neighbor, rma, io, completion, comm or other.
);
CREATE TABLE coverage ( -- The MPI names that the application imports, in its executable and shared objects loaded in MPI_Finalize, and whether commlens measures their calls: what tells 'never called' from 'not seen'.
  symbol TEXT, -- The name as it is imported: MPI_Send, PMPI_Send, MPI_Send_c, mpi_send_.
  object TEXT, -- File name of the executable or shared object that imports it.
  procedure TEXT, -- The procedure it stands for, by its name in C as in op.name; the symbol where it stands for none.
  state TEXT, -- measured; skipped: left out on purpose; absent: the MPI library does not have it; unseen: its calls are missing in this profile.
  reason TEXT, -- Why its calls are not in cells, else NULL.
  ranks INTEGER, -- [processes] Processes of this profile that import it.
  PRIMARY KEY (symbol, object)
) WITHOUT ROWID;
CREATE TABLE region ( -- Code regions, as a tree; region 0 is the whole program.
  id INTEGER PRIMARY KEY, -- Number within this file.
  parent INTEGER REFERENCES region(id), -- Enclosing region, or NULL.
  name TEXT -- Name of the region; empty for the whole program.
);
CREATE TABLE callsite ( -- Places in the application that call MPI: the return address of the outermost MPI call.
  id INTEGER PRIMARY KEY, -- Number within this file.
  module TEXT, -- Path of the executable or shared object; empty when it is not known.
  build_id TEXT, -- GNU build id of the module, hexadecimal, or empty.
  offset INTEGER -- [bytes] Return address minus load address of the module.
);
CREATE TABLE key ( -- What a cell counts, without the rank: one row per combination that occurred.
  id INTEGER PRIMARY KEY, -- Number within this file, a multiple of the number of ranks in MPI_COMM_WORLD.
  comm INTEGER REFERENCES comm(id), -- Communicator.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  bin INTEGER, -- Message size bin: 0 for no bytes, k for 2^(k-1) <= size < 2^k bytes, -1 for calls whose blocks differ in size (v and w collectives).
  region INTEGER REFERENCES region(id), -- Code region.
  callsite INTEGER REFERENCES callsite(id), -- Call site, or 0 when call sites are off.
  usual_calls INTEGER, -- Calls of one rank, as many as most ranks have; cell_row has differences to it.
  usual_sent INTEGER, -- [bytes] Bytes sent by one rank, likewise.
  usual_received INTEGER, -- [bytes] Bytes received by one rank, likewise.
  usual_noncontig INTEGER -- Calls of one rank with a non-contiguous datatype, likewise.
);
CREATE TABLE cell_row ( -- The counters as they are stored, one row per key and rank; view cell has them as they are. Counts and bytes are differences to what key says is usual: where all ranks do the same these are 0, which takes no room.
  id INTEGER PRIMARY KEY, -- key.id + world rank: keys are as far from each other as there are ranks in MPI_COMM_WORLD.
  calls INTEGER, -- Number of calls, less key.usual_calls.
  time_ns INTEGER, -- [ns] Time inside these calls, added up.
  time_min_ns INTEGER, -- [ns] Shortest call.
  time_max_ns INTEGER, -- [ns] Longest call.
  bytes_sent INTEGER, -- [bytes] Bytes sent, less key.usual_sent.
  bytes_received INTEGER, -- [bytes] Bytes received, less key.usual_received.
  noncontiguous INTEGER -- Calls with a non-contiguous datatype, less key.usual_noncontig.
);
CREATE TABLE slice ( -- The same counters over time: the time since MPI_Init is cut into at most 128 slices of meta.slice_ns, fewer where a thread would keep more than 8,192 entries, or the profile would have more than 65,536 rows and more than an eighth of those of cell; rows are there for slices in which something happened.
  comm INTEGER REFERENCES comm(id), -- Communicator; where meta.slice_of is family, the first one of the family for all of them.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  slot INTEGER, -- Slice, from 0: it begins slot * slice_ns after MPI_Init returned on this rank. What was before counts in 0.
  calls INTEGER, -- Calls that ended in it.
  time_ns INTEGER, -- [ns] Time inside MPI in it; a long call has its time in all slices it spans.
  bytes_sent INTEGER, -- [bytes] Bytes sent by calls that ended in it.
  bytes_received INTEGER, -- [bytes] Bytes received that were known by its end: those of a request count when it is completed.
  PRIMARY KEY (comm, op, rank, slot)
) WITHOUT ROWID;
CREATE TABLE position ( -- Where the threads of a process were that did not reach MPI_Finalize; empty for those that did.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  thread INTEGER, -- Thread, in the order of their first MPI calls, from 0.
  inside INTEGER, -- 1: in this call; 0: outside MPI, and this was its last call.
  op INTEGER REFERENCES op(id), -- MPI procedure.
  comm INTEGER REFERENCES comm(id), -- Communicator of the call.
  callsite INTEGER REFERENCES callsite(id), -- Where the application called, or 0.
  since_ns INTEGER, -- [ns] When the call began, since MPI_Init returned.
  PRIMARY KEY (rank, thread)
) WITHOUT ROWID;
CREATE TABLE shard ( -- The files of a profile that has several; empty where it is one file. In index.db.
  number INTEGER PRIMARY KEY, -- Number of the file, from 0.
  file TEXT, -- Its name, or NULL when it could not be written.
  first_rank INTEGER, -- First world rank of its block.
  ranks INTEGER, -- [processes] Processes whose data is in it.
  cells INTEGER, -- Rows of its table cell.
  bytes INTEGER, -- [bytes] Its size.
  crc32 INTEGER -- CRC-32 of its bytes, as zlib computes it.
);
CREATE TABLE overhead ( -- What commlens itself cost.
  rank INTEGER REFERENCES rank(rank), -- World rank.
  what TEXT, -- init: inside MPI_Init. collect: inside MPI_Finalize, until this rank's data is ready to send. gather: on a rank that writes a file, from the beginning until it has the data of all ranks of its block. agree: there, until all who write have the same numbers. write: there, building the file, up to writing it to disk. call: estimated for one measured call. calls: that, times the calls of the rank.
  ns INTEGER, -- [ns] Time.
  PRIMARY KEY (rank, what)
) WITHOUT ROWID;
CREATE VIEW cell AS -- The counters: one row per key and rank.
SELECT key.id AS key, cell_row.id - key.id AS rank,
       key.usual_calls + cell_row.calls AS calls, cell_row.time_ns, cell_row.time_min_ns, cell_row.time_max_ns,
       key.usual_sent + cell_row.bytes_sent AS bytes_sent,
       key.usual_received + cell_row.bytes_received AS bytes_received,
       key.usual_noncontig + cell_row.noncontiguous AS noncontiguous
  FROM key CROSS JOIN cell_row
    ON cell_row.id BETWEEN key.id AND key.id + (SELECT CAST(value AS INTEGER) FROM meta WHERE meta.key = 'ranks') - 1;
CREATE VIEW size_bin AS -- The message sizes of every bin.
WITH RECURSIVE power(bin) AS (SELECT 0 UNION ALL SELECT bin + 1 FROM power WHERE bin < 63)
SELECT -1 AS bin, NULL AS size_low, NULL AS size_high
UNION ALL
SELECT bin, CASE bin WHEN 0 THEN 0 ELSE 1 << (bin - 1) END, ~(-1 << bin) FROM power;
CREATE VIEW member_range AS -- The members of every comm as ranges of world ranks: comm.members taken apart. A set has the members of its communicators, comm 0 has all ranks.
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
CREATE VIEW member AS -- Which world ranks belong to which comm.
SELECT DISTINCT member_range.comm, rank.rank
  FROM member_range JOIN rank
    ON rank.rank BETWEEN low AND high AND (rank.rank - low) % stride = 0;
CREATE VIEW counter AS -- Every cell with names in place of numbers: the view to start own queries from.
SELECT key.comm, comm.name AS communicator, comm.family, op.name AS operation, op.class, key.bin,
       CASE WHEN key.bin > 0 THEN 1 << (key.bin - 1) WHEN key.bin = 0 THEN 0 END AS size_low,
       CASE WHEN key.bin >= 0 THEN ~(-1 << key.bin) END AS size_high,
       key.region, key.callsite, cell.rank, cell.calls, cell.time_ns, cell.time_min_ns, cell.time_max_ns,
       cell.bytes_sent, cell.bytes_received, cell.noncontiguous
  FROM cell JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op;
CREATE VIEW procedure AS -- What the application imports or calls of MPI: one row per procedure, state and reason.
WITH called AS (
       SELECT op.name AS procedure, SUM(part.calls) AS calls
         FROM (SELECT key, SUM(calls) AS calls FROM cell GROUP BY key) AS part
         JOIN key ON key.id = part.key JOIN op ON op.id = key.op
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
CREATE VIEW family AS -- Families of communicators, one row each; communicators that are alone are a family of one.
SELECT comm.family,
       CASE WHEN COUNT(*) = 1 THEN MIN(comm.name)
            WHEN MIN(comm.kind) = 'set' THEN '{*}'
            ELSE SUBSTR(MIN(comm.name), 1, 1)
              || CASE WHEN MIN(comm.leader) = MAX(comm.leader) THEN MIN(comm.leader) ELSE '*' END || '.'
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
 GROUP BY comm.family;
CREATE VIEW comm_total AS -- Totals of every comm that has calls: what a report prints for a communicator that is not folded.
WITH total AS (
  SELECT key.comm, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
         SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
    FROM (SELECT key, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
                 SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
            FROM cell GROUP BY key) AS part
    JOIN key ON key.id = part.key
   GROUP BY key.comm)
SELECT total.comm, size.ranks, calls, time_ns,
       (SELECT MAX(spent) FROM (SELECT SUM(cell.time_ns) AS spent FROM key JOIN cell ON cell.key = key.id
                                 WHERE key.comm = total.comm GROUP BY cell.rank)) AS rank_max_ns,
       (2 * time_ns + size.ranks) / (2 * size.ranks) AS rank_avg_ns,
       bytes_sent, bytes_received
  FROM total JOIN (SELECT comm, COUNT(*) AS ranks FROM member GROUP BY comm) AS size ON size.comm = total.comm;
CREATE VIEW comm_operation AS -- Totals of every comm, operation and size bin: the rows of a report that is not folded.
WITH total AS (
  SELECT key.comm, key.op, key.bin, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
         MIN(part.time_min_ns) AS call_min_ns, MAX(part.time_max_ns) AS call_max_ns,
         SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
    FROM (SELECT key, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
                 MIN(time_min_ns) AS time_min_ns, MAX(time_max_ns) AS time_max_ns,
                 SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
            FROM cell GROUP BY key) AS part
    JOIN key ON key.id = part.key
   GROUP BY key.comm, key.op, key.bin)
SELECT total.comm, op, bin, calls, time_ns,
       (SELECT MAX(spent) FROM (SELECT SUM(cell.time_ns) AS spent FROM key JOIN cell ON cell.key = key.id
                                 WHERE key.comm = total.comm AND key.op = total.op AND key.bin = total.bin
                                 GROUP BY cell.rank)) AS rank_max_ns,
       (2 * time_ns + size.ranks) / (2 * size.ranks) AS rank_avg_ns,
       call_min_ns, call_max_ns, bytes_sent, bytes_received
  FROM total JOIN (SELECT comm, COUNT(*) AS ranks FROM member GROUP BY comm) AS size ON size.comm = total.comm;
CREATE VIEW family_total AS -- Totals of every family that has calls: the communicator lines of a report.
WITH total AS (
  SELECT comm.family, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
         SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
    FROM (SELECT key, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
                 SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
            FROM cell GROUP BY key) AS part
    JOIN key ON key.id = part.key JOIN comm ON comm.id = key.comm
   GROUP BY comm.family)
SELECT total.family, size.ranks, calls, time_ns,
       (SELECT MAX(spent) FROM (SELECT SUM(cell.time_ns) AS spent
                                  FROM comm JOIN key ON key.comm = comm.id JOIN cell ON cell.key = key.id
                                 WHERE comm.family = total.family GROUP BY cell.rank)) AS rank_max_ns,
       (2 * time_ns + size.ranks) / (2 * size.ranks) AS rank_avg_ns,
       bytes_sent, bytes_received
  FROM total
  JOIN (SELECT comm.family, COUNT(DISTINCT member.rank) AS ranks FROM member JOIN comm ON comm.id = member.comm
         GROUP BY comm.family) AS size ON size.family = total.family;
CREATE VIEW family_operation AS -- Totals of every family, operation and size bin: the rows of a report without options.
WITH total AS (
  SELECT comm.family, key.op, key.bin, SUM(part.calls) AS calls, SUM(part.time_ns) AS time_ns,
         MIN(part.time_min_ns) AS call_min_ns, MAX(part.time_max_ns) AS call_max_ns,
         SUM(part.bytes_sent) AS bytes_sent, SUM(part.bytes_received) AS bytes_received
    FROM (SELECT key, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
                 MIN(time_min_ns) AS time_min_ns, MAX(time_max_ns) AS time_max_ns,
                 SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
            FROM cell GROUP BY key) AS part
    JOIN key ON key.id = part.key JOIN comm ON comm.id = key.comm
   GROUP BY comm.family, key.op, key.bin)
SELECT total.family, op, bin, calls, time_ns,
       (SELECT MAX(spent) FROM (SELECT SUM(cell.time_ns) AS spent
                                  FROM comm JOIN key ON key.comm = comm.id JOIN cell ON cell.key = key.id
                                 WHERE comm.family = total.family AND key.op = total.op AND key.bin = total.bin
                                 GROUP BY cell.rank)) AS rank_max_ns,
       (2 * time_ns + size.ranks) / (2 * size.ranks) AS rank_avg_ns,
       call_min_ns, call_max_ns, bytes_sent, bytes_received
  FROM total
  JOIN (SELECT comm.family, COUNT(DISTINCT member.rank) AS ranks FROM member JOIN comm ON comm.id = member.comm
         GROUP BY comm.family) AS size ON size.family = total.family;
"""
