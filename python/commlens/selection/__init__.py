# SPDX-License-Identifier: Apache-2.0
"""What a user picks from a profile: communicators, procedures, ranks and message sizes."""
