# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/findings.py from spec/findings.toml.
"""The rules that find what is worth a look."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule; spec/findings.toml says what each field is."""

    name: str
    title: str
    show: str
    text: str
    advice: str
    reason: str
    misses: str
    thresholds: dict[str, float]
    evidence: tuple[tuple[str, str, str], ...]
    sql: str


COMMON = """\
WITH outside_mpi AS (
       SELECT *, MAX(app_ns - mpi_ns, 0) AS outside FROM rank),
     whole AS (
       SELECT COUNT(*) AS ranks, MAX(app_ns) AS elapsed, SUM(app_ns) AS total, SUM(mpi_ns) AS mpi,
              MAX(outside) AS most, MIN(outside) AS least, AVG(outside) AS average,
              MAX(threads) <= 1 AND SUM(state <> 'finalized') = 0 AS is_plain
         FROM outside_mpi),
     run AS (SELECT * FROM whole WHERE elapsed >= 1000000000 AND ranks >= 2),"""
"""Begins each query."""

RULES = (
    Rule(
        name='late_ranks',
        title='Some ranks work longer than the others',
        show='ranks',
        text='{who} {late_ns:time} outside MPI, {others} only {other_ns:time}{averaged}{place}[ at {site}][; the difference arises in region {work_region}]',
        advice='Give these ranks less work, or split their work; look at what they do between their MPI calls.',
        reason='Below 10 % of the run, a perfect balance would hardly be noticed. A call is named as the place where the others wait only if a late rank and another one use its communicator, and if it explains half of the difference; a code region under the same condition.',
        misses='Programs with several threads per rank, and ranks that did not reach MPI_Finalize: their time outside MPI is not known. Ranks that are late in turns. More than half of the ranks: then the others are idle.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_part': 0.5},
        evidence=(
            ('late', 'late ranks', 'count'),
            ('late_ns', 'their time outside MPI, on average', 'time'),
            ('other_ns', 'time outside MPI of the others, on average', 'time'),
            ('waiting_ns', 'time that the others spend longer in this call', 'time'),
        ),
        sql=COMMON + """
     late AS (
       SELECT rank, outside FROM run CROSS JOIN outside_mpi
        WHERE is_plain AND most - average >= 0.1 * elapsed AND outside > (most + least) / 2),
     two AS (
       SELECT COUNT(*) AS late, AVG(outside) AS late_ns, MIN(rank) AS first FROM late),
     both AS (
       SELECT run.*, late, late_ns, first, ranks - late AS others,
              (average * ranks - late_ns * late) / (ranks - late) AS other_ns
         FROM two CROSS JOIN run WHERE late > 0 AND 2 * late <= ranks),
     -- communicators that a late rank and another one use
     mixed AS (
       SELECT key.comm FROM both CROSS JOIN key CROSS JOIN cell WHERE cell.key = key.id
        GROUP BY key.comm
       HAVING MAX(cell.rank IN (SELECT rank FROM late)) = 1 AND MIN(cell.rank IN (SELECT rank FROM late)) = 0),
     place AS (
       SELECT key.op, comm.family, key.callsite,
              SUM(cell.time_ns * (CASE WHEN cell.rank IN (SELECT rank FROM late) THEN -1.0 / late ELSE 1.0 / others END))
                AS waiting
         FROM both CROSS JOIN mixed CROSS JOIN key CROSS JOIN cell CROSS JOIN comm
        WHERE key.comm = mixed.comm AND cell.key = key.id AND comm.id = key.comm
        GROUP BY 1, 2, 3 ORDER BY waiting DESC LIMIT 1),
     named AS (
       SELECT op.name AS op, family.name AS communicator, place.callsite, waiting
         FROM both CROSS JOIN place JOIN op ON op.id = place.op JOIN family ON family.family = place.family
        WHERE waiting >= 0.5 * (late_ns - other_ns)),
     per_region AS (
       SELECT region_useful.region, late_ns - other_ns AS difference,
              SUM(useful_ns * (CASE WHEN rank IN (SELECT rank FROM late) THEN 1.0 / late ELSE -1.0 / others END)) AS more
         FROM both CROSS JOIN region_useful GROUP BY region_useful.region),
     work AS (
       SELECT region_path.path AS work_region FROM per_region JOIN region_path ON region_path.region = per_region.region
        WHERE more >= 0.5 * difference ORDER BY more DESC LIMIT 1)
SELECT (most - average) / elapsed AS share, late, late_ns, other_ns, waiting AS waiting_ns, op, communicator, work_region,
       NULLIF(named.callsite, 0) AS site,
       CASE WHEN late = 1 THEN 'rank ' || first || ' spends'
            -- all ranks of one node, and no other rank
            WHEN (SELECT COUNT(DISTINCT node) = 1 FROM rank WHERE rank IN (SELECT rank FROM late))
             AND late = (SELECT COUNT(*) FROM rank WHERE node = (SELECT node FROM rank WHERE rank = first))
            THEN 'the ' || late || ' ranks of ' || (SELECT node FROM rank WHERE rank = first) || ' spend'
                 ELSE CASE WHEN late <= 4 THEN 'ranks ' || (SELECT GROUP_CONCAT(rank, ', ') FROM (SELECT rank FROM late ORDER BY rank))
                           ELSE late || ' ranks, such as rank ' || first || ',' END || ' spend' END AS who,
       CASE others WHEN 1 THEN 'rank ' || (SELECT MIN(rank) FROM rank WHERE rank NOT IN (SELECT rank FROM late))
                   ELSE 'the others' END AS others,
       CASE WHEN others = 1 AND late = 1 THEN '' ELSE ' on average' END AS averaged,
       COALESCE('; ' || CASE others WHEN 1 THEN 'rank ' || (SELECT MIN(rank) FROM rank WHERE rank NOT IN (SELECT rank FROM late))
                                           || ' waits for '
                                    ELSE 'the others wait for ' END
                || CASE late WHEN 1 THEN 'rank ' || first ELSE 'them' END || ' in ' || op
                || CASE communicator WHEN 'W0.0' THEN '' ELSE ' of ' || communicator END, '') AS place
  FROM both LEFT JOIN named LEFT JOIN work""",
    ),
    Rule(
        name='serialised_ranks',
        title='Ranks work one after another along a chain',
        show='ranks',
        text='ranks {first} to {last} work one after another: time in {op} changes by {step_ns:time} from rank to rank[ at {site}]; on average {busy} of {ranks} ranks work at a time',
        advice='Split the work of a rank into parts and pass each on when it is done, so that the next rank can begin; or choose an algorithm without the chain.',
        reason='If each rank waits for the work of all ranks before it, the time in the receive changes from rank to rank by the time outside MPI of one rank; a half to one and a half of it is accepted. A pipeline that is full has steps much smaller than that. At least half of the ranks must be idle on average, the straight line must explain 90 % of the variance, and the steps together half of the time in MPI: otherwise the ranks wait for something else most of the time.',
        misses='Programs with several threads per rank, and ranks that did not reach MPI_Finalize. Chains in another order than that of world ranks. Rings that turn many times: there all ranks wait equally long.',
        thresholds={'shortest_run_ns': 1000000000, 'least_fit': 0.9, 'least_step': 0.5, 'most_step': 1.5, 'least_part': 0.5},
        evidence=(
            ('members', 'ranks with this call', 'count'),
            ('step_ns', 'change of the time in it from rank to rank', 'time'),
            ('outside_ns', 'time outside MPI per rank', 'time'),
            ('fit', 'variance that a straight line explains', 'share'),
        ),
        sql=COMMON + """
     place AS (
       SELECT key.op, key.comm, key.callsite, cell.rank, SUM(cell.time_ns) AS t
         FROM run CROSS JOIN op CROSS JOIN key CROSS JOIN cell
        WHERE is_plain AND ranks >= 3 AND 2 * average <= elapsed
          AND op.name IN ('MPI_Recv', 'MPI_Mrecv', 'MPI_Probe', 'MPI_Mprobe', 'MPI_Wait', 'MPI_Waitall', 'MPI_Waitany',
                          'MPI_Waitsome', 'MPI_Sendrecv', 'MPI_Sendrecv_replace')
          AND key.op = op.id AND cell.key = key.id
        GROUP BY 1, 2, 3, 4),
     sums AS (
       SELECT op, comm, callsite, COUNT(*) AS members, MIN(rank) AS first, MAX(rank) AS last,
              AVG(rank) AS x, AVG(t) AS y, AVG(1.0 * rank * rank) AS xx, AVG(1.0 * t * t) AS yy, AVG(1.0 * rank * t) AS xy
         FROM place GROUP BY op, comm, callsite HAVING COUNT(*) >= 3),
     line AS (
       SELECT op, comm, callsite, members, xy >= x * y AS rises,
              CASE WHEN xy >= x * y THEN first ELSE last END AS first, CASE WHEN xy >= x * y THEN last ELSE first END AS last,
              ABS(xy - x * y) / (xx - x * x) * (last - first) / (members - 1) AS step_ns,
              y - ABS(xy - x * y) / (xx - x * x) * CASE WHEN xy >= x * y THEN x - first ELSE last - x END AS least_ns,
              (xy - x * y) * (xy - x * y) / ((xx - x * x) * (yy - y * y)) AS fit
         FROM sums WHERE xx > x * x AND yy > y * y),
     -- the rank before the first one that waits: it begins the chain, and waits for nobody
     chain AS (
       SELECT line.*, before.rank AS beginner
         FROM line LEFT JOIN rank AS before
              ON before.rank = first + CASE WHEN rises THEN -1 ELSE 1 END
             AND ABS(last - first) = members - 1 AND 2 * least_ns >= step_ns)
SELECT 1 - average / elapsed AS share, members, step_ns, fit, average AS outside_ns, ranks,
       ROUND(average * ranks / elapsed, 1) AS busy, op.name AS op, NULLIF(chain.callsite, 0) AS site,
       COALESCE(beginner, first) AS first, last
  FROM run CROSS JOIN chain JOIN op ON op.id = chain.op
 WHERE fit >= 0.9 AND step_ns BETWEEN 0.5 * average AND 1.5 * average
   AND step_ns * members >= 0.5 * (elapsed - average)
 ORDER BY members DESC, fit DESC LIMIT 1""",
    ),
    Rule(
        name='uneven_communicator',
        title='In one communicator the same member arrives last',
        show='ranks',
        text='{last} arrives last in {op} on {communicator}[ at {site}]: the other members spend {other_ns:time} in it on average, {last} only {last_ns:time}',
        advice='Look at what this member does before the call, in other communicators too.',
        reason='Nobody leaves these collectives before the last member has arrived, so the member with the least time in them came last. If it came as early as the one with the second least time, the difference between the two would be saved for each other member. This must be at least half of its difference to the average of the others; otherwise several members come late, or one comes early. Below 10 % of the run it is not worth the search. A member that is last at one call site, and early at another, is named with its call site. With fewer than 10 calls per member it may have come last once.',
        misses='Broadcasts, reductions to a root, gathers and scatters, where the least time says nothing about who was late. Several late members, and members that are late in turns. A rank that also works longest of all has the finding late_ranks instead.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_calls': 10, 'least_part': 0.5},
        evidence=(
            ('members', 'members of the communicator', 'count'),
            ('last_ns', 'time in the call of the member that arrives last', 'time'),
            ('second_ns', 'the second least', 'time'),
            ('other_ns', 'time in the call of the others, on average', 'time'),
        ),
        sql=COMMON + """
     per_site AS (
       SELECT key.comm, key.op, key.callsite, cell.rank, SUM(cell.time_ns) AS t, SUM(cell.calls) AS calls
         FROM run CROSS JOIN op CROSS JOIN key CROSS JOIN cell
        WHERE is_plain AND mpi >= 0.1 * total
          AND op.name IN ('MPI_Barrier', 'MPI_Allreduce', 'MPI_Allgather', 'MPI_Alltoall', 'MPI_Reduce_scatter_block')
          AND key.op = op.id AND cell.key = key.id
        GROUP BY 1, 2, 3, 4),
     -- at one call site, and at all of them
     per_rank AS (
       SELECT * FROM per_site UNION ALL SELECT comm, op, -1, rank, SUM(t), SUM(calls) FROM per_site GROUP BY 1, 2, 4),
     per_comm AS (
       SELECT comm, op, callsite, rank AS last, MIN(t) AS last_ns, SUM(t) AS t, COUNT(*) AS callers
         FROM per_rank GROUP BY comm, op, callsite HAVING COUNT(*) >= 2 AND SUM(calls) >= 10 * COUNT(*)),
     apart AS (
       SELECT per_comm.*, MIN(per_rank.t) AS second_ns, 1.0 * (per_comm.t - last_ns) / (callers - 1) AS other_ns
         FROM run CROSS JOIN per_comm CROSS JOIN per_rank
        WHERE per_comm.t - last_ns * callers >= 0.1 * elapsed * callers
          AND per_rank.comm = per_comm.comm AND per_rank.op = per_comm.op
          AND per_rank.callsite = per_comm.callsite AND per_rank.rank <> last
        GROUP BY per_comm.comm, per_comm.op, per_comm.callsite)
SELECT 1.0 * (second_ns - last_ns) * (callers - 1) / (ranks * elapsed) AS share, last_ns, second_ns, other_ns,
       callers AS members, op.name AS op,
       CASE comm.name WHEN 'W0.0' THEN 'MPI_COMM_WORLD' ELSE comm.name END AS communicator,
       'rank ' || last AS last, NULLIF(MAX(apart.callsite, 0), 0) AS site
  FROM run CROSS JOIN apart JOIN comm ON comm.id = apart.comm JOIN op ON op.id = apart.op JOIN rank ON rank.rank = apart.last
 WHERE comm.kind = 'intra' AND comm.size = callers AND second_ns - last_ns >= 0.1 * elapsed
   AND second_ns - last_ns >= 0.5 * (other_ns - last_ns)
   AND MAX(rank.app_ns - rank.mpi_ns, 0) - average < 0.1 * elapsed
 ORDER BY share DESC, site IS NULL LIMIT 1""",
    ),
    Rule(
        name='tiny_messages',
        title='Tiny messages in great number',
        show='sizes',
        text='{calls:count} calls of {op} with {size}[ on {communicator}][ at {site}], {each_ns:time} each, take {share:share} of the time',
        advice='Aggregate them: send several values in one message, or communicate less often.',
        reason='A message below 128 bytes costs as much as one of some hundred bytes, so fewer and larger ones save nearly all of the time. Below 10,000 calls per rank, or 10 % of the run, there is little to save. In a collective only the time of its fastest rank counts, because the others may have waited; beyond 1 ms it is slow for another reason. Other calls that take more than 100 µs wait for their peer.',
        misses='v and w collectives, whose blocks differ in size. Calls spread over many call sites. Nonblocking messages whose time is in the call that completes them.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_calls': 10000, 'longest_call_ns': 1000000, 'longest_message_ns': 100000, 'largest_bin': 7},
        evidence=(
            ('calls', 'calls of all ranks', 'count'),
            ('per_rank', 'calls per rank', 'count'),
            ('each_ns', 'time per call', 'time'),
        ),
        sql=COMMON + """
     per_key AS (
       SELECT key.op, key.comm, key.callsite, key.bin, SUM(cell.calls) AS calls, COUNT(*) AS callers,
              CASE op.class WHEN 'collective' THEN MIN(cell.time_ns) * COUNT(*) ELSE SUM(cell.time_ns) END AS busy_ns
         FROM run CROSS JOIN key CROSS JOIN op CROSS JOIN cell
        WHERE mpi >= 0.1 * total AND op.id = key.op AND op.class IN ('p2p', 'collective', 'neighbor', 'rma')
          AND key.bin BETWEEN 1 AND 7 AND cell.key = key.id
        GROUP BY key.id),
     per_family AS (
       SELECT op, family, per_key.callsite, bin, SUM(calls) AS calls, MAX(calls / callers) AS per_rank, SUM(busy_ns) AS busy_ns
         FROM per_key JOIN comm ON comm.id = per_key.comm GROUP BY 1, 2, 3, 4)
SELECT 1.0 * busy_ns / total AS share, calls, per_rank, busy_ns / calls AS each_ns, op.name AS op,
       CASE WHEN family.name <> 'W0.0' THEN family.name END AS communicator, NULLIF(per_family.callsite, 0) AS site,
       CASE WHEN bin = 0 THEN '0 B' WHEN bin = 1 THEN '1 B'
            WHEN bin <= 10 THEN (1 << (bin - 1)) || '-' || ((1 << bin) - 1) || ' B'
            WHEN bin < 20 THEN (1 << (bin - 11)) || '-' || (1 << (bin - 10)) || ' KiB'
            WHEN bin = 20 THEN '512 KiB-1 MiB'
            WHEN bin < 30 THEN (1 << (bin - 21)) || '-' || (1 << (bin - 20)) || ' MiB'
            WHEN bin = 30 THEN '512 MiB-1 GiB'
            ELSE (1 << (bin - 31)) || '-' || (1 << (bin - 30)) || ' GiB' END AS size
  FROM run CROSS JOIN per_family JOIN op ON op.id = per_family.op JOIN family ON family.family = per_family.family
 WHERE per_rank >= 10000 AND busy_ns >= 0.1 * total AND busy_ns <= calls * CASE op.class WHEN 'collective' THEN 1000000 ELSE 100000 END
 ORDER BY share DESC LIMIT 3""",
    ),
    Rule(
        name='communicators_in_a_loop',
        title='Communicators made in a loop',
        show='sizes',
        text='{who} {op} {up_to}{per_rank:count} times{each}[ at {site}], which takes {share:share} of the time',
        advice='Make the communicator once before the loop, and reuse it.',
        reason='Programs that set up their communicators once make some tens per line. A thousand from one line is a loop, and some MPI libraries run out of them near 2,000 if they are not freed. From a hundred on, 2 % of the time is worth a look.',
        misses='Communicators from different lines.',
        thresholds={'shortest_run_ns': 1000000000, 'least_calls': 100, 'least_share': 0.02, 'many_calls': 1000},
        evidence=(
            ('callers', 'ranks that call it there', 'count'),
            ('per_rank', 'calls of the rank with most', 'count'),
            ('time_ns', 'time in them of each of these ranks, on average', 'time'),
        ),
        sql=COMMON + """
     per_rank AS (
       SELECT key.op, key.callsite, cell.rank, SUM(cell.calls) AS calls, SUM(cell.time_ns) AS t
         FROM run CROSS JOIN op CROSS JOIN key CROSS JOIN cell
        WHERE op.name IN ('MPI_Comm_dup', 'MPI_Comm_dup_with_info', 'MPI_Comm_idup', 'MPI_Comm_split', 'MPI_Comm_split_type',
                          'MPI_Comm_create', 'MPI_Comm_create_group', 'MPI_Cart_create', 'MPI_Cart_sub', 'MPI_Graph_create',
                          'MPI_Dist_graph_create', 'MPI_Dist_graph_create_adjacent', 'MPI_Intercomm_create',
                          'MPI_Intercomm_merge')
          AND key.op = op.id AND cell.key = key.id
        GROUP BY 1, 2, 3),
     per_site AS (
       SELECT op, callsite, rank, MAX(calls) AS per_rank, MIN(calls) < MAX(calls) AS differs, COUNT(*) AS callers, SUM(t) AS t
         FROM per_rank GROUP BY 1, 2)
SELECT 1.0 * t / total AS share, per_rank, callers, t / callers AS time_ns, op.name AS op, NULLIF(per_site.callsite, 0) AS site,
       CASE WHEN callers = 1 THEN 'rank ' || rank || ' calls' WHEN callers < ranks THEN callers || ' ranks call'
            ELSE 'all ranks call' END AS who,
       CASE WHEN differs THEN 'up to ' ELSE '' END AS up_to, CASE callers WHEN 1 THEN '' ELSE ' each' END AS each
  FROM run CROSS JOIN per_site JOIN op ON op.id = per_site.op
 WHERE per_rank >= 1000 OR (per_rank >= 100 AND t >= 0.02 * total)
 ORDER BY share DESC LIMIT 1""",
    ),
    Rule(
        name='polling',
        title='A rank polls',
        show='sizes',
        text='rank {rank} calls {op} {calls:count} times[ at {site}], which takes {own_share:share} of its time',
        advice='Wait with MPI_Wait, MPI_Waitany or MPI_Probe where there is nothing else to do; otherwise work longer between two tests.',
        reason='A test costs about a microsecond, so a rank that tests between pieces of work spends little time in it. A tenth of the time in 10,000 tests or more means that it had nothing to do. Fewer and longer tests move large messages, which is work.',
        misses='Polling spread over several call sites, and tests below 10 % of the time of their rank.',
        thresholds={'shortest_run_ns': 1000000000, 'least_calls': 10000, 'least_share': 0.1},
        evidence=(
            ('pollers', 'ranks that poll there', 'count'),
            ('calls', 'calls of this rank', 'count'),
            ('time_ns', 'time in them', 'time'),
        ),
        sql=COMMON + """
     per_rank AS (
       SELECT key.op, key.callsite, cell.rank, SUM(cell.calls) AS calls, SUM(cell.time_ns) AS t
         FROM run CROSS JOIN op CROSS JOIN key CROSS JOIN cell
        WHERE op.name IN ('MPI_Iprobe', 'MPI_Improbe', 'MPI_Test', 'MPI_Testall', 'MPI_Testany', 'MPI_Testsome',
                          'MPI_Request_get_status')
          AND key.op = op.id AND cell.key = key.id
        GROUP BY 1, 2, 3)
SELECT MIN(1.0 * SUM(t) / total, 1.0) AS share, per_rank.rank, MAX(per_rank.calls) AS calls,
       MIN(1.0 * t / app_ns, 1.0) AS own_share, t AS time_ns, COUNT(*) AS pollers, op.name AS op, NULLIF(per_rank.callsite, 0) AS site
  FROM run CROSS JOIN per_rank JOIN op ON op.id = per_rank.op JOIN rank ON rank.rank = per_rank.rank
 WHERE per_rank.calls >= 10000 AND t >= 0.1 * app_ns
 GROUP BY op.id, per_rank.callsite ORDER BY share DESC LIMIT 1""",
    ),
    Rule(
        name='slow_communicator',
        title='One communicator is slower than its siblings',
        show='communicators',
        text='{communicator} takes {each_ns:time} per call of {op} with {size}, the other {others:count} communicators of {family} take {other_ns:time}',
        advice='Look where its ranks are placed (commlens ranks), and what else uses their nodes and links.',
        reason='Communicators of one family do the same, so a factor of 2 has a cause. Even its fastest member must be slower by that factor: where one member comes late, the last one to arrive is as fast as elsewhere. Below 10 % of the run per member the difference is not worth the search. With fewer than 10 calls per member chance decides.',
        misses='Families of fewer than three communicators, communicators that share a row, and v and w collectives, whose blocks differ in size. Communicators of one family that are given different amounts of work.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_factor': 2.0, 'least_calls': 10, 'fewest': 3},
        evidence=(
            ('each_ns', 'time per call', 'time'),
            ('fastest_ns', 'time per call of its fastest member', 'time'),
            ('other_ns', 'time per call of its siblings', 'time'),
            ('callers', 'members of the communicator', 'count'),
        ),
        sql=COMMON + """
     per_member AS (
       SELECT comm.family, key.comm, key.op, key.bin, cell.rank, SUM(cell.time_ns) AS t, SUM(cell.calls) AS calls
         FROM run CROSS JOIN key CROSS JOIN comm CROSS JOIN op CROSS JOIN cell
        WHERE mpi >= 0.1 * elapsed AND comm.id = key.comm AND comm.communicators = 1 AND key.bin >= 0
          AND comm.family IN (SELECT family FROM comm WHERE kind = 'intra' GROUP BY family HAVING COUNT(*) >= 3)
          AND op.id = key.op AND op.class = 'collective' AND cell.key = key.id
        GROUP BY key.comm, key.op, key.bin, cell.rank),
     per_comm AS (
       SELECT family, comm, op, bin, COUNT(*) AS callers, SUM(t) AS t, SUM(calls) AS calls, MIN(1.0 * t / calls) AS fastest_ns
         FROM per_member GROUP BY comm, op, bin),
     per_family AS (
       SELECT family, op, bin, COUNT(*) AS comms, SUM(t) AS t, SUM(calls) AS calls
         FROM per_comm GROUP BY family, op, bin HAVING COUNT(*) >= 3),
     pair AS (
       SELECT per_comm.*, comms - 1 AS others, 1.0 * per_comm.t / per_comm.calls AS each_ns,
              1.0 * (per_family.t - per_comm.t) / (per_family.calls - per_comm.calls) AS other_ns
         FROM per_comm JOIN per_family ON per_family.family = per_comm.family AND per_family.op = per_comm.op
                                      AND per_family.bin = per_comm.bin)
SELECT (each_ns - other_ns) * pair.calls / (ranks * elapsed) AS share, each_ns, other_ns, fastest_ns, callers, others,
       comm.name AS communicator, family.name AS family, op.name AS op, NULL AS site,
       CASE WHEN bin = 0 THEN '0 B' WHEN bin = 1 THEN '1 B'
            WHEN bin <= 10 THEN (1 << (bin - 1)) || '-' || ((1 << bin) - 1) || ' B'
            WHEN bin < 20 THEN (1 << (bin - 11)) || '-' || (1 << (bin - 10)) || ' KiB'
            WHEN bin = 20 THEN '512 KiB-1 MiB'
            WHEN bin < 30 THEN (1 << (bin - 21)) || '-' || (1 << (bin - 20)) || ' MiB'
            WHEN bin = 30 THEN '512 MiB-1 GiB'
            ELSE (1 << (bin - 31)) || '-' || (1 << (bin - 30)) || ' GiB' END AS size
  FROM run CROSS JOIN pair JOIN comm ON comm.id = pair.comm JOIN op ON op.id = pair.op
                           JOIN family ON family.family = pair.family
 WHERE fastest_ns >= 2.0 * other_ns AND pair.calls >= 10 * callers
   AND (each_ns - other_ns) * pair.calls >= 0.1 * elapsed * callers
 ORDER BY share DESC LIMIT 1""",
    ),
    Rule(
        name='rendezvous_step',
        title='Sends become slow from a message size on',
        show='sizes',
        text='{op} takes {before_ns:time} with {small}, and {after_ns:time} with messages twice as large: they may wait for their receive',
        advice='Post the receive before the send; or raise the size up to which the MPI library sends at once: btl_*_eager_limit or UCX_RNDV_THRESH for Open MPI, MPIR_CVAR_CH4_* for MPICH, I_MPI_EAGER_THRESHOLD for Intel MPI.',
        reason='Twice the bytes take at most twice the time. A factor of 4 between neighbouring sizes is a change of protocol: an eager send returns when the message is copied, a rendezvous waits for the receive. Below 10 % of the time, or 1,000 calls of each size, there is little to gain.',
        misses='Programs that use only one of the two sizes; non-blocking sends, which wait elsewhere. If small and large messages have different receivers, these may make the difference.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_factor': 4.0, 'least_calls': 1000},
        evidence=(
            ('before_ns', 'time per call with the smaller messages', 'time'),
            ('after_ns', 'time per call with messages twice as large', 'time'),
            ('small_calls', 'calls with the smaller messages', 'count'),
            ('calls', 'calls with all larger messages', 'count'),
        ),
        sql=COMMON + """
     per_bin AS (
       SELECT key.op, key.bin, SUM(cell.time_ns) AS t, SUM(cell.calls) AS calls
         FROM run CROSS JOIN op CROSS JOIN key CROSS JOIN cell
        WHERE mpi >= 0.1 * total AND op.name = 'MPI_Send' AND key.op = op.id AND key.bin >= 1 AND cell.key = key.id
        GROUP BY 1, 2),
     step AS (
       SELECT small.op, small.bin, 1.0 * small.t / small.calls AS before_ns, 1.0 * large.t / large.calls AS after_ns,
              small.calls AS small_calls
         FROM per_bin AS small JOIN per_bin AS large ON large.op = small.op AND large.bin = small.bin + 1
        WHERE small.calls >= 1000 AND large.calls >= 1000),
     beyond AS (
       SELECT step.bin, SUM(per_bin.t - per_bin.calls * before_ns * (1 << (per_bin.bin - step.bin))) AS extra_ns,
              SUM(per_bin.calls) AS calls
         FROM step JOIN per_bin ON per_bin.op = step.op AND per_bin.bin > step.bin
        WHERE after_ns >= 4.0 * before_ns GROUP BY step.bin)
SELECT extra_ns / total AS share, before_ns, after_ns, small_calls, beyond.calls, op.name AS op, NULL AS site,
       CASE WHEN step.bin = 0 THEN '0 B' WHEN step.bin = 1 THEN '1 B'
            WHEN step.bin <= 10 THEN (1 << (step.bin - 1)) || '-' || ((1 << step.bin) - 1) || ' B'
            WHEN step.bin < 20 THEN (1 << (step.bin - 11)) || '-' || (1 << (step.bin - 10)) || ' KiB'
            WHEN step.bin = 20 THEN '512 KiB-1 MiB'
            WHEN step.bin < 30 THEN (1 << (step.bin - 21)) || '-' || (1 << (step.bin - 20)) || ' MiB'
            WHEN step.bin = 30 THEN '512 MiB-1 GiB'
            ELSE (1 << (step.bin - 31)) || '-' || (1 << (step.bin - 30)) || ' GiB' END AS small
  FROM run CROSS JOIN beyond JOIN step ON step.bin = beyond.bin JOIN op ON op.id = step.op
 WHERE extra_ns >= 0.1 * total
 ORDER BY share DESC LIMIT 1""",
    ),
    Rule(
        name='barriers',
        title='Ranks wait for each other in barriers, in turns',
        show='sizes',
        text='ranks spend {each_ns:time} on average in {calls:count} barriers[ on {communicator}][ at {site}]; no rank is always the last, so they wait in turns',
        advice='Remove barriers that the program does not need, because messages and collectives order the ranks themselves. Where a barrier is needed, look for work whose duration varies from step to step (commlens timeline).',
        reason='A barrier moves no data, so its time is waiting, but for some microseconds; below 1 ms it may be slow itself. The rank with the least time in it spends at least half of the average: otherwise it is the last most of the time, and late_ranks or uneven_communicator name it. Below 10 % of the time, or 10 calls, the barriers are not worth a change.',
        misses='Waiting in other collectives. Barriers spread over many call sites.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_calls': 10, 'least_part': 0.5, 'shortest_call_ns': 1000000},
        evidence=(
            ('callers', 'ranks with these barriers', 'count'),
            ('calls', 'barriers per rank', 'count'),
            ('each_ns', 'time in them per rank', 'time'),
            ('least_ns', 'time in them of the rank with the least', 'time'),
        ),
        sql=COMMON + """
     per_rank AS (
       SELECT key.comm, key.callsite, cell.rank, SUM(cell.time_ns) AS t, SUM(cell.calls) AS calls
         FROM run CROSS JOIN op CROSS JOIN key CROSS JOIN cell
        WHERE mpi >= 0.1 * total AND op.name = 'MPI_Barrier' AND key.op = op.id AND cell.key = key.id
        GROUP BY 1, 2, 3),
     per_place AS (
       SELECT comm, callsite, COUNT(*) AS callers, SUM(t) AS t, MIN(t) AS least_ns, MAX(calls) AS calls
         FROM per_rank GROUP BY 1, 2)
SELECT 1.0 * t / total AS share, t / callers AS each_ns, least_ns, callers, calls, 'MPI_Barrier' AS op,
       CASE WHEN family.name <> 'W0.0' THEN family.name END AS communicator, NULLIF(per_place.callsite, 0) AS site
  FROM run CROSS JOIN per_place JOIN comm ON comm.id = per_place.comm JOIN family ON family.family = comm.family
 WHERE callers >= 2 AND t >= 0.1 * total AND least_ns >= 0.5 * t / callers AND calls >= 10 AND each_ns >= 1000000 * calls
 ORDER BY share DESC LIMIT 1""",
    ),
    Rule(
        name='small_all_to_all',
        title='All-to-all of small blocks among many ranks',
        show='sizes',
        text='{op} among {size:count} ranks[ on {communicator}][ at {site}], with {block:count} B for each of them, takes {share:share} of the time',
        advice='Exchange among fewer ranks: a decomposition in two dimensions makes communicators of the square root of their number. Or combine several exchanges in one.',
        reason='The number of messages of a call grows with the square of the number of ranks; blocks of up to 1 KiB take as long as empty ones. From 32 ranks on this dominates. Only the time of the fastest rank counts, because the others may have waited. Below 10 % of the time there is little to gain.',
        misses='All-to-all exchanges made of single messages. MPI_Alltoallw. Communicators with fewer than 32 ranks. Communicators in which such a call had not returned when the job was killed: its time is that of a hang.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'fewest_ranks': 32, 'largest_block': 1024},
        evidence=(
            ('size', 'members of the communicator', 'count'),
            ('per_rank', 'calls per rank', 'count'),
            ('block', 'bytes for each member, on average', 'count'),
            ('least_ns', 'time in the calls of the fastest rank', 'time'),
        ),
        sql=COMMON + """
     per_place AS (
       SELECT key.op, key.comm, key.callsite, comm.size, comm.family, SUM(cell.time_ns) AS t, SUM(cell.calls) AS calls,
              SUM(cell.bytes_sent) AS bytes, cell.rank
         FROM run CROSS JOIN op CROSS JOIN key CROSS JOIN comm CROSS JOIN cell
        WHERE mpi >= 0.1 * total AND op.name IN ('MPI_Alltoall', 'MPI_Alltoallv', 'MPI_Ialltoall', 'MPI_Ialltoallv')
          AND key.op = op.id AND comm.id = key.comm AND comm.kind = 'intra' AND comm.size >= 32
          AND cell.key = key.id
        GROUP BY key.op, key.comm, key.callsite, cell.rank),
     sums AS (
       SELECT op, comm, callsite, size, family, MIN(t) AS least_ns, COUNT(*) AS callers, SUM(calls) AS calls, SUM(bytes) AS bytes
         FROM per_place GROUP BY op, comm, callsite)
SELECT 1.0 * least_ns * callers / total AS share, least_ns, calls / callers AS per_rank, size,
       bytes / (calls * size) AS block, op.name AS op, CASE WHEN family.name <> 'W0.0' THEN family.name END AS communicator,
       NULLIF(sums.callsite, 0) AS site
  FROM run CROSS JOIN sums JOIN op ON op.id = sums.op JOIN family ON family.family = sums.family
 WHERE least_ns * callers >= 0.1 * total AND calls > 0 AND bytes <= calls * size * 1024
   -- the time of a call that had not returned is not that of an exchange
   AND NOT EXISTS (SELECT 1 FROM position WHERE inside = 1 AND position.op = sums.op AND position.comm = sums.comm)
 ORDER BY share DESC LIMIT 1""",
    ),
    Rule(
        name='uneven_region',
        title='In one code region some ranks work longer',
        show='regions',
        text='in region {region} {who} {late_ns:time} outside MPI, the others {other_ns:time}',
        advice='Divide the work of this region more evenly. The ranks may be equal over the whole run, because those that do more here do less elsewhere; they wait for each other if they communicate in between.',
        reason='Below 10 % of the run, a perfect balance would hardly be noticed. The average rank must spend at least as much time in MPI as the balance would save: otherwise nobody waits for the late ones.',
        misses='Programs with several threads per rank, and ranks that did not reach MPI_Finalize. More than half of the ranks. A rank that also works longest over the whole run has the finding late_ranks, which names the region.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1},
        evidence=(
            ('late', 'late ranks', 'count'),
            ('late_ns', 'their time outside MPI in the region, on average', 'time'),
            ('other_ns', 'time outside MPI in the region of the others, on average', 'time'),
        ),
        sql=COMMON + """
     per_region AS (
       SELECT region_useful.region, MAX(useful_ns) AS most, 1.0 * SUM(useful_ns) / ranks AS average,
              CASE WHEN COUNT(*) < ranks THEN 0 ELSE MIN(useful_ns) END AS least, elapsed, ranks, mpi
         FROM run CROSS JOIN region_useful
        WHERE is_plain AND run.most - run.average < 0.1 * elapsed AND mpi >= 0.1 * elapsed * ranks
        GROUP BY region_useful.region),
     uneven AS (
       SELECT * FROM per_region
        WHERE per_region.most - per_region.average >= 0.1 * elapsed
          AND (per_region.most - per_region.average) * ranks <= mpi),
     late AS (
       SELECT uneven.region, uneven.most, uneven.average, elapsed, ranks, COUNT(*) AS late,
              AVG(useful_ns) AS late_ns, MIN(rank) AS first
         FROM uneven JOIN region_useful ON region_useful.region = uneven.region
        WHERE useful_ns > (uneven.most + uneven.least) / 2 GROUP BY uneven.region)
SELECT (most - average) / elapsed AS share, late, late_ns, (average * ranks - late_ns * late) / (ranks - late) AS other_ns,
       region_path.path AS region, NULL AS site, NULL AS op,
       CASE late WHEN 1 THEN 'rank ' || first || ' spends' ELSE late || ' ranks, such as rank ' || first || ', spend' END AS who
  FROM late JOIN region_path ON region_path.region = late.region
 WHERE 2 * late <= ranks
 ORDER BY share DESC LIMIT 3""",
    ),
    Rule(
        name='growing_share',
        title='The time in MPI grows over the run',
        show='timeline',
        text='MPI takes {before:share} of the first quarter of the run and {after:share} of the last, and grows steadily',
        advice='Look for work that moves between ranks or grows on some of them, such as particles or refined cells: distribute it anew during the run, or more often. commlens timeline shows which calls grow.',
        reason='The run is divided into twelve parts of equal length. A straight line must explain 90 % of the variance of their shares, which a step from one phase to another does not, and the last quarter must have 20 % of the time more than the first. From then on a run of twice the length loses more than half as much again.',
        misses='Programs with several threads per rank, ranks that did not reach MPI_Finalize, and runs of fewer than 24 slices of time. Shares that grow only at the end of the run, or in bursts.',
        thresholds={'shortest_run_ns': 1000000000, 'least_fit': 0.9, 'least_growth': 0.2, 'fewest_slots': 24},
        evidence=(
            ('before', 'share of MPI in the first quarter', 'share'),
            ('average', 'share of MPI on average', 'share'),
            ('after', 'share of MPI in the last quarter', 'share'),
            ('fit', 'variance that a straight line explains', 'share'),
        ),
        sql=COMMON + """
     slots AS (
       SELECT CAST(elapsed / slice_ns AS INTEGER) AS slots, slice_ns, ranks, total, mpi
         FROM run CROSS JOIN (SELECT CAST(value AS INTEGER) AS slice_ns FROM meta WHERE key = 'slice_ns')
        WHERE is_plain AND slice_ns > 0),
     -- slots that are left over are the first ones, which include the start of the program
     part AS (
       SELECT (slot - slots % 12) / (slots / 12) AS part, SUM(time_ns) AS t
         FROM slots CROSS JOIN slice
        WHERE slots >= 24 AND slot BETWEEN slots % 12 AND slots - 1 GROUP BY 1),
     share AS (
       SELECT part, t * 1.0 / (ranks * (slots / 12) * slice_ns) AS y FROM part CROSS JOIN slots),
     sums AS (
       SELECT AVG(part) AS x, AVG(y) AS y, AVG(1.0 * part * part) AS xx, AVG(y * y) AS yy, AVG(part * y) AS xy,
              SUM(CASE WHEN part < 3 THEN y END) / 3 AS before, SUM(CASE WHEN part > 8 THEN y END) / 3 AS after
         FROM share GROUP BY NULL HAVING COUNT(*) = 12)
SELECT 1.0 * mpi / total - before AS share, before, after, y AS average,
       (xy - x * y) * (xy - x * y) / ((xx - x * x) * (yy - y * y)) AS fit, NULL AS site, NULL AS op
  FROM sums CROSS JOIN slots
 WHERE after - before >= 0.2 AND yy > y * y AND 1.0 * mpi / total > before
   AND (xy - x * y) * (xy - x * y) >= 0.9 * (xx - x * x) * (yy - y * y)""",
    ),
    Rule(
        name='one_rank_serves',
        title='One rank serves all others',
        show='peers',
        text='{part:share} of all messages go to or from rank {hub}, which is busy: the other ranks spend {each_ns:time} on average in {op}[ at {site}], rank {hub} {hub_ns:time}',
        advice='Let several ranks serve, each a part of the others; hand out larger pieces of work; or replace the exchange by a collective (MPI_Gather, MPI_Scatter, MPI_Reduce) or by a counter that all ranks fetch and add to (MPI_Fetch_and_op).',
        reason='Nine of ten messages have the rank at one end; among neighbours, or if all exchange with all, none of 8 or more ranks has more than a half. It is the bottleneck if it waits for messages at most half as long as the others. Below 10 % of the run there is little to gain.',
        misses='Runs without matrices (COMMLENS_MATRIX=off) or with fewer than 8 ranks. Several serving ranks. A rank that is served by collectives.',
        thresholds={'shortest_run_ns': 1000000000, 'fewest_ranks': 8, 'least_part': 0.9, 'least_share': 0.1, 'most_wait': 0.5},
        evidence=(
            ('part', 'messages that the rank sends or receives', 'share'),
            ('waiting_ns', 'time of each other rank in messages', 'time'),
            ('hub_ns', 'time of the rank in the same', 'time'),
        ),
        sql=COMMON + """
     per_rank AS (
       SELECT cell.rank, SUM(cell.time_ns) AS t
         FROM run CROSS JOIN op CROSS JOIN key CROSS JOIN cell
        WHERE ranks >= 8 AND mpi >= 0.1 * total AND op.class IN ('p2p', 'completion')
          AND key.op = op.id AND cell.key = key.id
        GROUP BY cell.rank),
     sent AS (
       SELECT rank, peer, SUM(messages) AS messages
         FROM run CROSS JOIN peer
        WHERE ranks >= 8 AND mpi >= 0.1 * total AND flow = (SELECT id FROM flow WHERE name = 'sent')
        GROUP BY 1, 2),
     hub AS (
       SELECT rank AS hub, 1.0 * SUM(messages) / (SELECT SUM(messages) FROM sent) AS part
         FROM (SELECT rank, messages FROM sent UNION ALL SELECT peer, messages FROM sent WHERE peer <> rank)
        GROUP BY rank ORDER BY part DESC LIMIT 1),
     others AS (
       SELECT hub, part, SUM(t) / (ranks - 1) AS waiting_ns, COALESCE((SELECT t FROM per_rank WHERE rank = hub), 0) AS hub_ns
         FROM run CROSS JOIN hub CROSS JOIN per_rank WHERE part >= 0.9 AND rank <> hub
        GROUP BY hub, part),
     place AS (
       SELECT key.op, key.callsite, SUM(cell.time_ns) / (ranks - 1) AS each_ns
         FROM run CROSS JOIN others CROSS JOIN op CROSS JOIN key CROSS JOIN cell
        WHERE op.class IN ('p2p', 'completion') AND key.op = op.id AND cell.key = key.id AND cell.rank <> hub
        GROUP BY key.op, key.callsite ORDER BY each_ns DESC LIMIT 1)
SELECT 1.0 * waiting_ns * (ranks - 1) / total AS share, hub, part, each_ns, waiting_ns, hub_ns, op.name AS op,
       NULLIF(place.callsite, 0) AS site
  FROM run CROSS JOIN others CROSS JOIN place JOIN op ON op.id = place.op
 WHERE waiting_ns * (ranks - 1) >= 0.1 * total AND hub_ns <= 0.5 * waiting_ns""",
    ),
    Rule(
        name='awaited_rank',
        title='In a collective with a root, the others wait for the same rank',
        show='waiting',
        text='{last} arrives last in {last_share:share} of the calls of {op} on {communicator}: the ranks that need it wait {each_ns:time} for it alone[, because it {cause}]',
        advice='commlens waits --ranks shows when each rank arrives. If the rank computes longer, move its work after the call or to other ranks; if it comes out of other MPI calls, look for whom it waits there.',
        reason='Samples tell who was last and for how long the others waited for it alone (table waiting); if it came as early as the one before it, this time would be saved. Below 10 % of the run it is not worth the search. With fewer than 10 samples it may have come last by chance; samples of different message sizes stand for different numbers of calls, which makes them worth less. Among two ranks each is last in half of the calls by chance, so more is required the fewer they are. The rank computes longer if its time outside MPI before a call exceeds that of the others by half of the time they wait for it. It comes late out of other MPI calls if it has less than this outside MPI at all, and exceeds the others by this in other calls. Otherwise nothing is said of the cause: it may compute before the call what the others compute after it.',
        misses='Runs with COMMLENS_WAITING=0, ranks on several machines, and collectives without samples. Barriers, allreduces, allgathers and alltoalls have the finding uneven_communicator. A rank that also works longest of all has the finding late_ranks instead.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_samples': 10, 'least_part': 0.5},
        evidence=(
            ('members', 'members of the communicator', 'count'),
            ('samples', 'sampled calls', 'count'),
            ('collectives', 'calls, each counted once for all members', 'count'),
            ('last_share', 'share of the sampled calls in which it was last', 'share'),
            ('each_ns', 'time for which others wait for it alone', 'time'),
        ),
        sql=COMMON + """
     -- each message size has its own samples: they are scaled to all calls before they are added
     per_rank AS (
       SELECT waiting.comm, waiting.op, rank, SUM(1.0 * last * collectives / sampled.samples) AS last,
              SUM(1.0 * waiting.late_ns * collectives / sampled.samples) AS late_ns,
              SUM(1.0 * outside_ns * collectives / sampled.samples) AS outside_ns,
              SUM(1.0 * (between_ns - outside_ns) * collectives / sampled.samples) AS inside_ns
         FROM run CROSS JOIN waiting
              JOIN sampled ON sampled.comm = waiting.comm AND sampled.op = waiting.op AND sampled.bin = waiting.bin
              JOIN op ON op.id = waiting.op
        WHERE mpi >= 0.1 * total AND op.class = 'collective'
          AND op.name NOT IN ('MPI_Scan', 'MPI_Exscan') GROUP BY 1, 2, 3),
     per_comm AS (
       SELECT comm, op, COUNT(*) AS members, SUM(outside_ns) AS outside_ns, SUM(inside_ns) AS inside_ns
         FROM per_rank GROUP BY 1, 2),
     counted AS (
       SELECT comm, op, SUM(samples) AS samples, SUM(collectives) AS collectives,
              SUM(1.0 * waiting_ns * collectives / samples) AS waiting_ns,
              -- as many samples of equal weight would be as uncertain
              1.0 * SUM(collectives) * SUM(collectives) / SUM(1.0 * collectives * collectives / samples) AS equal_samples
         FROM sampled WHERE samples > 0 GROUP BY 1, 2),
     awaited AS (
       SELECT comm, op, rank, per_comm.members, samples, collectives, last / collectives AS last_share,
              late_ns AS each_ns, waiting_ns AS all_ns,
              CASE WHEN per_rank.outside_ns - (per_comm.outside_ns - per_rank.outside_ns) / (members - 1) >= 0.5 * late_ns
                   THEN 'computes longer before it'
                   WHEN per_rank.outside_ns < 0.5 * late_ns
                    AND per_rank.inside_ns - (per_comm.inside_ns - per_rank.inside_ns) / (members - 1) > 0.5 * late_ns
                   THEN 'comes late out of other MPI calls' END AS cause
         FROM per_rank JOIN per_comm USING (comm, op) JOIN counted USING (comm, op)
        WHERE members >= 2 AND equal_samples >= 10
          AND last >= (0.5 + 0.5 / members) * collectives)
SELECT MIN(each_ns * (awaited.members - 1), all_ns) / (ranks * elapsed) AS share, last_share, each_ns,
       awaited.members AS members, samples,
       collectives, op.name AS op, 'rank ' || awaited.rank AS last, NULL AS site,
       cause,
       CASE comm.name WHEN 'W0.0' THEN 'MPI_COMM_WORLD' ELSE comm.name END AS communicator
  FROM run CROSS JOIN awaited JOIN comm ON comm.id = awaited.comm JOIN op ON op.id = awaited.op
                              JOIN rank ON rank.rank = awaited.rank
 WHERE op.name NOT IN ('MPI_Barrier', 'MPI_Allreduce', 'MPI_Allgather', 'MPI_Alltoall', 'MPI_Reduce_scatter_block')
   AND each_ns >= 0.1 * elapsed
   AND NOT (is_plain AND MAX(rank.app_ns - rank.mpi_ns, 0) - average >= 0.1 * elapsed)
 ORDER BY share DESC LIMIT 1""",
    ),
    Rule(
        name='late_in_turns',
        title='Ranks wait for each other in a collective, in turns',
        show='waiting',
        text='{waiting_share:share} of the time of {op}[ on {communicator}] is waiting, {each_ns:time} per rank: they wait for each other in turns, no rank causes more than {late_share:share} of the delay',
        advice='A faster collective would not help. Look for work whose duration varies from step to step (commlens timeline), for interruptions by the system, and for several such calls in a row that could be one.',
        reason='The time of a collective is waiting and the operation itself; samples tell them apart (view split). Below 10 % of the run it is not worth a change. The estimate less twice its standard error must reach this, and 10 samples are the fewest. The delay of a call is the time for which the others wait for the last rank alone. A rank that causes more than half of it is waited for by the others; of two ranks each causes half of it by chance, so more is required the fewer they are.',
        misses='Runs with COMMLENS_WAITING=0 and collectives without samples. Barriers have the finding barriers. Ranks that are late in turns on several communicators of one family, each always on its own.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_samples': 10, 'least_part': 0.5},
        evidence=(
            ('members', 'members of the communicator', 'count'),
            ('samples', 'sampled calls', 'count'),
            ('collectives', 'calls, each counted once for all members', 'count'),
            ('waiting_share', 'waiting, of the time of these calls', 'share'),
            ('error_ns', 'standard error of the waiting, sum over the ranks', 'time'),
            ('late_share', 'largest share of one rank in the time for which the others wait for the last alone', 'share'),
        ),
        sql=COMMON + """
     waits AS (
       SELECT split.family, split.op, SUM(time_ns) AS time_ns, SUM(waiting_ns) AS waiting_ns
         FROM run CROSS JOIN split JOIN op ON op.id = split.op
        WHERE mpi >= 0.1 * total AND op.class = 'collective'
          AND op.name NOT IN ('MPI_Scan', 'MPI_Exscan') GROUP BY 1, 2),
     known AS (
       SELECT comm.family, op, SUM(samples) AS samples, SUM(collectives) AS collectives,
              CASE WHEN COUNT(error_ns) = COUNT(*) THEN SUM(error_ns) END AS error_ns
         FROM sampled JOIN comm ON comm.id = sampled.comm GROUP BY 1, 2),
     per_rank AS (
       SELECT waiting.comm, waiting.op, rank, SUM(1.0 * waiting.late_ns * collectives / sampled.samples) AS late_ns
         FROM waiting
              JOIN sampled ON sampled.comm = waiting.comm AND sampled.op = waiting.op AND sampled.bin = waiting.bin
        GROUP BY 1, 2, 3),
     per_comm AS (
       SELECT comm, op, MAX(late_ns) AS most_ns, SUM(late_ns) AS late_ns, COUNT(*) AS members FROM per_rank GROUP BY 1, 2),
     lasts AS (
       SELECT comm.family, op, SUM(most_ns) AS most_ns, SUM(late_ns) AS late_ns, MAX(per_comm.members) AS members
         FROM per_comm JOIN comm ON comm.id = per_comm.comm GROUP BY 1, 2)
SELECT 1.0 * waits.waiting_ns / total AS share, 1.0 * waits.waiting_ns / time_ns AS waiting_share,
       waits.waiting_ns / ranks AS each_ns, 1.0 * lasts.most_ns / lasts.late_ns AS late_share, error_ns,
       samples, collectives, lasts.members AS members, op.name AS op, CASE WHEN family.name <> 'W0.0' THEN family.name END AS communicator, NULL AS site
  FROM run CROSS JOIN waits JOIN known USING (family, op) JOIN lasts USING (family, op)
                            JOIN family ON family.family = waits.family JOIN op ON op.id = waits.op
 WHERE op.name <> 'MPI_Barrier' AND samples >= 10
   AND waits.waiting_ns - 2 * error_ns >= 0.1 * total
   AND lasts.most_ns < (0.5 + 0.5 / lasts.members) * lasts.late_ns
 ORDER BY share DESC LIMIT 1""",
    ),
    Rule(
        name='late_peer',
        title='The others wait for messages of the same rank',
        show='waiting',
        text='rank {late} {how}[ in region {late_region}]: the other ranks together wait {caused_ns:time} for it, longest in {op}[ on {communicator}]; rank {late} itself waits {own_ns:time} for them[; ranks that it delays cause another {passed_ns:time} of waiting]',
        advice='Let this rank send, or post its receives, before its other work; or give that work to other ranks. If it comes late out of other MPI calls, look for whom it waits there (commlens waits --ranks).',
        reason='Samples of both ends of a message tell which one came last, and how long the other waited (table waiting). Below 10 % of the run it is not worth the search; the estimate less twice its standard error must reach this. With fewer than 10 sampled calls that waited for it, a rank may have been late by chance. Of two ranks each causes half of the waiting by chance, so more is required the fewer they are. A rank that waits longer than a fifth of what it causes passes on the delay of another one. A chain of delays begins at a rank that waits as little, if it has four fifths of what all ranks cause beyond their own waiting; without its delay none of them would wait.',
        misses='Runs with COMMLENS_WAITING=0 or COMMLENS_MATRIX=off, and messages without samples. Several late ranks, or ranks that are late in turns. A rank that also works longest of all has the finding late_ranks instead; a rank for which the others wait in a collective, too, has the finding of the collective. A rank at one end of nine of ten messages among 8 or more ranks: see one_rank_serves.',
        thresholds={'shortest_run_ns': 1000000000, 'least_share': 0.1, 'least_samples': 10, 'least_part': 0.5, 'most_own': 0.2, 'least_of_chain': 0.8, 'fewest_served': 8, 'most_served': 0.9},
        evidence=(
            ('members', 'ranks that wait for messages, or for which others wait', 'count'),
            ('samples', 'sampled calls', 'count'),
            ('calls', 'sampled calls that waited for this rank', 'count'),
            ('all_ns', 'estimated waiting for messages, sum over the ranks', 'time'),
            ('error_ns', 'its standard error', 'time'),
            ('caused_share', 'part of it that is for this rank', 'share'),
            ('own_ns', 'waiting of this rank for others', 'time'),
        ),
        sql=COMMON + """
     messages AS (
       SELECT split.family, split.op, split.bin, split.waiting_ns
         FROM run CROSS JOIN split JOIN op ON op.id = split.op
        WHERE mpi >= 0.1 * total AND op.class IN ('p2p', 'completion') AND split.waiting_ns > 0),
     part AS (
       SELECT comm.family, waiting.op, bin, rank, region, SUM(last) AS last, SUM(late_ns) AS late_ns,
              SUM(waiting_ns) AS waiting_ns
         FROM waiting JOIN comm ON comm.id = waiting.comm WHERE EXISTS (SELECT 1 FROM messages) GROUP BY 1, 2, 3, 4, 5),
     seen AS (
       SELECT family, op, bin, SUM(late_ns) AS late_ns, SUM(waiting_ns) AS waiting_ns FROM part GROUP BY 1, 2, 3),
     -- the estimated waiting, divided among the ranks as in the samples
     scaled AS (
       SELECT family, op, rank, region, last, 1.0 * messages.waiting_ns * part.late_ns / seen.late_ns AS caused_ns,
              1.0 * messages.waiting_ns * part.waiting_ns / seen.waiting_ns AS own_ns
         FROM messages JOIN seen USING (family, op, bin) JOIN part USING (family, op, bin)
        WHERE seen.late_ns > 0 AND seen.waiting_ns > 0),
     per_rank AS (
       SELECT rank AS late, SUM(last) AS calls, SUM(caused_ns) AS caused_ns, SUM(own_ns) AS own_ns,
              MAX(0, SUM(caused_ns) - SUM(own_ns)) AS net_ns
         FROM scaled GROUP BY rank),
     sums AS (
       SELECT COUNT(*) AS members, SUM(caused_ns) AS all_ns, SUM(net_ns) AS all_net_ns FROM per_rank),
     -- an unknown error is taken to be as large as the waiting
     error AS (
       SELECT SUM(COALESCE(error_ns, 1.0 * sampled.waiting_ns / samples * collectives)) AS error_ns, SUM(samples) AS samples
         FROM messages JOIN comm ON comm.family = messages.family
                       JOIN sampled ON sampled.comm = comm.id AND sampled.op = messages.op AND sampled.bin = messages.bin),
     cause AS (
       SELECT late, calls, caused_ns, own_ns, members, all_ns, error_ns, samples, 1.0 * caused_ns / all_ns AS caused_share,
              caused_ns < (0.5 + 0.5 / members) * all_ns AS begins_chain
         FROM per_rank CROSS JOIN sums CROSS JOIN error
        WHERE calls >= 10 AND own_ns <= 0.2 * caused_ns
          AND (caused_ns >= (0.5 + 0.5 / members) * all_ns OR net_ns >= 0.8 * all_net_ns)
        ORDER BY caused_ns DESC LIMIT 1),
     -- ranks that are named because others wait for them in a collective
     awaited AS (
       SELECT rank
         FROM (SELECT waiting.comm, waiting.op, rank, SUM(1.0 * last * collectives / sampled.samples) AS last,
                      SUM(1.0 * waiting.late_ns * collectives / sampled.samples) AS late_ns
                 FROM waiting
                      JOIN sampled ON sampled.comm = waiting.comm AND sampled.op = waiting.op AND sampled.bin = waiting.bin
                      JOIN op ON op.id = waiting.op
                WHERE op.class = 'collective' AND op.name NOT IN ('MPI_Scan', 'MPI_Exscan') GROUP BY 1, 2, 3)
              JOIN (SELECT comm, op, SUM(collectives) AS collectives FROM sampled WHERE samples > 0 GROUP BY 1, 2)
              USING (comm, op)
        WHERE last >= 0.5 * collectives
          AND late_ns >= 0.1 * (SELECT elapsed FROM run)),
     place AS (
       SELECT scaled.op, scaled.family
         FROM cause CROSS JOIN scaled WHERE rank = late GROUP BY 1, 2 ORDER BY SUM(scaled.caused_ns) DESC LIMIT 1),
     work AS (
       SELECT path
         FROM cause CROSS JOIN scaled JOIN region_path ON region_path.region = scaled.region
        WHERE rank = late AND scaled.region > 0 GROUP BY scaled.region
       HAVING SUM(scaled.caused_ns) > 0.5 * MAX(cause.caused_ns))
SELECT 1.0 * CASE WHEN begins_chain THEN all_ns ELSE caused_ns END / total AS share, late, cause.calls, cause.members, samples, caused_ns,
       own_ns, caused_share, all_ns, error_ns, CASE WHEN begins_chain THEN all_ns - caused_ns END AS passed_ns,
       op.name AS op, NULL AS site, CASE WHEN family.name <> 'W0.0' THEN family.name END AS communicator, path AS late_region,
       CASE WHEN op.name IN ('MPI_Send', 'MPI_Ssend', 'MPI_Rsend', 'MPI_Bsend') THEN 'posts its receives late'
            WHEN op.name IN ('MPI_Sendrecv', 'MPI_Sendrecv_replace') THEN 'comes late to its messages'
            WHEN op.class = 'completion' AND EXISTS (
              SELECT 1 FROM comm JOIN key ON key.comm = comm.id JOIN op AS started ON started.id = key.op
               WHERE comm.family = place.family AND started.class IN ('collective', 'neighbor')
                 AND (started.name GLOB 'MPI_I*' OR started.name GLOB '*_init')) THEN 'comes late to its messages or collectives'
            ELSE 'sends late' END AS how
  FROM run CROSS JOIN cause CROSS JOIN place JOIN op ON op.id = place.op JOIN family ON family.family = place.family
           JOIN rank ON rank.rank = late LEFT JOIN work
 WHERE CASE WHEN begins_chain THEN all_ns ELSE caused_ns END - 2 * error_ns >= 0.1 * total
   AND NOT (is_plain AND most - average >= 0.1 * elapsed
            AND MAX(rank.app_ns - rank.mpi_ns, 0) > (most + least) / 2)
   AND late NOT IN (SELECT rank FROM awaited)
   AND (ranks < 8
        OR (SELECT SUM(CASE WHEN late IN (rank, peer) THEN messages ELSE 0 END) < 0.9 * SUM(messages)
              FROM peer WHERE flow = (SELECT id FROM flow WHERE name = 'sent')))""",
    ),
)
