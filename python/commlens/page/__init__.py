# SPDX-License-Identifier: Apache-2.0
"""Makes the page that explains a run: one file of HTML, which needs neither a network nor a server."""
