# SPDX-License-Identifier: Apache-2.0
"""These tests use a package of their own, which tools/spark.sh installs: they do not run with the others."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*.py"]
