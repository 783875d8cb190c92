-- SPDX-License-Identifier: Apache-2.0
-- Which procedures take the time, by message size and size of the communicator?
--
-- mpi_share: of the time in MPI of all jobs. call_ns: average time of a call. waiting_share: as in question share.
CREATE OR REPLACE TEMPORARY VIEW procedures AS
WITH counted AS (
       SELECT op, bin, size, SUM(calls * 1e0) AS calls, SUM(time_ns * 1e0) AS time_ns, SUM(waiting_ns * 1e0) AS waiting_ns,
              SUM(CASE WHEN waiting_ns IS NOT NULL THEN time_ns * 1e0 END) AS waiting_of_ns
         FROM operation GROUP BY op, bin, size),
     part AS (
       SELECT op, CASE WHEN bin = 0 THEN 'none' WHEN bin < 0 THEN 'varies' WHEN bin <= 10 THEN '< 1 KiB'
                       WHEN bin <= 16 THEN '1-64 KiB' WHEN bin <= 20 THEN '64 KiB-1 MiB' ELSE '1 MiB or more' END AS message,
              CASE WHEN size IS NULL THEN 'unknown' WHEN size < 2 THEN '1' WHEN size < 16 THEN '2-15'
                   WHEN size < 128 THEN '16-127' WHEN size < 1024 THEN '128-1023' ELSE '1024 or more' END AS comm_size,
              SUM(calls) AS calls, SUM(time_ns) / 3.6e12 AS mpi_hours, SUM(waiting_ns) AS waiting_ns,
              SUM(waiting_of_ns) AS waiting_of_ns
         FROM counted GROUP BY 1, 2, 3),
     whole AS (SELECT SUM(mpi_hours) AS all_hours FROM part)
SELECT op, message, comm_size, calls, mpi_hours, mpi_hours / NULLIF(all_hours, 0) AS mpi_share,
       mpi_hours * 3.6e12 / NULLIF(calls, 0) AS call_ns, waiting_ns / NULLIF(waiting_of_ns, 0) AS waiting_share
  FROM part CROSS JOIN whole
 ORDER BY mpi_hours DESC, op, message, comm_size
