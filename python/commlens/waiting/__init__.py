# SPDX-License-Identifier: Apache-2.0
"""Who keeps whom waiting: `estimate` has the statistics, `waits` reads a profile, `text` prints."""
