# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced.  Allows Open MPI to run as root and to start more ranks than there are processors.  By default it refuses
# both, which suits a cluster, but not a small machine or a container.
# The first names are those of Open MPI 4, the last is that of the launcher of version 5.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# All ranks are on this machine: shared memory only, because a search for networks prints a warning if there is none.
# A waiting rank yields its processor to another rank.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1
