# SPDX-License-Identifier: Apache-2.0
"""Where another algorithm of a collective could pay: `plan` reads a profile, `text` prints."""
