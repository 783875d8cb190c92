# SPDX-License-Identifier: Apache-2.0
"""Jobs that run, or that were killed: their arenas, and what their processes do now."""
