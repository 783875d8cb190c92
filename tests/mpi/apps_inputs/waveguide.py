# SPDX-License-Identifier: Apache-2.0
"""A Meep simulation: light passes a bend in a waveguide."""

import meep

SIZE = 16
glass = meep.Medium(epsilon=12)
simulation = meep.Simulation(
    cell_size=meep.Vector3(SIZE, SIZE, 0),
    geometry=[
        meep.Block(meep.Vector3(12, 1, meep.inf), center=meep.Vector3(-2.5, -3.5), material=glass),
        meep.Block(meep.Vector3(1, 12, meep.inf), center=meep.Vector3(3.5, 2), material=glass),
    ],
    sources=[
        meep.Source(
            meep.ContinuousSource(wavelength=7, width=20),
            component=meep.Ez,
            center=meep.Vector3(-7, -3.5),
            size=meep.Vector3(0, 1),
        )
    ],
    boundary_layers=[meep.PML(1.0)],
    resolution=20,
)
simulation.run(until=200)
