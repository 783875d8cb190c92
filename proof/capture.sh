#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Between the launcher and the program: what each rank prints goes to files of its own, so that it can be
# compared line by line; a launcher mixes the ranks, in an order that depends on who was first.
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:?no launcher}}
exec "$@" >"rank.$rank.out" 2>"rank.$rank.err"
