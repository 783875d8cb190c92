-- SPDX-License-Identifier: Apache-2.0
-- Which codes lose time because some processes have more to do than others?
--
-- load_balance: time outside MPI, average over the processes divided by the maximum; average over the jobs, weighted by
-- hours. lost_hours: hours times what is missing to 1. worst: smallest load balance of a job. ranks: most of a job.
CREATE OR REPLACE TEMPORARY VIEW imbalance AS
SELECT code, COUNT(*) AS jobs, MAX(ranks) AS ranks, SUM(app_ns / 3.6e12) AS hours,
       SUM(app_ns / 3.6e12 * load_balance) / NULLIF(SUM(app_ns / 3.6e12), 0) AS load_balance,
       MIN(load_balance) AS worst,
       SUM(app_ns / 3.6e12 * communication_efficiency) / NULLIF(SUM(app_ns / 3.6e12), 0) AS communication_efficiency,
       SUM(app_ns / 3.6e12 * (1 - load_balance)) AS lost_hours
  FROM job WHERE load_balance IS NOT NULL AND ranks > 1 GROUP BY code
 ORDER BY lost_hours DESC, code
