#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the answers of Spark with those of DuckDB, on a cluster of a master and three workers that this machine runs.
#
# pyspark has 450 MB, so that it gets an environment of its own: build/spark.  That reads commlens from python/.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh dev spark

packages=(pyspark==4.3.0 pytest==8.4.2 "duckdb>=1.2" "pyarrow>=14" "click>=8" numpy "rich>=12")

fill() {
  [ -x build/spark/bin/python ] || .venv/bin/python -m venv build/spark || return
  timeout 1800 build/spark/bin/python -m pip install --disable-pip-version-check --no-input "${packages[@]}"
}

build/spark/bin/python -c 'import click, duckdb, numpy, pyarrow, pyspark, pytest, rich' 2>/dev/null ||
  step spark "pyspark in build/spark" fill
export PYTHONPATH=$PWD/python
step spark "answers of Spark and DuckDB" timeout 3600 build/spark/bin/python -m pytest -q tests/spark
