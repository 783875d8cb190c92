# SPDX-License-Identifier: Apache-2.0
"""How many members of a communicator the profile has: not those of another world, and not those whose data were lost."""

LACKS_MEMBERS_SQL = """\
SELECT (SELECT COUNT(*) FROM rank) < (SELECT CAST(value AS INTEGER) FROM meta WHERE meta.key = 'ranks')
       OR EXISTS (SELECT 1 FROM comm WHERE remote_size IS NOT NULL)"""
"""Whether communicators may have members that the profile lacks: without ranks, or with communicators of two groups."""

PRESENT = """\
  -- the number of members that the profile has
  present(comm, members) AS (
  SELECT comm.id, counted.members
    FROM (SELECT first.id, COUNT(*) AS members
            FROM (SELECT MIN(id) AS id FROM comm WHERE size IS NOT NULL GROUP BY members) AS first
                 JOIN member_range ON member_range.comm = first.id
                 JOIN rank ON rank.rank BETWEEN low AND high AND (rank.rank - low) % stride = 0
           GROUP BY first.id) AS counted
         JOIN comm AS first ON first.id = counted.id JOIN comm ON comm.members = first.members),
"""
"""The table that has the number of members of each communicator; communicators with the same members are counted once."""

WITH_PRESENT = " LEFT JOIN present ON present.comm = comm.id"
"""The join that adds them to comm."""
