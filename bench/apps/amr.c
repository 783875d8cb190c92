/* SPDX-License-Identifier: Apache-2.0
 * A grid of PATCHES, each on some of the ranks, with a communicator of its own.  REGRIDS times all get new ranks, and
 * so new communicators; between, STEPS times heat spreads in a block of EDGE^3 cells that each rank has of a patch,
 * half of what a rank has of the patch's mass flows to the next rank of the patch, and all of them ask for the sum.
 * Whole numbers flow, so each rank can tell exactly what everybody must have; no heat is lost. */
#include "app.h"

/* A patch as its ranks share it out.  Every one of them knows it all, and uses it to check its own part only. */
typedef struct {
  MPI_Comm comm;
  int members, me; /* me: -1 where this rank has nothing of it */
  long *parts, own;
  double *heat, *next; /* EDGE^3 cells with a border of one cell */
} Patch;

/* Cells give a twelfth of the difference to each of their six neighbours; none behind the border. */
static double spread(Patch* patch, long edge) {
  const long line = edge + 2, plane = line * line;
  double* const h = patch->heat;
  for (long a = 1; a <= edge; ++a) {
    for (long b = 1; b <= edge; ++b) {
      h[a * plane + b * line] = h[a * plane + b * line + 1];
      h[a * plane + b * line + edge + 1] = h[a * plane + b * line + edge];
      h[a * plane + b] = h[a * plane + line + b];
      h[a * plane + (edge + 1) * line + b] = h[a * plane + edge * line + b];
      h[a * line + b] = h[plane + a * line + b];
      h[(edge + 1) * plane + a * line + b] = h[edge * plane + a * line + b];
    }
  }
  double sum = 0;
  for (long x = 1; x <= edge; ++x) {
    for (long y = 1; y <= edge; ++y) {
      const double* const from = h + x * plane + y * line;
      double* const to = patch->next + x * plane + y * line;
      for (long z = 1; z <= edge; ++z) {
        const double around =
            from[z - 1] + from[z + 1] + from[z - line] + from[z + line] + from[z - plane] + from[z + plane];
        to[z] = 0.5 * from[z] + around / 12;
        sum += to[z];
      }
    }
  }
  patch->heat = patch->next;
  patch->next = h;
  return sum;
}

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
  const long* const arguments = app_begin(argc, argv, "amr PATCHES REGRIDS STEPS EDGE");
  const long n_patches = arguments[0], regrids = arguments[1], steps = arguments[2], edge = arguments[3];
  const long line = edge + 2, middle = ((edge / 2 + 1) * line + edge / 2 + 1) * line + edge / 2 + 1;
  const size_t cells = (size_t)(line * line * line);
  Patch* const patches = app_array((size_t)n_patches, sizeof *patches);
  long *const mine = app_array((size_t)n_patches, sizeof *mine), *const mass =
                                                                     app_array((size_t)n_patches, sizeof *mass);
  double* const before = app_array((size_t)n_patches, sizeof *before); /* the heat of each */
  long total = 0, left = 0;
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (long p = 0; p < n_patches; ++p) {
    mass[p] = (long)(app_noise((uint64_t)p) % 1000000);
    total += mass[p];
    before[p] = (double)mass[p];
    patches[p].parts = app_array((size_t)ranks, sizeof *patches[p].parts);
    patches[p].heat = app_array(cells, sizeof *patches[p].heat);
    patches[p].next = app_array(cells, sizeof *patches[p].next);
    for (size_t i = 0; i < cells; ++i) patches[p].heat[i] = patches[p].next[i] = 0;
    patches[p].heat[middle] = (double)mass[p];
  }
  for (long regrid = 0; regrid < regrids; ++regrid) {
    for (long p = 0; p < n_patches; ++p) {
      mine[p] = 0;
      place(&patches[p], p, regrid, mass[p], world);
    }
    for (long step = 0; step < steps; ++step)
      for (long p = 0; p < n_patches; ++p)
        if (patches[p].me >= 0) {
          const double heat = spread(&patches[p], edge);
          app_check(heat > 0.999999 * before[p] && heat < 1.000001 * before[p] + 1e-6);
          app_check(flow(&patches[p]) == mass[p]);
        }
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
    free(patches[p].parts), free(patches[p].heat), free(patches[p].next);
  }
  app_check(left == total);
  free(patches), free(mine), free(mass), free(before);
  return app_end((double)left);
}
