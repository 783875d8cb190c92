# SPDX-License-Identifier: Apache-2.0
"""Algorithms of collectives as the messages they are made of.

`registry` has them all; `matching.match` says which of them sent what was measured; `modelled.modelled` what they would
send, with `mpich.chosen` where an MPI says by its control variables which one it uses.

>>> from commlens.algorithms.matching import Measured, match
>>> from commlens.algorithms.modelled import modelled
>>> model = modelled("bcast", "binomial", 12, 1000, root=3, calls=2)
>>> match(Measured("bcast", 2, model.pairs, block=1000)).verdict
'binomial'
"""

from commlens.base import packages

packages.load("numpy")  # says what to do where it is missing
