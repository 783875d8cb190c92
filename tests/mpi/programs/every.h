/* SPDX-License-Identifier: Apache-2.0
 * What the parts of every.c share: which MPI this is, the types of counts and displacements, and buffers. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define HAS_MPI_4
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define HAS_MPI_4_1
#endif

#ifdef LARGE
typedef MPI_Count Count; /* elements, and displacements in elements in a datatype */
typedef MPI_Aint Place;  /* displacements in elements in a collective */
typedef MPI_Count Far;   /* displacements in bytes in a datatype */
typedef MPI_Aint Unit;   /* a displacement unit */
#else
typedef int Count;
typedef int Place;
typedef MPI_Aint Far;
typedef int Unit;
#endif

#define WORLD MPI_COMM_WORLD
#define SELF MPI_COMM_SELF

static int rank, other, flag, n, which[4];
static int data[64], into[64];
static char text[1024], room[4096];
static MPI_Request r[4];
static MPI_Status s[4];
static Count const two[2] = {2, 2};
static Place const places[2] = {0, 2};
static Place const bytes[2] = {0, 8};
