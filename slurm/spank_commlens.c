// SPDX-License-Identifier: Apache-2.0
// SPANK plug-in for Slurm: preloads commlens into every job, and gives srun, sbatch and salloc the option
// --commlens=on|off.  docs/guide/site-wide.md describes how to install it.
//
//     optional spank_commlens.so library=/opt/commlens/lib/commlens/libcommlens-any.so default=on
//
// It only changes two variables of the environment of tasks.  No mistake in its configuration fails a job: every
// function returns success, and one line per job says what is wrong.
#include <limits.h>
#include <slurm/spank.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(commlens, 1)

// The user's choice: --commlens=on or off.
enum choice { no_choice, chosen_on, chosen_off };
static enum choice choice = no_choice;

static int note_choice(int value, const char* text, int is_remote) {
  (void)value;
  (void)is_remote;
  if (text != NULL && strcmp(text, "on") == 0) {
    choice = chosen_on;
  } else if (text != NULL && strcmp(text, "off") == 0) {
    choice = chosen_off;
  } else {
    slurm_error("--commlens=%.20s is invalid; use on or off", text == NULL ? "" : text);
    return ESPANK_BAD_ARG;
  }
  return ESPANK_SUCCESS;
}

static char option_name[] = "commlens", option_values[] = "on|off",
            option_help[] = "measure MPI with commlens, or do not";
static struct spank_option option = {option_name, option_values, option_help, 1, 0, note_choice};

int slurm_spank_init(spank_t spank, int count, char** arguments) {
  (void)count;
  (void)arguments;
  spank_option_register(spank, &option);
  return ESPANK_SUCCESS;
}

// Returns the value of an argument NAME=VALUE of the line in plugstack.conf; the last one counts.
static const char* argument(const char* name, int count, char** arguments) {
  const size_t length = strlen(name);
  const char* value = NULL;
  for (int i = 0; i < count; ++i) {
    if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '=') value = arguments[i] + length + 1;
  }
  return value;
}

static bool is_one_of(const char* text, const char* const* words) {
  for (; *words != NULL; ++words) {
    if (strcmp(text, *words) == 0) return true;
  }
  return false;
}

// Prints one line to stderr of the job.  The steps of a job inherit the variable by which only the first does.
static void complain(spank_t spank, const char* what, const char* about) {
  char said[2];
  uint32_t task = 0;
  if (spank_getenv(spank, "SPANK_COMMLENS_SAID", said, sizeof said) == ESPANK_SUCCESS) return;
  spank_setenv(spank, "SPANK_COMMLENS_SAID", "1", 1);
  if (spank_get_item(spank, S_TASK_GLOBAL_ID, &task) == ESPANK_SUCCESS && task != 0) return;
  slurm_spank_log("commlens: %s%.200s; the job runs unprofiled", what, about);
}

// Adds the library to LD_PRELOAD, behind what the user has there.
static void preload(spank_t spank, const char* library) {
  char before[16 << 10] = "", all[sizeof before + PATH_MAX + 1];
  const spank_err_t error = spank_getenv(spank, "LD_PRELOAD", before, sizeof before);
  if (error != ESPANK_SUCCESS && error != ESPANK_ENV_NOEXIST) return complain(spank, "LD_PRELOAD is too long", "");
  if (strstr(before, library) != NULL) return;
  const int n = snprintf(all, sizeof all, "%s%s%s", before, *before == '\0' ? "" : ":", library);
  if (n < 0 || n >= (int)sizeof all) return complain(spank, "the path of the library is too long", "");
  spank_setenv(spank, "LD_PRELOAD", all, 1);
}

// Runs as the user, in each task and each batch script, before its program is executed.
int slurm_spank_task_init(spank_t spank, int count, char** arguments) {
  static const char* const no[] = {"0", "off", "no", "false", NULL};
  char enabled[16] = "";
  if (choice == chosen_off) {
    spank_setenv(spank, "COMMLENS_ENABLE", "0", 1);
    return ESPANK_SUCCESS;
  }
  const char* const usual = argument("default", count, arguments);
  if (choice == no_choice && usual != NULL && is_one_of(usual, no)) return ESPANK_SUCCESS;
  spank_getenv(spank, "COMMLENS_ENABLE", enabled, sizeof enabled);
  if (is_one_of(enabled, no)) {
    if (choice != chosen_on) return ESPANK_SUCCESS;
    spank_setenv(spank, "COMMLENS_ENABLE", "1", 1);  // a step with --commlens=on in a job with --commlens=off
  }
  const char* const library = argument("library", count, arguments);
  if (library == NULL) {
    complain(spank, "plugstack.conf names no library=", "");
  } else if (strpbrk(library, ": ") != NULL) {
    complain(spank, "the path of a library must not contain a colon or a blank: ", library);
  } else if (access(library, R_OK) != 0) {
    complain(spank, "there is no ", library);
  } else {
    preload(spank, library);
  }
  return ESPANK_SUCCESS;
}
