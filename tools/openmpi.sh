# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced.  Open MPI refuses to run as root and to start more ranks than there are processors.  Both are
# right on a cluster and wrong on a small or freshly made machine.
# First the names of Open MPI 4, then that of its launcher from version 5 on.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# All ranks are here: shared memory, and no probing of networks, which complains where there is none.
# Who waits gives its processor to another rank.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1
