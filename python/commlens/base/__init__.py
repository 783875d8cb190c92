# SPDX-License-Identifier: Apache-2.0
"""Base of all other packages: errors and messages, escapes, files, users."""
