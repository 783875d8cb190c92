# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/algorithms.py from spec/algorithms.toml.
"""The algorithms that MPI libraries offer, by library, version and collective."""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """What a selection table of a library says about one collective."""

    bytes: str
    bytes_need: str
    composition: str
    needs: dict[str, tuple[str, ...]]
    parameters: dict[str, tuple[str, ...]]
    since: dict[str, tuple[int, int]]


class Library(NamedTuple):
    """One MPI library; the head of spec/algorithms.toml describes its facts."""

    title: str
    version: str
    variable: str
    source: str
    is_complete: bool
    segmented: dict[str, tuple[str, ...]]
    since: dict[tuple[int, int], dict[str, tuple[str, ...]]]
    rules: dict[str, tuple[int, str]]
    tables: dict[str, Table]


LIBRARIES: dict[str, Library] = {
    'openmpi': Library(
        'Open MPI',
        '^Open MPI v(\\d+)\\.(\\d+)',
        'coll_tuned_{collective}_algorithm',
        'ompi_info --param coll tuned --level 9, of 4.1.4 and 5.0.11',
        True,
        {'allreduce': ('segmented_ring',), 'bcast': ('chain', 'pipeline', 'split_binary_tree', 'binary_tree', 'binomial', 'knomial'), 'reduce': ('chain', 'pipeline', 'binary', 'binomial', 'in-order_binary')},
        {
            (4, 1): {
                'barrier': ('linear', 'double_ring', 'recursive_doubling', 'bruck', 'two_proc', 'tree'),
                'bcast': ('basic_linear', 'chain', 'pipeline', 'split_binary_tree', 'binary_tree', 'binomial', 'knomial', 'scatter_allgather', 'scatter_allgather_ring'),
                'reduce': ('linear', 'chain', 'pipeline', 'binary', 'binomial', 'in-order_binary', 'rabenseifner'),
                'allreduce': ('basic_linear', 'nonoverlapping', 'recursive_doubling', 'ring', 'segmented_ring', 'rabenseifner'),
                'gather': ('basic_linear', 'binomial', 'linear_sync'),
                'scatter': ('basic_linear', 'binomial', 'linear_nb'),
                'allgather': ('linear', 'bruck', 'recursive_doubling', 'ring', 'neighbor', 'two_proc'),
                'allgatherv': ('default', 'bruck', 'ring', 'neighbor', 'two_proc'),
                'alltoall': ('linear', 'pairwise', 'modified_bruck', 'linear_sync', 'two_proc'),
                'alltoallv': ('basic_linear', 'pairwise'),
                'reduce_scatter': ('non-overlapping', 'recursive_halving', 'ring', 'butterfly'),
                'reduce_scatter_block': ('basic_linear', 'recursive_doubling', 'recursive_halving', 'butterfly'),
                'scan': ('linear', 'recursive_doubling'),
                'exscan': ('linear', 'recursive_doubling'),
            },
            (5, 0): {
                'allgather': ('linear', 'bruck', 'recursive_doubling', 'ring', 'neighbor', 'two_proc', 'sparbit'),
                'allgatherv': ('default', 'bruck', 'ring', 'neighbor', 'two_proc', 'sparbit'),
            },
        },
        {'allgather': (0, 'blocks'), 'allgatherv': (1, 'none'), 'allreduce': (2, 'block'), 'alltoall': (3, 'blocks'), 'alltoallv': (4, 'none'), 'barrier': (6, 'none'), 'bcast': (7, 'block'), 'exscan': (8, 'apart'), 'gather': (9, 'apart'), 'reduce': (11, 'block'), 'reduce_scatter': (12, 'none'), 'reduce_scatter_block': (13, 'blocks'), 'scan': (14, 'apart'), 'scatter': (15, 'apart')},
        {
        },
    ),
    'mpich': Library(
        'MPICH',
        '^MPICH Version:\\s*(\\d+)\\.(\\d+)',
        'MPIR_CVAR_{COLLECTIVE}_INTRA_ALGORITHM',
        'the descriptions of the variables in libmpi.so, of 4.0.2, 4.2.1 and 5.0.2; in the sources of 4.1 to 4.3',
        True,
        {},
        {
            (4, 0): {
                'barrier': ('nb', 'smp', 'dissemination'),
                'bcast': ('binomial', 'nb', 'smp', 'scatter_recursive_doubling_allgather', 'scatter_ring_allgather'),
                'gather': ('binomial', 'nb'),
                'gatherv': ('linear', 'nb'),
                'scatter': ('binomial', 'nb'),
                'scatterv': ('linear', 'nb'),
                'allgather': ('brucks', 'nb', 'recursive_doubling', 'ring'),
                'allgatherv': ('brucks', 'nb', 'recursive_doubling', 'ring'),
                'alltoall': ('brucks', 'nb', 'pairwise', 'pairwise_sendrecv_replace', 'scattered'),
                'alltoallv': ('nb', 'pairwise_sendrecv_replace', 'scattered'),
                'alltoallw': ('nb', 'pairwise_sendrecv_replace', 'scattered'),
                'reduce': ('binomial', 'nb', 'smp', 'reduce_scatter_gather'),
                'allreduce': ('nb', 'smp', 'recursive_doubling', 'reduce_scatter_allgather'),
                'reduce_scatter': ('nb', 'noncommutative', 'pairwise', 'recursive_doubling', 'recursive_halving'),
                'reduce_scatter_block': ('noncommutative', 'recursive_doubling', 'pairwise', 'recursive_halving', 'nb'),
                'scan': ('nb', 'smp', 'recursive_doubling'),
                'exscan': ('nb', 'recursive_doubling'),
            },
            (4, 1): {
                'barrier': ('nb', 'smp', 'k_dissemination', 'recexch'),
                'bcast': ('binomial', 'nb', 'smp', 'scatter_recursive_doubling_allgather', 'scatter_ring_allgather', 'pipelined_tree', 'tree'),
                'allgather': ('brucks', 'k_brucks', 'nb', 'recursive_doubling', 'ring'),
                'alltoall': ('brucks', 'k_brucks', 'nb', 'pairwise', 'pairwise_sendrecv_replace', 'scattered'),
                'allreduce': ('nb', 'smp', 'recursive_doubling', 'reduce_scatter_allgather', 'tree', 'recexch', 'ring', 'k_reduce_scatter_allgather'),
            },
            (4, 2): {
                'allgather': ('brucks', 'k_brucks', 'nb', 'recursive_doubling', 'ring', 'recexch_doubling', 'recexch_halving'),
            },
            (4, 3): {
                'allreduce': ('nb', 'smp', 'recursive_doubling', 'recursive_multiplying', 'reduce_scatter_allgather', 'tree', 'recexch', 'ring', 'k_reduce_scatter_allgather'),
            },
            (5, 0): {
                'allreduce': ('nb', 'smp', 'recursive_doubling', 'recursive_multiplying', 'reduce_scatter_allgather', 'tree', 'recexch', 'ring', 'k_reduce_scatter_allgather', 'ccl'),
            },
        },
        {},
        {
            'barrier': Table('none', '', 'beta', {'smp': ('comm_hierarchy=parent',)}, {'k_dissemination': ('k=2',), 'recexch': ('k=2', 'single_phase_recv=0')}, {}),
            'bcast': Table('avg_msg_size', '', 'gamma', {'smp': ('comm_hierarchy=parent',)}, {'tree': ('tree_type=kary', 'k=2', 'is_non_blocking=1'), 'pipelined_tree': ('tree_type=kary', 'k=2', 'is_non_blocking=1', 'chunk_size=8192', 'recv_pre_posted=0')}, {}),
            'gather': Table('none', '', '', {}, {}, {}),
            'gatherv': Table('none', '', '', {}, {}, {}),
            'scatter': Table('none', '', '', {}, {}, {}),
            'scatterv': Table('none', '', '', {}, {}, {}),
            'allgather': Table('total_msg_size', '', '', {'recursive_doubling': ('comm_size=pow2',)}, {'k_brucks': ('k=2',), 'recexch_doubling': ('k=2', 'single_phase_recv=0'), 'recexch_halving': ('k=2', 'single_phase_recv=0')}, {}),
            'allgatherv': Table('none', '', '', {'recursive_doubling': ('comm_size=pow2',)}, {}, {}),
            'alltoall': Table('avg_msg_size', 'is_sendbuf_inplace=no', '', {'pairwise_sendrecv_replace': ('is_sendbuf_inplace=yes',)}, {'k_brucks': ('k=2',)}, {}),
            'alltoallv': Table('none', '', '', {'pairwise_sendrecv_replace': ('is_sendbuf_inplace=yes',), 'scattered': ('is_sendbuf_inplace=no',)}, {}, {}),
            'alltoallw': Table('none', '', '', {'pairwise_sendrecv_replace': ('is_sendbuf_inplace=yes',), 'scattered': ('is_sendbuf_inplace=no',)}, {}, {}),
            'reduce': Table('avg_msg_size', '', 'gamma', {'smp': ('is_commutative=yes', 'comm_hierarchy=parent'), 'reduce_scatter_gather': ('is_op_built_in=yes', 'count>=pow2')}, {}, {}),
            'allreduce': Table('avg_msg_size', '', 'beta', {'smp': ('is_commutative=yes', 'comm_hierarchy=parent'), 'recursive_multiplying': ('is_commutative=yes',), 'reduce_scatter_allgather': ('is_op_built_in=yes', 'count>=pow2'), 'ring': ('is_commutative=yes',), 'k_reduce_scatter_allgather': ('is_commutative=yes',)}, {'recursive_multiplying': ('k=2',), 'tree': ('tree_type=knomial_1', 'k=2', 'chunk_size=0', 'buffer_per_child=0'), 'recexch': ('k=2', 'single_phase_recv=0'), 'k_reduce_scatter_allgather': ('k=2', 'single_phase_recv=0')}, {'tree': (4, 3)}),
            'reduce_scatter': Table('none', '', '', {'noncommutative': ('comm_size=pow2', 'is_block_regular=yes'), 'pairwise': ('is_commutative=yes',), 'recursive_halving': ('is_commutative=yes',)}, {}, {}),
            'reduce_scatter_block': Table('total_msg_size', '', '', {'noncommutative': ('comm_size=pow2',), 'pairwise': ('is_commutative=yes',), 'recursive_halving': ('is_commutative=yes',)}, {}, {}),
            'exscan': Table('none', '', '', {}, {}, {}),
        },
    ),
    'intel': Library(
        'Intel MPI',
        '^Intel\\(R\\) MPI Library (\\d+)\\.(\\d+)',
        'I_MPI_ADJUST_{COLLECTIVE}',
        "developer reference of 2019, 'I_MPI_ADJUST Family', not compared with a library; impi_info -v of 2021.18, which has numbers only",
        False,
        {},
        {
            (2019, 0): {
                'allgather': ('Recursive doubling', "Bruck's", 'Ring', 'Topology aware Gatherv + Bcast', 'Knomial'),
                'allgatherv': ('Recursive doubling', "Bruck's", 'Ring', 'Topology aware Gatherv + Bcast'),
                'allreduce': ('Recursive doubling', "Rabenseifner's", 'Reduce + Bcast', 'Topology aware Reduce + Bcast', 'Binomial gather + scatter', 'Topology aware binominal gather + scatter', "Shumilin's ring", 'Ring', 'Knomial', 'Topology aware SHM-based flat', 'Topology aware SHM-based Knomial', 'Topology aware SHM-based Knary'),
                'alltoall': ("Bruck's", 'Isend/Irecv + waitall', 'Pair wise exchange', "Plum's"),
                'alltoallv': ('Isend/Irecv + waitall', "Plum's"),
            },
            (2021, 18): {
                'barrier': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6', 'preset 7', 'preset 8', 'preset 9', 'preset 10', 'preset 11'),
                'bcast': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6', 'preset 7', 'preset 8', 'preset 9', 'preset 10', 'preset 11', 'preset 12', 'preset 13', 'preset 14', 'preset 15', 'preset 16', 'preset 17', 'preset 18', 'preset 19', 'preset 20', 'preset 21', 'preset 22'),
                'reduce': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6', 'preset 7', 'preset 8', 'preset 9', 'preset 10', 'preset 11', 'preset 12', 'preset 13', 'preset 14', 'preset 15', 'preset 16', 'preset 17', 'preset 18', 'preset 19'),
                'allgather': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6'),
                'allgatherv': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5'),
                'allreduce': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6', 'preset 7', 'preset 8', 'preset 9', 'preset 10', 'preset 11', 'preset 12', 'preset 13', 'preset 14', 'preset 15', 'preset 16', 'preset 17', 'preset 18', 'preset 19', 'preset 20', 'preset 21', 'preset 22', 'preset 23', 'preset 24', 'preset 25', 'preset 26', 'preset 27', 'preset 28', 'preset 29', 'preset 30', 'preset 31', 'preset 32'),
                'alltoall': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6', 'preset 7', 'preset 8', 'preset 9', 'preset 10', 'preset 11', 'preset 12', 'preset 13', 'preset 14', 'preset 15', 'preset 16', 'preset 17', 'preset 18'),
                'alltoallv': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6', 'preset 7', 'preset 8', 'preset 9'),
                'alltoallw': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6'),
                'exscan': ('preset 1', 'preset 2', 'preset 3'),
                'gather': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5'),
                'gatherv': ('preset 1', 'preset 2', 'preset 3', 'preset 4'),
                'reduce_scatter': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5', 'preset 6'),
                'reduce_scatter_block': ('preset 1', 'preset 2', 'preset 3', 'preset 4'),
                'scan': ('preset 1', 'preset 2', 'preset 3'),
                'scatter': ('preset 1', 'preset 2', 'preset 3', 'preset 4', 'preset 5'),
                'scatterv': ('preset 1', 'preset 2', 'preset 3', 'preset 4'),
            },
        },
        {},
        {
        },
    ),
}
