# SPDX-License-Identifier: Apache-2.0
"""Opens profiles, checks them against the schema, and merges their shards."""

from commlens.profile.open import merged_file, open_profile

__all__ = ["merged_file", "open_profile"]
