#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the answers of Spark with those of DuckDB, on a cluster of a master and two workers that this machine runs.
#
# pyspark has 450 MB, so that it gets an environment of its own: build/spark.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh dev spark

fill() {
  [ -x build/spark/bin/python ] || .venv/bin/python -m venv build/spark || return
  build/spark/bin/python -m pip install --disable-pip-version-check --no-input -e '.[fleet]' \
    pyspark==4.3.0 pytest==8.4.2
}

build/spark/bin/python -c 'import pyspark, duckdb, pyarrow, commlens' 2>/dev/null || step spark "pyspark in build/spark" fill
step spark "answers of Spark and DuckDB" build/spark/bin/python -m pytest -q tests/spark
