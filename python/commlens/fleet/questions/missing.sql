-- SPDX-License-Identifier: Apache-2.0
-- Which jobs have no profile, or only a part of one, and why?
--
-- Jobs of the batch system (commlens ingest --accounting) without a profile of the same cluster and job id; profiles that
-- could not be read; and profiles that lack processes or were recovered after a kill. share: of the jobs of the batch system.
-- The profile may be of another month than --since and --until select: the batch system has local time, a profile UTC.
CREATE OR REPLACE TEMPORARY VIEW missing AS
WITH ended AS (
       SELECT * FROM batch_job WHERE state NOT IN ('PENDING', 'REQUEUED', 'RESIZING', 'RUNNING', 'SUSPENDED')),
     without AS (
       SELECT cluster, queue, cpu_ns,
              CASE WHEN state NOT IN ('COMPLETED', '') THEN CONCAT('ended as ', state)
                   WHEN tasks = 1 THEN 'one task' ELSE 'completed without a profile' END AS reason
         FROM ended
        WHERE NOT EXISTS (
              SELECT 1 FROM every_job WHERE every_job.job_id = ended.job_id AND every_job.cluster = ended.cluster)),
     known AS (SELECT cluster, COUNT(*) AS all_jobs FROM ended GROUP BY cluster),
     found AS (
       SELECT cluster, queue, reason, COUNT(*) AS jobs, SUM(cpu_ns / 3.6e12) AS hours FROM without GROUP BY 1, 2, 3
       UNION ALL
       SELECT cluster, '', CONCAT('refused: ', reason), COUNT(*), CAST(NULL AS DOUBLE) FROM unreadable GROUP BY cluster, reason
       UNION ALL
       SELECT cluster, queue, CASE WHEN ranks_collected < ranks THEN 'profile lacks processes'
                                   ELSE CONCAT('recovered: ', state) END,
              COUNT(*), SUM(app_ns / 3.6e12)
         FROM job WHERE ranks_collected < ranks OR state NOT IN ('finalized', '') GROUP BY 1, 2, 3)
SELECT found.cluster, queue, reason, jobs, hours, jobs * 1e0 / all_jobs AS share
  FROM found LEFT JOIN known ON known.cluster = found.cluster
 ORDER BY jobs DESC, found.cluster, queue, reason
