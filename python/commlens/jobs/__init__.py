# SPDX-License-Identifier: Apache-2.0
"""Running and killed jobs: their arenas, and the current calls of their processes."""
