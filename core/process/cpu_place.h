// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <string>

namespace commlens {

// The parts of a node that contain all CPUs of a set, by numbers; -1: the CPUs lie in several, or it is not known.
struct CpuPlace {
  int socket = -1, numa = -1, complex = -1;  // complex: cores with a common cache of level 3
};

// root: what is /sys/devices/system
CpuPlace place_of(const cpu_set_t& cpus, const std::string& root = "/sys/devices/system");

}  // namespace commlens
