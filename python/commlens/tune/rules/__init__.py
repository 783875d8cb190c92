# SPDX-License-Identifier: Apache-2.0
"""Writes the choices of algorithms as settings of the MPI library."""

from commlens.tune.rules.page import page
from commlens.tune.rules.rule_set import RuleSet
from commlens.tune.rules.write import write_rules

__all__ = ["RuleSet", "page", "write_rules"]
