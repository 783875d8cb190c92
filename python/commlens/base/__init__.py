# SPDX-License-Identifier: Apache-2.0
"""What every other room uses: errors and messages, escapes, files, users."""
