-- SPDX-License-Identifier: Apache-2.0
-- Which profiles could not be read?
--
-- The newest first; of a profile that was refused several times, the last one; without those that were read later. changed: when the file was changed last.
CREATE OR REPLACE TEMPORARY VIEW refused_profiles AS
SELECT changed, cluster, owner, reason, profile FROM unreadable ORDER BY changed DESC, profile
