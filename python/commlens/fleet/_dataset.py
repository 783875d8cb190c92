# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/dataset.py from spec/dataset.toml and spec/codes.toml.
"""Tables of a dataset, in the version of this reader; and the codes that it recognises."""

from __future__ import annotations

from typing import NamedTuple

VERSION = 2


class Column(NamedTuple):
    """One column; the head of spec/dataset.toml describes its facts."""

    name: str
    type: str
    unit: str
    doc: str
    null: bool = False
    personal: str = ""
    since: int = 1


class Table(NamedTuple):
    """One table. most: rows of one job, 0 without a limit; those with the least of column `order` are left out."""

    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    is_of_job: bool
    most: int = 0
    order: str = ""


class Code(NamedTuple):
    """How a code is recognised: patterns of the executable's file name, and build ids."""

    name: str
    programs: tuple[str, ...]
    build_ids: tuple[str, ...]


TABLES: dict[str, Table] = {
    'job': Table(
        'One row per profile: the job, what it ran, and the totals over its processes.',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('start', 'TIMESTAMP', '', 'Time at which MPI_Init returned, UTC.', null=True),
            Column('input', 'TEXT', '', 'Runs of one code with equal input are comparable: a hash of the arguments of the command line and of the number of ranks, or the value of the label input (COMMLENS_LABEL).'),
            Column('program', 'TEXT', '', 'File name of the executable.'),
            Column('build_id', 'TEXT', '', 'GNU build id of the executable, or empty.'),
            Column('owner', 'TEXT', '', 'User who owns the profile.', personal='user'),
            Column('owner_group', 'TEXT', '', "Group of the profile's file.", personal='user'),
            Column('queue', 'TEXT', '', 'Partition or queue of the batch system, or empty.'),
            Column('job_id', 'TEXT', '', 'Job id of the batch system, or empty.'),
            Column('command_line', 'TEXT', '', 'Command line, as in the profile.', personal='command'),
            Column('directory', 'TEXT', '', 'Working directory.', personal='path'),
            Column('profile', 'TEXT', '', 'Path of the profile that was read.', personal='path'),
            Column('changed', 'TIMESTAMP', '', 'Time at which the profile was changed last, UTC.', null=True, since=2),
            Column('file', 'BIGINT', '', 'Hash of path, size and time of the profile: a file that did not change is not read again.'),
            Column('ranks', 'BIGINT', 'processes', 'Processes in MPI_COMM_WORLD.'),
            Column('ranks_collected', 'BIGINT', 'processes', 'Processes whose data is in the profile.'),
            Column('nodes', 'BIGINT', '', 'Nodes.'),
            Column('elapsed_ns', 'BIGINT', 'ns', 'Time from MPI_Init to MPI_Finalize.'),
            Column('app_ns', 'BIGINT', 'ns', 'The same, summed over the processes: ranks times hours.'),
            Column('mpi_ns', 'BIGINT', 'ns', 'Time inside MPI, summed over the processes.'),
            Column('waiting_ns', 'BIGINT', 'ns', 'The part of mpi_ns in which processes waited for others, estimated from samples; 0 without samples. waiting_of_ns says of how much time.'),
            Column('waiting_of_ns', 'BIGINT', 'ns', 'The part of mpi_ns of which samples tell whether it is waiting.'),
            Column('sub_ns', 'BIGINT', 'ns', 'The part of mpi_ns on communicators with fewer processes than MPI_COMM_WORLD.'),
            Column('calls', 'BIGINT', '', 'MPI calls.'),
            Column('bytes_sent', 'BIGINT', 'bytes', 'Bytes that MPI calls sent.'),
            Column('bytes_received', 'BIGINT', 'bytes', 'Bytes that MPI calls received.'),
            Column('load_balance', 'DOUBLE', '', 'As in view region_total of the profile, for the whole run.', null=True),
            Column('communication_efficiency', 'DOUBLE', '', 'As in view region_total.', null=True),
            Column('parallel_efficiency', 'DOUBLE', '', 'As in view region_total.', null=True),
            Column('own_ns', 'BIGINT', 'ns', 'Time that commlens itself took, estimated, summed over the processes: in MPI_Init, in MPI_Finalize without waiting for other ranks, and in calls.'),
            Column('mpi_library', 'TEXT', '', 'First line of the version of the MPI library.'),
            Column('mpi_family', 'TEXT', '', 'openmpi, mpich or abi.'),
            Column('thread_level', 'TEXT', '', 'Thread support: single, funneled, serialized or multiple.'),
            Column('detail', 'TEXT', '', 'full or summary.'),
            Column('state', 'TEXT', '', 'finalized, or how the first process ended that did not reach MPI_Finalize; empty in summary detail.'),
            Column('schema_version', 'INTEGER', '', 'Schema version of the profile.'),
            Column('commlens_version', 'TEXT', '', 'Version of the library that measured.'),
            Column('rows_left_out', 'BIGINT', '', 'Rows of this job that a table has no room for.'),
            Column('complaints', 'BIGINT', '', 'Parts of the profile that could not be read and are left out; 0 if it is whole.'),
        ),
        key=('job',),
        is_of_job=True,
    ),
    'node': Table(
        'One row per job and node. Empty for profiles of summary detail.',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('start', 'TIMESTAMP', '', 'As in table job.', null=True),
            Column('node', 'TEXT', '', 'Host name.'),
            Column('nodes', 'BIGINT', '', 'Nodes of the job.'),
            Column('ranks', 'BIGINT', 'processes', 'Processes of the job on this node.'),
            Column('app_ns', 'BIGINT', 'ns', 'Their time from MPI_Init to MPI_Finalize, summed.'),
            Column('mpi_ns', 'BIGINT', 'ns', 'Their time inside MPI, summed.'),
            Column('slowness', 'DOUBLE', '', 'Time outside MPI of a process on this node, divided by the median over the nodes of the job: 1.1 is a node that computes 10 % longer. NULL for a job of one node, if threads of a process called MPI at the same time, and if a process did not reach MPI_Finalize.', null=True),
            Column('last', 'BIGINT', '', 'Sampled calls in which others waited longest for a process of this node.'),
            Column('late_ns', 'BIGINT', 'ns', 'Time for which they waited, as in waiting.late_ns of the profile.'),
        ),
        key=('job', 'node'),
        is_of_job=True,
        most=16384,
        order='app_ns',
    ),
    'comm_family': Table(
        'One row per family of communicators: those that one line of the application created.',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('family', 'BIGINT', '', 'Number of the family within the job.'),
            Column('lineage', 'TEXT', '', 'How it was created, from MPI_COMM_WORLD on: procedures and call sites. The same for every run of one executable.'),
            Column('kind', 'TEXT', '', 'intra, inter, set or none, as comm.kind.'),
            Column('creator', 'TEXT', '', 'Procedure that created it; empty for predefined communicators.'),
            Column('topology', 'TEXT', '', 'Topology of its first communicator: cart, graph, dist_graph, or empty.'),
            Column('size_min', 'BIGINT', 'processes', 'Ranks of its smallest communicator.', null=True),
            Column('size_max', 'BIGINT', 'processes', 'Ranks of its largest communicator.', null=True),
            Column('communicators', 'BIGINT', '', 'Communicators.'),
            Column('is_sub', 'INTEGER', '', '1: its largest communicator has fewer ranks than MPI_COMM_WORLD. 0: not, or unknown.'),
            Column('calls', 'BIGINT', '', 'Calls of all ranks.'),
            Column('time_ns', 'BIGINT', 'ns', 'Time of all ranks.'),
            Column('waiting_ns', 'BIGINT', 'ns', 'Estimated waiting in it; NULL without samples.', null=True),
            Column('bytes_sent', 'BIGINT', 'bytes', 'Bytes sent.'),
            Column('bytes_received', 'BIGINT', 'bytes', 'Bytes received.'),
        ),
        key=('job', 'family'),
        is_of_job=True,
        most=2000,
        order='time_ns',
    ),
    'operation': Table(
        'One row per family of communicators, procedure and message size, with the distribution over the ranks.',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('family', 'BIGINT', '', 'Family of communicators, comm_family.family.'),
            Column('size', 'BIGINT', 'processes', 'Ranks of the largest communicator of the family.', null=True),
            Column('is_sub', 'INTEGER', '', 'As in comm_family.'),
            Column('op', 'TEXT', '', 'MPI procedure.'),
            Column('class', 'TEXT', '', 'p2p, collective, neighbor, rma, io, completion, comm or other.'),
            Column('bin', 'INTEGER', '', 'Message size bin: 0 for no bytes, k for 2^(k-1) <= size < 2^k bytes; -1 and -2 as in key.bin of the profile.'),
            Column('calls', 'BIGINT', '', 'Calls of all ranks.'),
            Column('time_ns', 'BIGINT', 'ns', 'Time of all ranks.'),
            Column('call_max_ns', 'BIGINT', 'ns', 'Longest call.'),
            Column('ranks', 'BIGINT', 'processes', 'Ranks that made such calls. The quantiles are over these.'),
            Column('rank_min_ns', 'BIGINT', 'ns', 'Smallest time of a rank.'),
            Column('rank_p25_ns', 'BIGINT', 'ns', '25 % quantile of the times of the ranks.'),
            Column('rank_p50_ns', 'BIGINT', 'ns', 'Their median.'),
            Column('rank_p75_ns', 'BIGINT', 'ns', '75 % quantile.'),
            Column('rank_max_ns', 'BIGINT', 'ns', 'Largest time of a rank.'),
            Column('waiting_ns', 'BIGINT', 'ns', 'Estimated waiting in these calls; NULL without samples.', null=True),
            Column('bytes_sent', 'BIGINT', 'bytes', 'Bytes sent.'),
            Column('bytes_received', 'BIGINT', 'bytes', 'Bytes received.'),
            Column('noncontiguous', 'BIGINT', '', 'Calls with a non-contiguous datatype.'),
        ),
        key=('job', 'family', 'op', 'bin'),
        is_of_job=True,
        most=50000,
        order='time_ns',
    ),
    'site': Table(
        'The call sites with the most time, one row per call site and procedure.',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('site', 'TEXT', '', 'File name of the module and offset, or function and line if commlens symbols was applied to the profile.'),
            Column('build_id', 'TEXT', '', 'GNU build id of the module, or empty.'),
            Column('op', 'TEXT', '', 'MPI procedure.'),
            Column('calls', 'BIGINT', '', 'Calls of all ranks.'),
            Column('time_ns', 'BIGINT', 'ns', 'Time of all ranks.'),
            Column('bytes_sent', 'BIGINT', 'bytes', 'Bytes sent.'),
            Column('bytes_received', 'BIGINT', 'bytes', 'Bytes received.'),
        ),
        key=('job', 'site', 'op'),
        is_of_job=True,
        most=100,
        order='time_ns',
    ),
    'region': Table(
        'One row per code region that the application marked, region 0 being the whole run.',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('region', 'BIGINT', '', 'Number of the region within the job.'),
            Column('path', 'TEXT', '', 'Names from the outermost region to this one, joined by /; empty for the whole run.'),
            Column('kind', 'TEXT', '', 'program, region, loop or others.'),
            Column('ranks', 'BIGINT', 'processes', 'Ranks that entered it.'),
            Column('calls', 'BIGINT', '', 'Times that all ranks entered it.'),
            Column('time_ns', 'BIGINT', 'ns', 'Inclusive time of all ranks.'),
            Column('mpi_ns', 'BIGINT', 'ns', 'Time inside MPI of all ranks.'),
            Column('rank_max_ns', 'BIGINT', 'ns', 'Largest inclusive time of a rank.'),
            Column('load_balance', 'DOUBLE', '', 'As in view region_total of the profile.', null=True),
            Column('communication_efficiency', 'DOUBLE', '', 'As in view region_total.', null=True),
            Column('parallel_efficiency', 'DOUBLE', '', 'As in view region_total.', null=True),
        ),
        key=('job', 'region'),
        is_of_job=True,
        most=1000,
        order='time_ns',
    ),
    'matrix': Table(
        'The communication matrix of a job in one row: messages and one-sided calls of the application. A job without them has no row.',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('pattern', 'TEXT', '', 'Pattern that commlens matrix recognises by bytes: ring, nearest neighbour, all-to-all and others; none; or unknown, for more than 4,096 ranks.'),
            Column('pattern_detail', 'TEXT', '', 'Its grid, root or direction.'),
            Column('pattern_share', 'DOUBLE', '', 'Share of the traffic that follows it.'),
            Column('pairs', 'BIGINT', '', 'Pairs of a source and a destination.'),
            Column('messages', 'BIGINT', '', 'Messages.'),
            Column('bytes', 'BIGINT', 'bytes', 'Their bytes.'),
            Column('locality', 'DOUBLE', '', 'Share of the bytes between processes of one node. NULL without bytes.', null=True),
            Column('heaviest_source', 'BIGINT', '', 'World rank that sends the pair with the most bytes.'),
            Column('heaviest_destination', 'BIGINT', '', 'World rank that receives them.'),
            Column('heaviest_share', 'DOUBLE', '', 'Share of all bytes between these two.', null=True),
        ),
        key=('job',),
        is_of_job=True,
    ),
    'setting': Table(
        'How the processes were set up, as table setting of the profile.',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('source', 'TEXT', '', 'As in the profile: label, environment, control, tune, program or machine.'),
            Column('name', 'TEXT', '', 'Name of the setting.'),
            Column('value', 'TEXT', '', 'Its value. With --pseudonymise, values that contain a slash, a space or the name of the user are tokens.', personal='text'),
            Column('ranks', 'BIGINT', 'processes', 'Processes that had it.'),
        ),
        key=('job', 'source', 'name', 'value'),
        is_of_job=True,
        most=500,
        order='ranks',
    ),
    'finding': Table(
        'What commlens report points out about the job (docs/reference/findings.md).',
        (
            Column('job', 'BIGINT', '', 'Identity of the job, the same whenever its profile is read again: a hash of the random ids of its processes and of facts of the run.'),
            Column('cluster', 'TEXT', '', 'Name of the machine (commlens ingest --cluster).'),
            Column('month', 'TEXT', '', 'Month in which the job started, UTC: 2026-11. Empty if the profile has no valid start time.'),
            Column('code', 'TEXT', '', 'Name of the code, recognised by executable and build id (commlens ingest --codes); else the file name of the executable.'),
            Column('number', 'INTEGER', '', 'Position in the report, from 1.'),
            Column('rule', 'TEXT', '', 'Name of the rule.'),
            Column('op', 'TEXT', '', 'MPI procedure, or empty.'),
            Column('communicator', 'TEXT', '', 'Name of the communicator, or empty.'),
            Column('site', 'TEXT', '', 'Call site, or empty.'),
            Column('share', 'DOUBLE', '', 'Part of the run that it costs at most, 0 to 1.'),
            Column('text', 'TEXT', '', 'The finding in one sentence.'),
        ),
        key=('job', 'number'),
        is_of_job=True,
        most=100,
        order='share',
    ),
    'refused': Table(
        'Profiles that could not be read: damaged, truncated or of another program.',
        (
            Column('id', 'BIGINT', '', 'Hash of path, size and time of the file: a file that is refused twice has one row.'),
            Column('cluster', 'TEXT', '', 'Name of the machine.'),
            Column('month', 'TEXT', '', 'Month in which the file was changed last.'),
            Column('changed', 'TIMESTAMP', '', 'Time at which the file was changed last, UTC.', null=True),
            Column('owner', 'TEXT', '', 'User who owns the file.', personal='user'),
            Column('profile', 'TEXT', '', 'Path of the file.', personal='path'),
            Column('reason', 'TEXT', '', 'Why it was refused, without the path.'),
        ),
        key=('id',),
        is_of_job=False,
    ),
    'batch_job': Table(
        'Jobs as the batch system accounts them (commlens ingest --accounting), to find those without a profile.',
        (
            Column('id', 'BIGINT', '', 'Hash of cluster, job id and start.'),
            Column('cluster', 'TEXT', '', 'Name of the machine.'),
            Column('month', 'TEXT', '', 'Month in which it started.'),
            Column('start', 'TIMESTAMP', '', 'Time at which it started, as the batch system prints it: usually the local time of its machine.', null=True),
            Column('job_id', 'TEXT', '', 'Job id.'),
            Column('owner', 'TEXT', '', 'User.', personal='user'),
            Column('queue', 'TEXT', '', 'Partition.'),
            Column('name', 'TEXT', '', 'Name of the job.', personal='command'),
            Column('state', 'TEXT', '', 'State at the end, such as COMPLETED, FAILED, CANCELLED, TIMEOUT, NODE_FAIL.'),
            Column('tasks', 'BIGINT', 'processes', 'Tasks, 0 if unknown.'),
            Column('cpu_ns', 'BIGINT', 'ns', 'Allocated processors times elapsed time.'),
        ),
        key=('id',),
        is_of_job=False,
    ),
}

INTERPRETERS = ('python', 'python[23]*', 'perl', 'Rscript', 'R', 'julia', 'bash', 'sh')

CODES: tuple[Code, ...] = (
    Code('ABINIT', ('abinit', 'abinit[._-]*'), ()),
    Code('CP2K', ('cp2k', 'cp2k.*', 'cp2k[_-]*'), ()),
    Code('GROMACS', ('gmx', 'gmx_*', 'mdrun', 'mdrun_*'), ()),
    Code('HPL', ('xhpl', 'xhpl[._-]*'), ()),
    Code('HPCC', ('hpcc',), ()),
    Code('LAMMPS', ('lmp', 'lmp[._-]*', 'lammps', 'lammps-daily'), ()),
    Code('Meep', ('meep', 'meep[._-]*'), ()),
    Code('NAMD', ('namd[23]', 'namd[23][._-]*'), ()),
    Code('NWChem', ('nwchem', 'nwchem.*'), ()),
    Code('OpenFOAM', ('*Foam',), ()),
    Code('Quantum ESPRESSO', ('pw.x', 'cp.x', 'ph.x', 'neb.x', 'pp.x'), ()),
    Code('VASP', ('vasp', 'vasp_*'), ()),
    Code('WRF', ('wrf.exe', 'real.exe'), ()),
)
