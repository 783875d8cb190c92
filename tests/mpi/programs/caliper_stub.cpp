// SPDX-License-Identifier: Apache-2.0
// Stands for Caliper's library: no registry has it.  It keeps a stack of what is open, as Caliper does, and says at the
// end what it saw and whether all came to an end; so a test sees that the calls still arrive when somebody listens.
#include <cstdio>
#include <string>
#include <vector>

#include "adopt_caliper.h"

namespace {
constexpr int as_value = 1, nested = 256;

struct Attribute {
  std::string name;
  int properties;
};
std::vector<Attribute>& attributes() {
  static std::vector<Attribute> all{{"none", 0}, {"region", nested}, {"loop", nested}, {"phase", nested}};
  return all;
}

struct Seen {
  std::vector<std::string> open;
  int begins = 0, wrong = 0;
  ~Seen() { std::printf("caliper saw %d begin, %zu left open, %d wrong\n", begins, open.size(), wrong); }
} seen;

void begin(const std::string& what) {
  ++seen.begins;
  seen.open.push_back(what);
}
void end(const std::string& what) {
  if (seen.open.empty() || seen.open.back().compare(0, what.size(), what) != 0) {
    ++seen.wrong;
  } else {
    seen.open.pop_back();
  }
}
std::string name_of(cali_id_t attribute) { return attributes().at(attribute).name; }
}  // namespace

extern "C" {
cali_id_t cali_loop_attr_id = 2;
cali_id_t cali_create_attribute(const char* name, int, int properties) {
  attributes().push_back({name, properties});
  return attributes().size() - 1;
}
cali_id_t cali_find_attribute(const char* name) {
  for (cali_id_t i = 0; i < attributes().size(); ++i) {
    if (attributes()[i].name == name) return i;
  }
  return ~cali_id_t{0};
}
cali_id_t cali_make_loop_iteration_attribute(const char* name) {
  const std::string full = std::string("iteration#") + name;
  const cali_id_t found = cali_find_attribute(full.c_str());
  return found != ~cali_id_t{0} ? found : cali_create_attribute(full.c_str(), 2, as_value);
}
const char* cali_attribute_name(cali_id_t a) {
  return a < attributes().size() ? attributes()[a].name.c_str() : nullptr;
}
int cali_attribute_properties(cali_id_t a) { return a < attributes().size() ? attributes()[a].properties : 0; }
// As in Caliper, one of these functions may call another one.
void cali_begin_region(const char* name) { cali_begin_string(1, name); }
void cali_end_region(const char* name) { cali_safe_end_string(1, name); }
void cali_begin_phase(const char* name) { cali_begin_string(3, name); }
void cali_end_phase(const char*) { cali_end(3); }
void cali_begin_comm_region(const char* name) { begin("comm.region=" + std::string(name)); }
void cali_end_comm_region(const char* name) { end("comm.region=" + std::string(name)); }
void cali_begin_string(cali_id_t a, const char* value) { begin(name_of(a) + "=" + value); }
void cali_begin_int(cali_id_t a, int value) { begin(name_of(a) + "=" + std::to_string(value)); }
void cali_end(cali_id_t a) { end(name_of(a) + "="); }
void cali_safe_end_string(cali_id_t a, const char* value) { end(name_of(a) + "=" + value); }
void cali_begin_string_byname(const char* name, const char* value) {
  cali_begin_string(cali_find_attribute(name), value);
}
void cali_end_byname(const char* name) { cali_end(cali_find_attribute(name)); }
}

namespace cali {
Function::Function(const char* name) { cali_begin_region(name); }
Function::~Function() { cali_end(1); }
ScopeAnnotation::ScopeAnnotation(const char* name) { begin(std::string("region=") + name); }
ScopeAnnotation::~ScopeAnnotation() { cali_end(1); }

struct Loop::Impl {
  cali_id_t iterations;
  bool is_open;
};
Loop::Loop(const char* name) : impl(new Impl{cali_make_loop_iteration_attribute(name), true}) {
  cali_begin_string(cali_loop_attr_id, name);
}
Loop::Loop(const Loop& other) : impl(new Impl{other.impl->iterations, false}) {}
Loop::~Loop() {
  end();
  delete impl;
}
void Loop::end() {
  if (impl->is_open) cali_end(cali_loop_attr_id);
  impl->is_open = false;
}
Loop::Iteration Loop::iteration(int i) const { return Iteration(impl, i); }
Loop::Iteration::Iteration(const Impl* of, int i) : impl(of) { cali_begin_int(of->iterations, i); }
Loop::Iteration::~Iteration() { cali_end(impl->iterations); }
}  // namespace cali
