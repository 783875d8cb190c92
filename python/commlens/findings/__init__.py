# SPDX-License-Identifier: Apache-2.0
"""What commlens finds in a profile by itself: which rules apply, in a sentence each, with the numbers behind it."""
