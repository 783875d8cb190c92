-- SPDX-License-Identifier: Apache-2.0
-- How much of the machine is spent in MPI, and how much of that is waiting?
--
-- By code, queue and month. hours: processes times hours. mpi_share: of these hours. waiting_share: part of the time in MPI
-- in which processes waited for others, of the calls that have samples; empty without samples.
CREATE OR REPLACE TEMPORARY VIEW share AS
WITH total AS (
       SELECT CASE WHEN GROUPING(code) = 0 THEN 'code' WHEN GROUPING(queue) = 0 THEN 'queue'
                   WHEN GROUPING(month) = 0 THEN 'month' ELSE 'all' END AS kind,
              COALESCE(code, queue, month, '') AS name, COUNT(*) AS jobs,
              SUM(app_ns / 3.6e12) AS hours, SUM(mpi_ns / 3.6e12) AS mpi_hours,
              SUM(waiting_ns / 3.6e12) AS waiting_hours, SUM(waiting_of_ns / 3.6e12) AS waiting_of_hours
         FROM job GROUP BY GROUPING SETS ((code), (queue), (month), ()))
SELECT kind, name, jobs, hours, mpi_hours / NULLIF(hours, 0) AS mpi_share,
       waiting_hours / NULLIF(waiting_of_hours, 0) AS waiting_share, mpi_hours
  FROM total WHERE jobs > 0
 ORDER BY CASE kind WHEN 'all' THEN 0 WHEN 'code' THEN 1 WHEN 'queue' THEN 2 ELSE 3 END,
          CASE kind WHEN 'month' THEN name END, hours DESC, name
