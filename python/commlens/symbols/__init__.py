# SPDX-License-Identifier: Apache-2.0
"""Call sites as function, file and line, from ELF files."""
