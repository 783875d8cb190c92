-- SPDX-License-Identifier: Apache-2.0
-- Which profiles could not be read?
--
-- The newest first. changed: when the file was changed last.
CREATE OR REPLACE TEMPORARY VIEW refused_profiles AS
SELECT changed, cluster, owner, reason, profile FROM refused ORDER BY changed DESC, profile
