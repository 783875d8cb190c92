// SPDX-License-Identifier: Apache-2.0
#include "core/state/python_frames.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/base/memory.h"
#include "core/base/say.h"
#include "core/process/modules.h"
#include "core/process/symbols.h"
#include "core/state/python_layout.h"
#include "core/state/python_lines.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace commlens::python {
namespace {

// The head of an object is the same in all versions.
constexpr std::uint64_t type_of_object = 8, size_of_object = 16, text_state = 32, bytes_begin = 32;
constexpr std::uint32_t text_is_compact = 1u << 5, text_is_ascii = 1u << 6;
constexpr std::uint32_t width_of(std::uint32_t state) noexcept { return state >> 2 & 7; }  // bytes of a character
constexpr std::uint64_t tag_bits = 3;
constexpr std::uint8_t not_of_python = 3;  // owners of frames from this one on: entries from C
constexpr unsigned most_skipped = 64;
constexpr std::uint64_t most_text = 4096, most_table = 1u << 20;

struct Interpreter {
  void* (*this_thread)() = nullptr;
  std::uint64_t code_type = 0, text_type = 0, bytes_type = 0;
  std::uint64_t begin = 0, end = 0;  // of its executable or library
  Layout layout{};
};
Interpreter interpreter;
std::atomic<int> is_known{0};  // not bool: on riscv64, exchange() of a byte needs libatomic

// Memory of the interpreter, which may be missing.
bool read(std::uint64_t from, void* to, std::size_t bytes) {
  if (from < 4096 || !read_memory(reinterpret_cast<const void*>(from), to, bytes)) return false;
#if defined(__SANITIZE_ADDRESS__)
  // The system call reads freed memory unnoticed: a plain access makes the sanitizer report it.
  if (void* const bad = __asan_region_is_poisoned(reinterpret_cast<void*>(from), bytes))
    static_cast<void>(*static_cast<volatile char*>(bad));
#endif
  return true;
}

template <class Value>
bool read(std::uint64_t from, Value& to) {
  return read(from, &to, sizeof to);
}

std::uint64_t loaded(std::uint64_t from) noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from), __ATOMIC_RELAXED);
}

// A part of the interpreter's memory, read at once.
class Block {
 public:
  static constexpr std::uint64_t bytes = 256;
  bool read_from(std::uint64_t from, std::uint64_t size) {
    begin_ = from;
    return from % sizeof(std::uint64_t) == 0 && size <= bytes && read(from, bytes_, size);
  }
  template <class Value = std::uint64_t>
  Value at(std::uint64_t offset) const noexcept {
    Value value;
    std::memcpy(&value, bytes_ + offset, sizeof value);
    return value;
  }
  // The word that contains the value at an offset.
  StackWord word(std::uint64_t offset) const noexcept {
    const std::uint64_t first = offset & ~std::uint64_t{7};
    return {reinterpret_cast<const std::uint64_t*>(begin_ + first), at(first)};
  }

 private:
  std::uint64_t begin_ = 0;
  char bytes_[bytes];
};

bool is_of_type(std::uint64_t object, std::uint64_t type) {
  std::uint64_t found = 0;
  return object % 8 == 0 && read(object + type_of_object, found) && found == type;
}

void add_utf8(std::string& text, std::uint32_t c) {
  const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      add(0xe0 | c >> 12);
    } else {
      add(0xf0 | (c >> 18 & 7));
      add(0x80 | (c >> 12 & 63));
    }
    add(0x80 | (c >> 6 & 63));
  }
  add(0x80 | (c & 63));
}

// Reads a str as UTF-8, and at most the first 4,096 characters.
bool read_text(std::uint64_t object, std::string& text) {
  const Layout& layout = interpreter.layout;
  std::uint64_t length = 0;
  std::uint32_t state = 0;
  if (!is_of_type(object, interpreter.text_type) || !read(object + size_of_object, length) ||
      !read(object + text_state, state))
    return false;
  const std::uint32_t width = width_of(state);
  const bool is_ascii = (state & text_is_ascii) != 0;
  if ((state & text_is_compact) == 0 || (width != 1 && width != 2 && width != 4)) return false;
  std::string raw(std::min(length, most_text) * width, '\0');
  if (!raw.empty() && !read(object + (is_ascii ? layout.text_ascii : layout.text_other), raw.data(), raw.size()))
    return false;
  if (is_ascii) {
    text = std::move(raw);
    return true;
  }
  for (std::size_t i = 0; i < raw.size(); i += width) {
    std::uint32_t character = 0;
    std::memcpy(&character, raw.data() + i, width);
    add_utf8(text, character);
  }
  return true;
}

bool read_bytes(std::uint64_t object, std::string& bytes) {
  std::uint64_t length = 0;
  if (!is_of_type(object, interpreter.bytes_type) || !read(object + size_of_object, length)) return false;
  bytes.assign(std::min(length, most_table), '\0');
  return bytes.empty() || read(object + bytes_begin, bytes.data(), bytes.size());
}

class Walk {
 public:
  explicit Walk(Frames& found) : found_(found) {}

  // Returns false if the memory is not as expected.
  bool from(std::uint64_t thread, const std::uint64_t* thread_word, unsigned most) {
    add({thread_word, thread});
    std::uint64_t frame = 0;
    if (thread == 0) return true;
    if (!find_first(thread, frame)) return false;
    for (unsigned walked = 0; frame != 0 && walked < most + most_skipped; ++walked) {
      if (!step(frame)) return false;
      if (found_.places.size() == most) break;
      add(frame_.word(layout_.frame_previous));
      frame = frame_.at(layout_.frame_previous);
    }
    return true;
  }

 private:
  void add(const StackWord& word) { found_.words.push_back(word); }

  bool find_first(std::uint64_t thread, std::uint64_t& frame) {
    if (!add_read(thread + layout_.thread_frame)) return false;
    if (layout_.in_cframe >= 0 && !add_read(found_.words.back().value + static_cast<std::uint64_t>(layout_.in_cframe)))
      return false;
    frame = found_.words.back().value;
    return true;
  }

  bool step(std::uint64_t frame) {
    const std::uint64_t last =
        std::max({layout_.frame_code, layout_.frame_previous, layout_.frame_instruction, layout_.frame_owner & ~7u});
    if (!frame_.read_from(frame, last + 8)) return false;
    add(frame_.word(layout_.frame_code));
    const bool is_entry = layout_.frame_owner != 0 && frame_.at<std::uint8_t>(layout_.frame_owner) >= not_of_python;
    if (is_entry) return true;
    add(frame_.word(layout_.frame_instruction));
    return read_code(frame_.at(layout_.frame_code) & ~tag_bits);
  }

  bool read_code(std::uint64_t code) {
    const std::uint64_t last = std::max(
        {layout_.code_file, layout_.code_function, layout_.code_first_line, layout_.code_lines, layout_.code_version});
    std::string table;
    SiteFacts place;
    if (!is_of_type(code, interpreter.code_type) || !code_.read_from(code, (last + 8) & ~std::uint64_t{7}))
      return false;
    if (!read_text(code_.at(layout_.code_file), place.module) ||
        !read_text(code_.at(layout_.code_function), place.build_id) || !read_bytes(code_.at(layout_.code_lines), table))
      return false;
    if (!add_words_of_code(table.size())) return false;
    // As tracebacks do.
    if (place.module.compare(0, 17, "<frozen importlib") == 0) return true;
    place.build_id.insert(0, python_function);
    const auto first_line = code_.at<std::uint32_t>(layout_.code_first_line);
    place.offset = line_at(layout_.lines, table, first_line, offset_of_instruction(code));
    found_.places.push_back(std::move(place));
    return true;
  }

  std::uint64_t offset_of_instruction(std::uint64_t code) const noexcept {
    if (layout_.code_bytes != 0) return frame_.at(layout_.frame_instruction) - code - layout_.code_bytes;
    const auto index = frame_.at<std::int32_t>(layout_.frame_instruction);
    return index < 0 ? 0 : static_cast<std::uint64_t>(index) * layout_.instruction_bytes;
  }

  // Adds the words that show that no other code object lies at the same address by now.  Without a version these are
  // parts of what the place was found by: another one may have its file's name, its function's or its table of lines at
  // the same address, too, but hardly of the same length with the same end.
  bool add_words_of_code(std::uint64_t table_size) {
    if (layout_.code_version != 0) {
      add(code_.word(layout_.code_version));
      return true;
    }
    add(code_.word(layout_.code_first_line));
    for (const std::uint32_t offset : {layout_.code_file, layout_.code_function}) {
      std::uint32_t state = 0;
      std::uint64_t length = 0;
      const std::uint64_t text = code_.at(offset);
      if (!read(text + text_state, state) || !read(text + size_of_object, length)) return false;
      const std::uint64_t begin = text + ((state & text_is_ascii) != 0 ? layout_.text_ascii : layout_.text_other);
      if (!add_object(offset, length, begin + (length + 1) * width_of(state))) return false;
    }
    // The line of module code is at the beginning of its table.
    const std::uint64_t begin = code_.at(layout_.code_lines) + bytes_begin;
    return add_object(layout_.code_lines, table_size, begin + table_size + 1) &&
           (table_size < 16 || (add_read(begin) && add_read(begin + 8)));
  }

  // Adds the address of an object that the code object refers to, its size, and its last 16 bytes up to `end`, which
  // need not be aligned.  The head of an object is longer than that.
  bool add_object(std::uint32_t offset, std::uint64_t size, std::uint64_t end) {
    add(code_.word(offset));
    add({reinterpret_cast<const std::uint64_t*>(code_.at(offset) + size_of_object), size});
    return add_read(end - 16) && add_read(end - 8);
  }

  bool add_read(std::uint64_t at) {
    std::uint64_t value = 0;
    if (!read(at, value)) return false;
    add({reinterpret_cast<const std::uint64_t*>(at), value});
    return true;
  }

  Frames& found_;
  const Layout& layout_ = interpreter.layout;
  Block frame_, code_;
};

// Memory that one system call reads: the blocks around some words.  A block lies in one page, so that it can be read if
// the word can.
class Gathered {
 public:
  // Returns false if there is no room.
  bool add(const StackWord& word) noexcept {
    const auto at = reinterpret_cast<std::uint64_t>(word.at);
    if (find(at) != nullptr) return true;
    if (count_ == most) return false;
    const std::uint64_t in_block = at % block_bytes;
    const bool is_inside = in_block <= block_bytes - sizeof(std::uint64_t);  // else it need not be aligned
    begin_[count_] = is_inside ? at - in_block : at;
    size_[count_++] = is_inside ? block_bytes : sizeof(std::uint64_t);
    return true;
  }

  // Returns whether all words that were added have their values.
  bool are_equal(const StackWord* first, const StackWord* end) noexcept {
    const int saved = errno;
    iovec here[most], there[most];
    std::size_t bytes = 0;
    for (int i = 0; i < count_; ++i) {
      here[i] = {bytes_[i], size_[i]};
      there[i] = {reinterpret_cast<void*>(begin_[i]), size_[i]};
      bytes += size_[i];
    }
    const auto blocks = static_cast<unsigned>(count_);
    const ssize_t n = process_vm_readv(getpid(), here, blocks, there, blocks, 0);
    const bool is_forbidden = n < 0 && errno != EFAULT;
    errno = saved;
    if (is_forbidden) return are_unchanged(first, static_cast<int>(end - first));
    return n == static_cast<ssize_t>(bytes) && std::all_of(first, end, [this](const StackWord& word) {
             return std::memcmp(find(reinterpret_cast<std::uint64_t>(word.at)), &word.value, sizeof word.value) == 0;
           });
  }

 private:
  static constexpr int most = 32;
  static constexpr std::uint64_t block_bytes = 256;

  // Returns the copy of a word, or null if no block contains it.
  const char* find(std::uint64_t at) const noexcept {
    for (int i = count_ - 1; i >= 0; --i) {
      if (at >= begin_[i] && at + sizeof(std::uint64_t) <= begin_[i] + size_[i]) return bytes_[i] + (at - begin_[i]);
    }
    return nullptr;
  }

  int count_ = 0;
  std::uint64_t begin_[most], size_[most];
  char bytes_[most][block_bytes];
};

// Returns the reason why the interpreter cannot be used.
std::string set_up(const void* found) {
  const auto beside = [found](const char* name) {
    return reinterpret_cast<std::uint64_t>(find_symbol_beside(found, name));
  };
  interpreter.this_thread = reinterpret_cast<void* (*)()>(reinterpret_cast<std::uint64_t>(found));
  interpreter.code_type = beside("PyCode_Type");
  interpreter.text_type = beside("PyUnicode_Type");
  interpreter.bytes_type = beside("PyBytes_Type");
  const std::vector<Module> modules = loaded_modules();
  if (const Module* const module = module_at(modules, interpreter.code_type)) {
    interpreter.begin = module->begin;
    interpreter.end = module->end;
  }
  const auto version = reinterpret_cast<const char* (*)()>(beside("Py_GetVersion"));
  if (version == nullptr) return "it has no version";
  return find_layout(version(), beside("_PyRuntime"), read, interpreter.layout);
}

}  // namespace

std::string find_interpreter() {
  // What is found stays loaded, even if the program closes it: either the program began with it, or dlsym() has found
  // it, and the dynamic linker then keeps it for us.
  const void* const found = find_symbol("PyGILState_GetThisThreadState", nullptr).address;
  if (found == nullptr || reinterpret_cast<void* (*)()>(reinterpret_cast<std::uint64_t>(found))() == nullptr) return {};
  std::string why_not = set_up(found);
  if (!why_not.empty()) return why_not;
  const Position here = position(true);
  if (here.frame == 0) return {};
  Frames frames;
  if (!Walk(frames).from(here.thread, &here.thread, 1)) return "its memory is not as expected";
  is_known = 1;
  return {};
}

bool is_used() noexcept { return is_known.load(std::memory_order_relaxed) != 0; }

Position position(bool is_shared) noexcept {
  const Layout& layout = interpreter.layout;
  Position at{reinterpret_cast<std::uint64_t>(interpreter.this_thread()), 0, 0};
  if (at.thread == 0) return at;
  const auto get = [is_shared](std::uint64_t from, std::uint64_t& value) {
    if (is_shared) return read(from, value);
    value = loaded(from);
    return true;
  };
  std::uint64_t frame = 0;
  if (!get(at.thread + layout.thread_frame, frame)) return at;
  if (layout.in_cframe >= 0 && (frame == 0 || !get(frame + static_cast<std::uint64_t>(layout.in_cframe), frame)))
    return at;
  if (frame != 0 && get(frame + layout.frame_instruction, at.instruction)) at.frame = frame;
  return at;
}

bool are_still_unchanged(const StackWord* words, int count) noexcept {
  for (const StackWord *word = words, *const end = words + count; word != end;) {
    Gathered gathered;
    const StackWord* const first = word;
    while (word != end && gathered.add(*word)) ++word;
    if (!gathered.are_equal(first, word)) return false;
  }
  return true;
}

Frames frames_at(std::uint64_t thread, const std::uint64_t* thread_word, unsigned most, bool is_shared) {
  Frames frames;
  if (Walk(frames).from(thread, thread_word, most)) return frames;
  // Unless another thread has just ended the interpreter.
  if (!is_shared && is_known.exchange(0) != 0)
    say("the memory of Python is not as expected: call paths have no Python frames from now on");
  return {{}, {{thread_word, ~thread}}};
}

bool is_interpreter(std::uint64_t address) noexcept {
  return address >= interpreter.begin && address < interpreter.end;
}

}  // namespace commlens::python
