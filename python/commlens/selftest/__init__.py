# SPDX-License-Identifier: Apache-2.0
"""Checks an installation: runs a small program whose counts are known, and compares its profile with them."""
