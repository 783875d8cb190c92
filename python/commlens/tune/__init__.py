# SPDX-License-Identifier: Apache-2.0
"""Faster collectives from a profile: where another algorithm could pay, which one does, and the settings that choose it."""
