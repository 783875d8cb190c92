-- SPDX-License-Identifier: Apache-2.0
-- Which nodes are slow, in job after job?
--
-- Nodes with at least five jobs on several nodes. slowness: median over the jobs of the time outside MPI of a process on
-- this node, divided by the median of the nodes of the job. slowest_share: part of the jobs in which it was the slowest
-- node; by_chance: the part to expect if all nodes were alike. late_hours: others waited for its processes, in samples.
CREATE OR REPLACE TEMPORARY VIEW slow_nodes AS
WITH placed AS (
       SELECT cluster, node, nodes, slowness, app_ns, late_ns, start,
              ROW_NUMBER() OVER (PARTITION BY job ORDER BY slowness DESC, node) AS place
         FROM node WHERE slowness IS NOT NULL)
SELECT cluster, node, COUNT(*) AS jobs, SUM(app_ns / 3.6e12) AS hours, MEDIAN(slowness) AS slowness,
       AVG(CASE WHEN place = 1 THEN 1e0 ELSE 0e0 END) AS slowest_share, AVG(1e0 / NULLIF(nodes, 0)) AS by_chance,
       SUM(late_ns / 3.6e12) AS late_hours, MAX(start) AS last_job
  FROM placed GROUP BY cluster, node HAVING COUNT(*) >= 5
 ORDER BY slowness DESC, slowest_share DESC, cluster, node
