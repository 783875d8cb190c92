# SPDX-License-Identifier: Apache-2.0
"""What the reports on a profile say: the SQL, the rows, and the tables they become."""
