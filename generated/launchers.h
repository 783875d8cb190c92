// SPDX-License-Identifier: Apache-2.0
// DO NOT EDIT: written by gen/launchers.py from spec/launchers.toml and spec/abi.toml.
#pragma once

// Lists for C and C++, as initialisers of arrays.
// clang-format off

// The rank of this process in its job.
#define COMMLENS_VARIABLES_RANK {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "MVP_COMM_WORLD_RANK", "SLURM_PROCID", "PALS_RANKID"}

// The number of processes of this job, set for each process by the launcher of an MPI library; all of them together.
#define COMMLENS_VARIABLES_SIZE {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}

// The number or name that the batch system gave the job.
#define COMMLENS_VARIABLES_JOB_ID {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "COBALT_JOBID", "PJM_JOBID"}

// Variables that together distinguish one launch from another. Open MPI's random key comes first.
#define COMMLENS_VARIABLES_LAUNCH {"OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID", "PALS_APID"}

// Variables that a launcher gives to all processes of one launch, on all nodes, with a value that other launches do not have.
#define COMMLENS_VARIABLES_SHARED {"OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE", "PALS_APID"}

// The number of the job, from a batch system that gives it to all processes on all nodes, whatever launches them.
#define COMMLENS_VARIABLES_EVERYWHERE {"SLURM_JOB_ID"}

// Variables whose values no other launch of the same user on this machine has.
#define COMMLENS_VARIABLES_ONE_LAUNCH {"PMIX_NAMESPACE", "SLURM_STEP_ID", "PALS_APID"}

// The number of nodes of the job; any of them.
#define COMMLENS_VARIABLES_NODES {"SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_NUM_NODES"}

// Name, title, and prefixes of the file names of the libraries of each family; NULL ends them.
enum { most_family_libraries = 17, family_count = 3 };
#define COMMLENS_FAMILIES { \
    {"openmpi", "Open MPI", {"libmpi.so.40", "libmpi.so.0", "libmpi_ibm.so", "libmpi_mpifh.so", "libmpi_usempi", "libmpi_cxx.so.40", NULL}}, \
    {"mpich", "MPICH", {"libmpich", "libmpi.so.12", "libmpifort.so.12", "libmpicxx.so.12", "libmpi_cray", "libmpi_gnu", "libmpi_intel", "libmpi_nvidia", "libmpi_amd", "libmpi_aocc", "libmpifort_cray", "libmpifort_gnu", "libmpifort_intel", "libmpifort_nvidia", "libmpifort_amd", "libmpifort_aocc", NULL}}, \
    {"abi", "the standard ABI", {"libmpi_abi.so", "libmpifort_abi.so", NULL}}}

// Variables that the launcher of a family sets, and the family.  The first variable that is set decides.
#define COMMLENS_LAUNCHER_VARIABLES { \
    {"OMPI_COMM_WORLD_RANK", "openmpi"}, \
    {"OMPI_COMM_WORLD_SIZE", "openmpi"}, \
    {"PMI_RANK", "mpich"}, \
    {"PMI_SIZE", "mpich"}, \
    {"MPI_LOCALNRANKS", "mpich"}, \
    {"MV2_COMM_WORLD_RANK", "mpich"}, \
    {"MVP_COMM_WORLD_RANK", "mpich"}, \
    {"PMIX_RANK", "openmpi"}, \
    {"PALS_RANKID", "mpich"}}
