# SPDX-License-Identifier: Apache-2.0
"""The profiles of many jobs as one dataset of Parquet files: written, queried, watched."""
