-- SPDX-License-Identifier: Apache-2.0
-- Which codes would gain from tuning collectives or from another placement?
--
-- saved_hours: what it could save at most.
-- tuning: hours in collectives, without waiting, beyond those that the calls would take if each were as fast as on average
-- in the code that is the fastest with this procedure, message size and size of communicator, of codes with five jobs or
-- more. commlens tune searches a setting. placement: hours in messages, without waiting, times the share of the bytes that leave a node, in jobs on several
-- nodes whose ranks exchange with neighbours. commlens place searches an order of the ranks.
CREATE OR REPLACE TEMPORARY VIEW candidates AS
WITH counted AS (
       SELECT code, cluster, op, bin, size, COUNT(DISTINCT job) AS jobs, SUM(calls * 1e0) AS calls,
              SUM(time_ns * 1e0) - COALESCE(SUM(waiting_ns * 1e0), 0) AS busy_ns
         FROM operation WHERE class = 'collective' AND size > 1 AND bin >= 0 GROUP BY code, cluster, op, bin, size),
     call AS (
       SELECT code, cluster, op, bin, FLOOR(LN(size / 1e0) / LN(2e0) + 1e-9) AS power, MAX(jobs) AS jobs,
              SUM(calls) AS calls, SUM(busy_ns) / 3.6e12 AS hours
         FROM counted GROUP BY 1, 2, 3, 4, 5),
     fastest AS (
       SELECT cluster, op, bin, power, MIN(hours / calls) AS least
         FROM call WHERE calls > 0 AND jobs >= 5 GROUP BY 1, 2, 3, 4 HAVING COUNT(*) > 1),
     tuned AS (
       SELECT call.code, call.op, SUM(hours) AS hours,
              SUM(CASE WHEN hours > least * calls THEN hours - least * calls ELSE 0e0 END) AS saved_hours
         FROM call JOIN fastest ON fastest.cluster = call.cluster AND fastest.op = call.op AND fastest.bin = call.bin
          AND fastest.power = call.power
        GROUP BY call.code, call.op),
     message AS (
       SELECT job, (SUM(time_ns * 1e0) - COALESCE(SUM(waiting_ns * 1e0), 0)) / 3.6e12 AS hours
         FROM operation WHERE class IN ('p2p', 'completion') GROUP BY job),
     placed AS (
       SELECT matrix.code, matrix.pattern, SUM(message.hours) AS hours, SUM(message.hours * (1 - locality)) AS saved_hours
         FROM matrix JOIN message ON message.job = matrix.job JOIN job ON job.job = matrix.job
        WHERE job.nodes > 1 AND pattern IN ('nearest neighbour', 'ring', 'chain', 'pairs', 'transpose')
          AND locality IS NOT NULL
        GROUP BY matrix.code, matrix.pattern),
     found AS (
       SELECT 'tuning' AS kind, code, op AS what, hours, saved_hours FROM tuned
       UNION ALL SELECT 'placement', code, pattern, hours, saved_hours FROM placed),
     whole AS (SELECT code, COUNT(*) AS jobs, SUM(app_ns / 3.6e12) AS code_hours FROM job GROUP BY code)
SELECT found.code, kind, what, jobs, hours, saved_hours, saved_hours / NULLIF(code_hours, 0) AS saved_share
  FROM found JOIN whole ON whole.code = found.code
 WHERE saved_hours > 0.001e0 * hours
 ORDER BY saved_hours DESC, found.code, kind, what
