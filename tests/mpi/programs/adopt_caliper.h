// SPDX-License-Identifier: Apache-2.0
// The part of Caliper's interface that programs use by its macros: what caliper_stub.cpp defines in its place.
#pragma once

#include <cstdint>

extern "C" {
using cali_id_t = std::uint64_t;
extern cali_id_t cali_loop_attr_id;
cali_id_t cali_create_attribute(const char* name, int type, int properties);
cali_id_t cali_find_attribute(const char* name);
cali_id_t cali_make_loop_iteration_attribute(const char* name);
const char* cali_attribute_name(cali_id_t attribute);
int cali_attribute_properties(cali_id_t attribute);
void cali_begin_region(const char* name);
void cali_end_region(const char* name);
void cali_begin_phase(const char* name);
void cali_end_phase(const char* name);
void cali_begin_comm_region(const char* name);
void cali_end_comm_region(const char* name);
void cali_begin_string(cali_id_t attribute, const char* value);
void cali_begin_int(cali_id_t attribute, int value);
void cali_end(cali_id_t attribute);
void cali_safe_end_string(cali_id_t attribute, const char* value);
void cali_begin_string_byname(const char* name, const char* value);
void cali_end_byname(const char* name);
}

namespace cali {

class Function {
 public:
  Function(const char* name);
  ~Function();
  Function(const Function&) = delete;
};

class ScopeAnnotation {
 public:
  explicit ScopeAnnotation(const char* name);
  ~ScopeAnnotation();
  ScopeAnnotation(const ScopeAnnotation&) = delete;
};

class Loop {
  struct Impl;
  Impl* impl;

 public:
  class Iteration {
    const Impl* impl;

   public:
    Iteration(const Impl* impl, int i);
    ~Iteration();
  };
  Loop(const char* name);
  Loop(const Loop& other);
  ~Loop();
  Iteration iteration(int i) const;
  void end();
};

}  // namespace cali
