-- SPDX-License-Identifier: Apache-2.0
-- Which codes use MPI in a way that costs them time?
--
-- Rules of commlens report (docs/reference/findings.md), and what can be counted for all jobs: tiny_messages: a million messages
-- below 64 bytes sent a process and hour, or more. barriers: more than 1,000 a process that take 1 % of the run. polling: a million
-- tests and probes a process. communicators_in_a_loop: more than 10,000 in a job. cost_hours: what it costs at most, or the
-- hours of these calls. example: a job, for SELECT * FROM job WHERE job = ...
CREATE OR REPLACE TEMPORARY VIEW misuse AS
WITH counted AS (
       SELECT job, SUM(CASE WHEN sends AND bin BETWEEN 0 AND 6 THEN calls ELSE 0 END) AS tiny,
              SUM(CASE WHEN sends AND bin BETWEEN 0 AND 6 THEN time_ns ELSE 0 END) AS tiny_ns,
              SUM(CASE WHEN op = 'MPI_Barrier' THEN calls ELSE 0 END) AS barriers,
              SUM(CASE WHEN op = 'MPI_Barrier' THEN time_ns ELSE 0 END) AS barriers_ns,
              SUM(CASE WHEN op IN ('MPI_Test', 'MPI_Testall', 'MPI_Testany', 'MPI_Testsome', 'MPI_Iprobe', 'MPI_Improbe')
                       THEN calls ELSE 0 END) AS polls,
              SUM(CASE WHEN op IN ('MPI_Test', 'MPI_Testall', 'MPI_Testany', 'MPI_Testsome', 'MPI_Iprobe', 'MPI_Improbe')
                       THEN time_ns ELSE 0 END) AS polls_ns
         FROM (SELECT job, op, bin, calls, time_ns,
                      class = 'p2p' AND LOWER(op) LIKE '%send%' AND op NOT LIKE '%init' AS sends FROM operation) AS each_operation
        WHERE (sends AND bin BETWEEN 0 AND 6)
           OR op IN ('MPI_Barrier', 'MPI_Test', 'MPI_Testall', 'MPI_Testany', 'MPI_Testsome', 'MPI_Iprobe', 'MPI_Improbe')
        GROUP BY job),
     made AS (
       SELECT job, SUM(communicators) AS communicators FROM comm_family
        WHERE kind IN ('intra', 'inter') GROUP BY job),
     each AS (
       SELECT job.job, code, 'tiny_messages' AS misuse, tiny_ns / 3.6e12 AS cost_hours
         FROM counted JOIN job ON job.job = counted.job WHERE tiny >= 1e6 * (app_ns / 3.6e12) AND tiny >= 1e6
       UNION ALL
       SELECT job.job, code, 'barriers', barriers_ns / 3.6e12
         FROM counted JOIN job ON job.job = counted.job WHERE barriers > 1000 * ranks AND barriers_ns > 0.01e0 * app_ns
       UNION ALL
       SELECT job.job, code, 'polling', polls_ns / 3.6e12
         FROM counted JOIN job ON job.job = counted.job WHERE polls >= 1e6 * ranks
       UNION ALL
       SELECT job.job, code, 'communicators_in_a_loop', CAST(NULL AS DOUBLE)
         FROM made JOIN job ON job.job = made.job WHERE communicators > 10000
       UNION ALL
       SELECT job.job, job.code, rule, share * app_ns / 3.6e12 FROM finding JOIN job ON job.job = finding.job),
     seen AS (SELECT job, code, misuse, MAX(cost_hours) AS cost_hours FROM each GROUP BY job, code, misuse),
     whole AS (SELECT code, COUNT(*) AS all_jobs FROM job GROUP BY code)
SELECT seen.code, misuse, COUNT(DISTINCT job) AS jobs, COUNT(DISTINCT job) * 1e0 / MAX(all_jobs) AS jobs_share,
       SUM(cost_hours) AS cost_hours, MIN(job) AS example
  FROM seen JOIN whole ON whole.code = seen.code GROUP BY seen.code, misuse
 ORDER BY cost_hours DESC NULLS LAST, seen.code, misuse
