// SPDX-License-Identifier: Apache-2.0
//
// The names of TinyProf's C++ interface over commlens.h: a program that marks its parts with `Events` and `Profiler`
// compiles unchanged and is profiled by commlens.  Needs C++11.  docs/guide/adopt.md describes the mapping.
//
// The names are those of the sources that the authors of TinyProf published, in all their forms: with one Profiler for
// the whole program or with an object that is passed on, with and without the flag of a common event.  They are global
// names as there.  Written from these declarations only; no code was taken over.
#ifndef COMMLENS_TINYPROF_HPP
#define COMMLENS_TINYPROF_HPP

#include <string>
#include <utility>

#include "commlens.h"

// The settings of a run.  commlens has its own (docs/reference/options.md): COMMLENS_OUTPUT for the file,
// COMMLENS_FLUSH_EVERY for the interval of copies, COMMLENS_AGGREGATORS for the number of writers.  The arguments here
// have no effect.
class Profiler {
 public:
  Profiler() noexcept {}
  Profiler(const std::string& /*output*/, double /*interval*/, int /*rank*/, int /*ranks*/, int /*executions*/) {}

  static Profiler& getInstance() noexcept {
    static Profiler only;
    return only;
  }

  static void start(const std::string& /*output*/, double /*interval*/, int /*rank*/, int /*ranks*/, int /*executions*/,
                    int /*mode*/ = 0, int /*aggregators*/ = 0) noexcept {}

  // Puts the events that follow into the regions of `path`, whose names `>` separates; an empty path into none.
  // commlens counts the executions of outermost regions itself, so `execution` has no effect, nor have the others.
  static void set_context(const std::string& path, int /*execution*/, int /*mode*/ = 0, int /*aggregators*/ = 0) {
    std::string& present = context();
    while (!present.empty()) {
      const std::string::size_type cut = present.rfind('>');
      commlens_end(present.c_str() + (cut == std::string::npos ? 0 : cut + 1));
      present.resize(cut == std::string::npos ? 0 : cut);
    }
    for (std::string::size_type at = 0; at < path.size();) {
      const std::string::size_type end = path.find('>', at) == std::string::npos ? path.size() : path.find('>', at);
      if (end > at) {
        const std::string name = path.substr(at, end - at);
        commlens_begin(name.c_str());
        present += (present.empty() ? "" : ">") + name;
      }
      at = end + 1;
    }
  }

  // Copies the counters of this process beside the output.  The profile itself is written in MPI_Finalize.
  static void dump() noexcept { commlens_flush(); }

 private:
  // The regions that set_context() began on this thread.
  static std::string& context() {
    static thread_local std::string path;
    return path;
  }
};

// A part of the program, or one iteration of a loop: a region that ends with the scope of this object.
//
// `tag` becomes the tag "tag" of the region.  `loop` is 0 for no loop, 1 for iterations that are counted separately, 2
// for iterations that are counted together; `iteration` counts from 0.  `common` says whether all processes have the
// event; commlens finds out by itself.
class Events {
 public:
  explicit Events(const std::string& name) : Events(name, std::string(), 0, 0) {}
  Events(const std::string& name, const std::string& tag) : Events(name, tag, 0, 0) {}
  Events(const std::string& name, int loop, int iteration) : Events(name, std::string(), loop, iteration) {}
  Events(const std::string& name, const std::string& tag, int loop, int iteration)
      : handle_(commlens_region(name.c_str())) {
    if (loop == 0) {
      commlens_begin_region(handle_);
    } else {
      commlens_iteration_begin(name.c_str(), loop == 1 ? COMMLENS_LOOP_EACH : COMMLENS_LOOP_SUM, iteration);
    }
    if (!tag.empty()) commlens_tag("tag", tag.c_str());
  }

  Events(const std::string& name, int /*common*/) : Events(name) {}
  Events(const std::string& name, int /*common*/, const std::string& tag) : Events(name, tag) {}
  Events(const std::string& name, int /*common*/, int loop, int iteration) : Events(name, loop, iteration) {}
  Events(const std::string& name, int /*common*/, const std::string& tag, int loop, int iteration)
      : Events(name, tag, loop, iteration) {}

  // With the Profiler first.
  template <typename... Rest>
  explicit Events(const Profiler& /*profiler*/, Rest&&... rest) : Events(std::forward<Rest>(rest)...) {}
  template <typename... Rest>
  explicit Events(const Profiler* /*profiler*/, Rest&&... rest) : Events(std::forward<Rest>(rest)...) {}

  ~Events() { commlens_end_region(handle_); }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

 private:
  commlens_region_t handle_;
};

#endif
