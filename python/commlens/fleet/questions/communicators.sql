-- SPDX-License-Identifier: Apache-2.0
-- What do our communicators look like, and how much time is in sub-communicators?
--
-- By code and by the procedure that created the communicators. mpi_share: of the time in MPI of the code. per_job:
-- communicators in a job. size_min, size_max: their ranks. sub_share: part of the time on communicators with fewer
-- processes than MPI_COMM_WORLD.
CREATE OR REPLACE TEMPORARY VIEW communicators AS
WITH part AS (
       SELECT code, CASE WHEN creator <> '' THEN creator WHEN kind IN ('set', 'none') THEN kind
                         ELSE 'predefined' END AS creator,
              COUNT(DISTINCT job) AS jobs, SUM(communicators) AS communicators,
              MIN(size_min) AS size_min, MAX(size_max) AS size_max,
              SUM(time_ns / 3.6e12) AS mpi_hours,
              SUM(CASE WHEN is_sub = 1 THEN time_ns / 3.6e12 ELSE 0e0 END) AS sub_hours,
              SUM(CASE WHEN waiting_ns IS NOT NULL THEN waiting_ns / 3.6e12 END) AS waiting_hours,
              SUM(CASE WHEN waiting_ns IS NOT NULL THEN time_ns / 3.6e12 END) AS waiting_of_hours
         FROM comm_family GROUP BY 1, 2),
     whole AS (SELECT code, SUM(mpi_hours) AS code_hours FROM part GROUP BY code)
SELECT part.code, creator, jobs, 1e0 * communicators / jobs AS per_job, size_min, size_max, mpi_hours,
       mpi_hours / NULLIF(code_hours, 0) AS mpi_share, sub_hours / NULLIF(mpi_hours, 0) AS sub_share,
       waiting_hours / NULLIF(waiting_of_hours, 0) AS waiting_share
  FROM part JOIN whole ON whole.code = part.code
 ORDER BY code_hours DESC, part.code, mpi_hours DESC, creator
