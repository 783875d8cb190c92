# SPDX-License-Identifier: Apache-2.0
"""Builds other profilers and compares commlens with them: make peers, or python -m bench.peers."""

from bench.peers.command import main

main()
