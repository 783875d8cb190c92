# SPDX-License-Identifier: Apache-2.0
"""Reports on a profile: the SQL, the rows, and their tables."""
