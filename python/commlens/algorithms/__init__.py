# SPDX-License-Identifier: Apache-2.0
"""Algorithms of collectives, each described by the messages that it sends.

`registry` lists all algorithms. `matching.match` finds the algorithm that sent the measured messages.
`modelled.modelled` returns the messages that an algorithm would send. `mpich.chosen` returns the algorithm that MPICH
selects for given control variables.

>>> from commlens.algorithms.matching import Measured, match
>>> from commlens.algorithms.modelled import modelled
>>> model = modelled("bcast", "binomial", 12, 1000, root=3, calls=2)
>>> match(Measured("bcast", 2, model.pairs, block=1000)).verdict
'binomial'
"""

from commlens.base import packages

packages.load("numpy")  # if it is missing, the error names the package to install
