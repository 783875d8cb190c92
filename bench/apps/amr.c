/* SPDX-License-Identifier: Apache-2.0
 * A grid of PATCHES, each on some of the ranks, with a communicator of its own.  REGRIDS times all get new ranks, and
 * so new communicators; between, STEPS times half of what a rank has of a patch flows to the next rank of the patch,
 * and all of them ask for the sum.  Whole numbers flow, so each rank can tell exactly what everybody must have. */
#include "app.h"

/* A patch as its ranks share it out.  Every one of them knows it all, and uses it to check its own part only. */
typedef struct {
  MPI_Comm comm;
  int members, me; /* me: -1 where this rank has nothing of it */
  long *parts, own;
} Patch;

static long share(long mass, int members, int member) { return mass / members + (member < mass % members); }

/* New ranks for patch p: some that follow each other, counted round. */
static void place(Patch* patch, long p, long regrid, long mass, MPI_Group world) {
  const int first = (int)((3 * p + 5 * regrid) % ranks);
  patch->members = (int)(1 + (p + regrid) % ranks);
  patch->me = (rank - first + ranks) % ranks;
  if (patch->me >= patch->members) {
    patch->me = -1;
    return;
  }
  int* const who = app_array((size_t)patch->members, sizeof *who);
  for (int m = 0; m < patch->members; ++m)
    who[m] = (first + m) % ranks, patch->parts[m] = share(mass, patch->members, m);
  patch->own = patch->parts[patch->me];
  MPI_Group group;
  MPI_Group_incl(world, patch->members, who, &group);
  MPI_Comm_create_group(MPI_COMM_WORLD, group, (int)(p % 1024), &patch->comm);
  MPI_Group_free(&group);
  free(who);
}

static long flow(Patch* patch) {
  const int next = (patch->me + 1) % patch->members, before = (patch->me + patch->members - 1) % patch->members;
  const long out = patch->own / 2;
  long in, sum;
  MPI_Sendrecv(&out, 1, MPI_LONG, next, 0, &in, 1, MPI_LONG, before, 0, patch->comm, MPI_STATUS_IGNORE);
  patch->own += in - out;
  MPI_Allreduce(&patch->own, &sum, 1, MPI_LONG, MPI_SUM, patch->comm);
  long last = patch->parts[patch->members - 1] / 2;
  for (int m = 0; m < patch->members; ++m) {
    const long half = patch->parts[m] / 2;
    patch->parts[m] += last - half;
    last = half;
  }
  app_check(patch->own == patch->parts[patch->me]);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "amr PATCHES REGRIDS STEPS");
  const long n_patches = arguments[0], regrids = arguments[1], steps = arguments[2];
  Patch* const patches = app_array((size_t)n_patches, sizeof *patches);
  long *const mine = app_array((size_t)n_patches, sizeof *mine), *const mass =
                                                                     app_array((size_t)n_patches, sizeof *mass);
  long total = 0, left = 0;
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (long p = 0; p < n_patches; ++p) {
    mass[p] = (long)(app_noise((uint64_t)p) % 1000000);
    total += mass[p];
    patches[p].parts = app_array((size_t)ranks, sizeof *patches[p].parts);
  }
  for (long regrid = 0; regrid < regrids; ++regrid) {
    for (long p = 0; p < n_patches; ++p) {
      mine[p] = 0;
      place(&patches[p], p, regrid, mass[p], world);
    }
    for (long step = 0; step < steps; ++step)
      for (long p = 0; p < n_patches; ++p)
        if (patches[p].me >= 0) app_check(flow(&patches[p]) == mass[p]);
    for (long p = 0; p < n_patches; ++p) {
      if (patches[p].me < 0) continue;
      mine[p] = patches[p].own;
      MPI_Comm_free(&patches[p].comm);
    }
    MPI_Allreduce(mine, mass, (int)n_patches, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Group_free(&world);
  for (long p = 0; p < n_patches; ++p) {
    left += mass[p];
    free(patches[p].parts);
  }
  app_check(left == total);
  free(patches), free(mine), free(mass);
  return app_end((double)left);
}
