// SPDX-License-Identifier: Apache-2.0
//
// The interface of commlens for C++11 and later: objects that end what they have begun, however their scope is left.
// What each function does is said in commlens.h, which this only wraps: nothing here allocates or throws, and a name
// may go as soon as the constructor has returned.
#ifndef COMMLENS_HPP
#define COMMLENS_HPP

#include <string>

#include "commlens.h"

// An object that nobody keeps ends at once: compilers that can say so, do.
#if __cplusplus >= 201703L && __has_cpp_attribute(nodiscard) >= 201907L
#define COMMLENS_KEEP [[nodiscard]]
#else
#define COMMLENS_KEEP
#endif

namespace commlens {

// A name that is looked at once, for regions that are begun very often:
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

// The region from here to the end of the scope.  Belongs to its scope and thread, hence is neither copied nor moved.
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

// The loop from here to the end of the scope:
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

  // Begins the next iteration of the innermost loop: call it for an outer one only when the inner ones have ended.
  void iteration() const noexcept { commlens_loop_iteration(); }

 private:
  commlens_region_t handle_;
};

// A metric of the program's own.  Two of the same name and unit are the same; copies cost nothing.
class metric {
 public:
  explicit metric(const char* name, const char* unit = "") noexcept : handle_(commlens_metric(name, unit)) {}
  explicit metric(const std::string& name, const std::string& unit = std::string()) noexcept
      : metric(name.c_str(), unit.c_str()) {}
  void record(double value) const noexcept { commlens_record(handle_, value); }

 private:
  commlens_metric_t handle_;
};

// For regions that are no scope.
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
// Returns false when nothing is counted or it cannot be written.
inline bool flush() noexcept { return commlens_flush() == 0; }
inline bool flush_to(const char* folder) noexcept { return commlens_flush_to(folder) == 0; }

}  // namespace commlens

// The rest of this scope is the region `name`, which is looked at the first time only and has to be the same each time.
#define COMMLENS_REGION(name) COMMLENS_REGION_OF_LINE(name, __LINE__)
#define COMMLENS_REGION_OF_LINE(name, line) COMMLENS_REGION_NAMED(name, line)
#define COMMLENS_REGION_NAMED(name, line)                        \
  static const commlens::region_name commlens_name_##line(name); \
  const commlens::region commlens_region_##line(commlens_name_##line)

#endif
