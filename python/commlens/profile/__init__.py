# SPDX-License-Identifier: Apache-2.0
"""A profile: opened, checked against the schema, put together where it has several files."""

from commlens.profile.open import merged_file, open_profile

__all__ = ["merged_file", "open_profile"]
