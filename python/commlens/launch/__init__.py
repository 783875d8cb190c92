# SPDX-License-Identifier: Apache-2.0
"""What commlens-run starts with: where it is, and the settings of a run."""
