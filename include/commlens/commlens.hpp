// SPDX-License-Identifier: Apache-2.0
//
// The C++11 interface of commlens: objects whose destructors end regions and loops, also when an exception leaves the
// scope.  commlens.h describes the functions that this file wraps.  Nothing here allocates or throws.  A constructor
// copies its texts, so the caller may destroy them afterwards.
#ifndef COMMLENS_HPP
#define COMMLENS_HPP

#include <string>

#include "commlens.h"

// Warns about a region or loop without a variable: the temporary object would end it at once.
#if __cplusplus >= 201703L && __has_cpp_attribute(nodiscard) >= 201907L
#define COMMLENS_KEEP [[nodiscard]]
#else
#define COMMLENS_KEEP
#endif

namespace commlens {

// The handle of a region that begins very often, so that its name is looked up only once:
//
//   static const commlens::region_name name("update cell");
//   commlens::region here(name);
class region_name {
 public:
  explicit region_name(const char* name) noexcept : handle_(commlens_region(name)) {}
  explicit region_name(const std::string& name) noexcept : region_name(name.c_str()) {}
  commlens_region_t handle() const noexcept { return handle_; }

 private:
  commlens_region_t handle_;
};

// A region that ends with the scope of this object.  It belongs to one scope and one thread, so it cannot be copied or
// moved.
class region {
 public:
  COMMLENS_KEEP explicit region(const region_name& name) noexcept : handle_(name.handle()) {
    commlens_begin_region(handle_);
  }
  COMMLENS_KEEP explicit region(const char* name) noexcept : region(region_name(name)) {}
  COMMLENS_KEEP explicit region(const std::string& name) noexcept : region(region_name(name)) {}
  ~region() { commlens_end_region(handle_); }
  region(const region&) = delete;
  region& operator=(const region&) = delete;

 private:
  commlens_region_t handle_;
};

enum loop_mode { sum = COMMLENS_LOOP_SUM, each = COMMLENS_LOOP_EACH };

// A loop that ends with the scope of this object:
//
//   commlens::loop steps("time steps", commlens::each);
//   while (...) {
//     steps.iteration();
//     ...
//   }
class loop {
 public:
  COMMLENS_KEEP explicit loop(const char* name, loop_mode mode = sum) noexcept : handle_(commlens_region(name)) {
    commlens_loop_begin(name, mode);
  }
  COMMLENS_KEEP explicit loop(const std::string& name, loop_mode mode = sum) noexcept : loop(name.c_str(), mode) {}
  ~loop() { commlens_end_region(handle_); }
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  // Begins the next iteration of the thread's innermost loop.  Call it for an outer loop only when all inner loops have
  // ended.
  void iteration() const noexcept { commlens_loop_iteration(); }

 private:
  commlens_region_t handle_;
};

// One iteration of a loop, `number` from 0, that ends with the scope of this object: for programs that have no scope
// around their loop, as with a function for each step.
class iteration {
 public:
  COMMLENS_KEEP explicit iteration(const char* name, long number, loop_mode mode = sum) noexcept
      : handle_(commlens_region(name)) {
    commlens_iteration_begin(name, mode, number);
  }
  COMMLENS_KEEP explicit iteration(const std::string& name, long number, loop_mode mode = sum) noexcept
      : iteration(name.c_str(), number, mode) {}
  ~iteration() { commlens_end_region(handle_); }
  iteration(const iteration&) = delete;
  iteration& operator=(const iteration&) = delete;

 private:
  commlens_region_t handle_;
};

// A metric: a number that the program records.  Objects with the same name and unit are the same metric; copies cost
// nothing.
class metric {
 public:
  explicit metric(const char* name, const char* unit = "") noexcept : handle_(commlens_metric(name, unit)) {}
  explicit metric(const std::string& name, const std::string& unit = std::string()) noexcept
      : metric(name.c_str(), unit.c_str()) {}
  void record(double value) const noexcept { commlens_record(handle_, value); }

 private:
  commlens_metric_t handle_;
};

// Begin and end a region that is not a scope.
inline void begin(const char* name) noexcept { commlens_begin(name); }
inline void begin(const std::string& name) noexcept { commlens_begin(name.c_str()); }
inline void end(const char* name = nullptr) noexcept { commlens_end(name); }
inline void end(const std::string& name) noexcept { commlens_end(name.c_str()); }

inline void tag(const char* name, const char* value) noexcept { commlens_tag(name, value); }
inline void tag(const std::string& name, const std::string& value) noexcept { tag(name.c_str(), value.c_str()); }

inline const char* version() noexcept { return commlens_version(); }
inline bool active() noexcept { return commlens_active() != 0; }
inline void pause() noexcept { commlens_pause(); }
inline void resume() noexcept { commlens_resume(); }
inline void reset() noexcept { commlens_reset(); }
// Both return false if nothing is counted, or if the copy cannot be written.
inline bool flush() noexcept { return commlens_flush() == 0; }
inline bool flush_to(const char* folder) noexcept { return commlens_flush_to(folder) == 0; }

}  // namespace commlens

// Makes the rest of this scope the region `name`.  The name is looked up at the first execution only, so it must always
// be the same.
#define COMMLENS_REGION(name) COMMLENS_REGION_OF_LINE(name, __LINE__)
#define COMMLENS_REGION_OF_LINE(name, line) COMMLENS_REGION_NAMED(name, line)
#define COMMLENS_REGION_NAMED(name, line)                        \
  static const commlens::region_name commlens_name_##line(name); \
  const commlens::region commlens_region_##line(commlens_name_##line)

#endif
