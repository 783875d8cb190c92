-- SPDX-License-Identifier: Apache-2.0
-- What does commlens itself cost?
--
-- own_share: time of commlens in MPI_Init, MPI_Finalize and calls, estimated, of the hours of the jobs. worst: of a single
-- job of at least a minute. above: jobs of at least a minute in which it is more than 2 %.
CREATE OR REPLACE TEMPORARY VIEW cost AS
SELECT code, COUNT(*) AS jobs, SUM(app_ns / 3.6e12) AS hours, SUM(own_ns / 3.6e12) AS own_hours,
       SUM(own_ns / 3.6e12) / NULLIF(SUM(app_ns / 3.6e12), 0) AS own_share,
       MAX(CASE WHEN elapsed_ns >= 60000000000 AND app_ns > 0 THEN own_ns / 1e0 / app_ns END) AS worst_share,
       SUM(CASE WHEN elapsed_ns >= 60000000000 AND own_ns > 0.02e0 * app_ns THEN 1 ELSE 0 END) AS above
  FROM job GROUP BY code
 ORDER BY own_hours DESC, code
