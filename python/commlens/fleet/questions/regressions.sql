-- SPDX-License-Identifier: Apache-2.0
-- Which codes are slower or faster since a date, with the same input?
--
-- Compares runs with equal code, input and cluster before and after --at, if there are three on each side. change: median
-- over the inputs of the ratio of the medians of the run times, minus 1. noise: median over the inputs of how much runs before
-- the date differ from their median. mpi_change: the same as change for the time in MPI. lost_hours: that the runs after the
-- date took longer than their inputs took before.
CREATE OR REPLACE TEMPORARY VIEW regressions AS
WITH run AS (
       SELECT cluster, code, input, CASE WHEN start < asked.at THEN 0 ELSE 1 END AS is_after, app_ns / 3.6e12 AS hours,
              elapsed_ns / 1e9 AS seconds, mpi_ns / 1e9 / ranks AS mpi_seconds
         FROM job CROSS JOIN asked
        WHERE start IS NOT NULL AND elapsed_ns > 0 AND ranks > 0 AND state IN ('finalized', '')),
     typical AS (
       SELECT cluster, code, input, MEDIAN(CASE WHEN is_after = 0 THEN seconds END) AS before_s,
              MEDIAN(CASE WHEN is_after = 1 THEN seconds END) AS after_s,
              MEDIAN(CASE WHEN is_after = 0 THEN mpi_seconds END) AS mpi_before_s,
              MEDIAN(CASE WHEN is_after = 1 THEN mpi_seconds END) AS mpi_after_s,
              SUM(CASE WHEN is_after = 0 THEN 1 ELSE 0 END) AS before, SUM(is_after) AS after,
              SUM(CASE WHEN is_after = 1 THEN hours ELSE 0e0 END) AS after_hours
         FROM run GROUP BY cluster, code, input),
     spread AS (
       SELECT run.cluster, run.code, run.input, MEDIAN(ABS(seconds / before_s - 1)) AS noise
         FROM run JOIN typical ON typical.cluster = run.cluster AND typical.code = run.code AND typical.input = run.input
        WHERE is_after = 0 AND before_s > 0 GROUP BY run.cluster, run.code, run.input),
     compared AS (
       SELECT typical.*, noise, after_s / before_s - 1 AS change, mpi_after_s / NULLIF(mpi_before_s, 0) - 1 AS mpi_change
         FROM typical JOIN spread ON spread.cluster = typical.cluster AND spread.code = typical.code
          AND spread.input = typical.input
        WHERE before >= 3 AND after >= 3)
SELECT cluster, code, COUNT(*) AS inputs, SUM(before) AS runs_before, SUM(after) AS runs_after,
       MEDIAN(change) AS change, MEDIAN(noise) AS noise, MEDIAN(mpi_change) AS mpi_change,
       SUM(after_hours * change / (1 + change)) AS lost_hours
  FROM compared GROUP BY cluster, code
 ORDER BY lost_hours DESC, cluster, code
