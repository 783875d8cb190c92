# SPDX-License-Identifier: Apache-2.0
"""Text for people: tables, trees, numbers with units, and the screen."""
