// SPDX-License-Identifier: Apache-2.0
#include "core/base/unwind.h"

#include "core/base/memory.h"
#include "core/base/unwind_rows.h"
#include "core/base/unwind_walk.h"

namespace commlens {
namespace {

// Reads stack words.  Those that may be missing it reads many at a time, because each read is a system call.
class StackReader {
 public:
  StackReader(std::uint64_t sp, std::uint64_t stack_end) noexcept : sp_(sp), stack_end_(stack_end) {}

  bool read(std::uint64_t at, std::uint64_t& value) noexcept {
    if (at >= sp_ && at < stack_end_) {
      value = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_RELAXED);
      return true;
    }
    if (at - first_ >= bytes_ && !fill(at)) return false;
    value = block_[(at - first_) / sizeof value];
    return true;
  }

 private:
  static constexpr std::uint64_t page = smallest_page, most = 2048, most_below = 128;

  // The block lies in the page of the word: all of it can be read if the word can, even where read_memory() cannot
  // check it.  It begins below the word, because a saved frame pointer is read after the return address that lies above
  // it.
  bool fill(std::uint64_t at) noexcept {
    const std::uint64_t in_page = at % page, below = in_page < most_below ? in_page : most_below;
    const std::uint64_t rest = page - in_page + below;
    first_ = at - below;
    bytes_ = rest < most ? rest : most;
    if (read_memory(reinterpret_cast<const void*>(first_), block_, bytes_)) return true;
    bytes_ = 0;
    return false;
  }

  const std::uint64_t sp_, stack_end_;
  std::uint64_t first_ = 0, bytes_ = 0;
  std::uint64_t block_[most / sizeof(std::uint64_t)];
};

// The value of the frame pointer in the current frame.  A saved one is read only when a frame needs it: most never do,
// and then the result does not depend on the word.
struct FramePointer {
  enum State : std::uint8_t { passed, saved, known, unknown };
  State state;
  std::uint64_t value;  // saved: the address of the word
};

class Walk {
 public:
  enum Step : std::uint8_t { stepped, is_outermost, failed };
  static constexpr int no_words = -1;  // does not store the words on which the result depends

  Walk(StackFrame frame, StackWord* words, int most_words, FindTables find) noexcept
      : first_sp_(frame.sp),
        pc_(frame.pc),
        sp_(frame.sp),
        fp_{FramePointer::passed, frame.fp},
        words_(words),
        most_words_(most_words),
        find_(find),
        stack_end_(frame.stack_end),
        stack_(frame.sp, frame.stack_end) {}

  // Goes on to the caller.  A failed step leaves words and uses_fp unchanged.
  Step step() noexcept {
    const int words_before = count_;
    const bool used_fp = uses_fp_;
    const Step result = try_step();
    if (result == failed) {
      count_ = words_before;
      uses_fp_ = used_fp;
    }
    return result;
  }

  std::uint64_t pc() const noexcept { return pc_; }
  std::uint64_t sp() const noexcept { return sp_; }
  int words() const noexcept { return count_; }
  bool uses_fp() const noexcept { return uses_fp_; }

 private:
  Step try_step() noexcept {
    UnwindRow row;
    // A return address lies behind the call, which may be the last instruction of its function.
    const std::uint64_t call = pc_ - 1;
    if ((call < tables_.first || call >= tables_.behind) && !find_(call, tables_)) return failed;
    if (!find_row(tables_, call, row)) return failed;
    if (row.return_address.kind == RegisterRule::undefined) return is_outermost;
    std::uint64_t cfa = 0, return_address = 0;
    if (row.return_address.kind != RegisterRule::offset || !find_cfa(row.cfa, cfa)) return failed;
    if (cfa <= sp_ || cfa % sizeof cfa != 0) return failed;
    if (!read(cfa + row.return_address.offset_from_cfa, return_address)) return failed;
    return_address = without_signature(return_address);
    if (return_address == 0) return is_outermost;
    if (return_address >= first_sp_ && return_address < stack_end_) return failed;  // wrong tables: no code lies there
    restore_fp(row.fp, cfa);
    pc_ = return_address;
    sp_ = cfa;
    return stepped;
  }

  bool find_cfa(const CfaRule& rule, std::uint64_t& cfa) noexcept {
    if (rule.is_expression) return evaluate(rule.code, nullptr, true, cfa);
    if (!read_register(rule.reg, true, cfa)) return false;
    cfa += rule.offset;
    return true;
  }

  void restore_fp(const RegisterRule& rule, std::uint64_t cfa) noexcept {
    switch (rule.kind) {
      case RegisterRule::same: break;
      case RegisterRule::offset: fp_ = {FramePointer::saved, cfa + rule.offset_from_cfa}; break;
      case RegisterRule::expression: {
        // A function that aligns its stack: it is saved where it points to, which the CFA depends on already.
        std::uint64_t address = 0;
        const bool is_found = evaluate(rule.code, &cfa, false, address);
        fp_ = {is_found ? FramePointer::saved : FramePointer::unknown, address};
        break;
      }
      default: fp_ = {FramePointer::unknown, 0}; break;
    }
  }

  // Reads a word, and notes that the result depends on it, unless that does not matter.
  bool read(std::uint64_t at, std::uint64_t& value) noexcept {
    if (at < first_sp_ || at % sizeof value != 0) return false;
    if (most_words_ == no_words) return stack_.read(at, value);
    if (count_ == most_words_ || !stack_.read(at, value)) return false;
    words_[count_++] = {reinterpret_cast<const std::uint64_t*>(at), value};
    return true;
  }

  // may_depend: the result may depend on what it did not depend on so far.
  bool read_register(std::uint64_t reg, bool may_depend, std::uint64_t& value) noexcept {
    switch (reg) {
      case dwarf_sp: value = sp_; return true;
      case dwarf_return: value = pc_; return return_column_is_pc;
      case dwarf_fp: return (may_depend || fp_.state == FramePointer::known) && read_fp(value);
      default: return false;
    }
  }

  bool read_fp(std::uint64_t& value) noexcept {
    switch (fp_.state) {
      case FramePointer::passed: uses_fp_ = true; break;
      case FramePointer::saved:
        if (!read(fp_.value, fp_.value)) return false;
        break;
      case FramePointer::known: break;
      case FramePointer::unknown: return false;
    }
    fp_.state = FramePointer::known;
    value = fp_.value;
    return true;
  }

  // Computes a DWARF expression, which begins with *initial on its stack, if that is not null.
  bool evaluate(DwarfCursor code, const std::uint64_t* initial, bool may_depend, std::uint64_t& result) noexcept;
  bool push_operand(DwarfCursor& code, std::uint8_t operation, bool may_depend, std::uint64_t& value) noexcept;

  const std::uint64_t first_sp_;
  std::uint64_t pc_, sp_;
  FramePointer fp_;
  StackWord* const words_;
  const int most_words_;
  const FindTables find_;
  int count_ = 0;
  bool uses_fp_ = false;
  const std::uint64_t stack_end_;
  UnwindTables tables_;  // of the object found last: callers often lie in the same one
  StackReader stack_;
};

bool Walk::push_operand(DwarfCursor& code, std::uint8_t operation, bool may_depend, std::uint64_t& value) noexcept {
  constexpr std::uint8_t lit0 = 0x30, lit31 = 0x4f, breg0 = 0x70, breg31 = 0x8f;
  if (operation >= lit0 && operation <= lit31) {
    value = operation - lit0;
    return true;
  }
  if (operation >= breg0 && operation <= breg31) {
    const auto offset = static_cast<std::uint64_t>(code.sleb());
    if (!read_register(operation - breg0, may_depend, value)) return false;
    value += offset;
    return true;
  }
  const auto extended = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
  switch (operation) {
    case 0x08: value = code.number<std::uint8_t>(); return true;            // DW_OP_const1u
    case 0x09: value = extended(code.number<std::int8_t>()); return true;   // DW_OP_const1s
    case 0x0a: value = code.number<std::uint16_t>(); return true;           // DW_OP_const2u
    case 0x0b: value = extended(code.number<std::int16_t>()); return true;  // DW_OP_const2s
    case 0x0c: value = code.number<std::uint32_t>(); return true;           // DW_OP_const4u
    case 0x0d: value = extended(code.number<std::int32_t>()); return true;  // DW_OP_const4s
    default: return false;
  }
}

bool Walk::evaluate(DwarfCursor code, const std::uint64_t* initial, bool may_depend, std::uint64_t& result) noexcept {
  constexpr int most = 8;
  std::uint64_t stack[most];
  int depth = 0;
  if (initial != nullptr) stack[depth++] = *initial;
  while (!code.is_at_end()) {
    const auto operation = code.number<std::uint8_t>();
    const bool is_binary = operation == 0x1a || operation == 0x22 || operation == 0x24 || operation == 0x2a;
    if (operation == 0x06 || operation == 0x23) {  // DW_OP_deref, DW_OP_plus_uconst
      if (depth == 0) return false;
      std::uint64_t& top = stack[depth - 1];
      if (operation == 0x23) {
        top += code.uleb();
      } else if (!may_depend || !read(top, top)) {
        return false;
      }
    } else if (is_binary) {
      if (depth < 2) return false;
      const std::uint64_t right = stack[--depth];
      std::uint64_t& left = stack[depth - 1];
      switch (operation) {
        case 0x1a: left &= right; break;                                                              // DW_OP_and
        case 0x22: left += right; break;                                                              // DW_OP_plus
        case 0x24: left = right < 64 ? left << right : 0; break;                                      // DW_OP_shl
        default: left = static_cast<std::int64_t>(left) >= static_cast<std::int64_t>(right) ? 1 : 0;  // DW_OP_ge
      }
    } else {
      if (depth == most || !push_operand(code, operation, may_depend, stack[depth])) return false;
      ++depth;
    }
  }
  if (!code.is_good() || depth == 0) return false;
  result = stack[depth - 1];
  return true;
}

}  // namespace

Unwound unwind_by(FindTables find, StackFrame frame, std::uint64_t* returns, int most, StackWord* words,
                  int most_words) noexcept {
  Walk walk(frame, words, most_words, find);
  int frames = 0;
  Unwound::End end = Unwound::full;
  while (frames < most) {
    const Walk::Step step = walk.step();
    if (step != Walk::stepped) {
      end = step == Walk::is_outermost ? Unwound::outermost : Unwound::cut;
      break;
    }
    returns[frames++] = walk.pc();
  }
  return {frames, walk.words(), walk.uses_fp(), end};
}

#if defined(COMMLENS_AARCH64)
// Walks from here to the function of the record: only its tables know where its frame ends.
__attribute__((noinline)) std::uint64_t sp_after_return(const void* record) noexcept {
  constexpr int most_frames = 16, most_words = 3 * most_frames;
  const auto at = reinterpret_cast<std::uint64_t>(record);
  StackFrame here{0, 0, 0, at + 2 * sizeof at};
  asm volatile("adr %0, 1f\n1: mov %1, sp\n mov %2, x29" : "=r"(here.pc), "=r"(here.sp), "=r"(here.fp));
  StackWord words[most_words];
  Walk walk(here, words, most_words, find_tables);
  for (int i = 0; i < most_frames; ++i) {
    if (walk.step() != Walk::stepped) return 0;
    if (walk.sp() > at) return walk.sp();
  }
  return 0;
}
#else
std::uint64_t sp_after_return(const void* record) noexcept {
  return reinterpret_cast<std::uint64_t>(record) + 2 * sizeof(std::uint64_t);
}
#endif

namespace {

Caller caller_by(Walk& walk, std::uint64_t record, std::uint64_t return_address) noexcept {
  for (;;) {
    if (walk.step() != Walk::stepped) return Caller::unknown;  // also the end of a stack that the record is not on
    if (walk.sp() > record) return walk.pc() == return_address ? Caller::is_one : Caller::is_none;
  }
}

}  // namespace

FoundCaller find_caller(StackFrame frame, const void* record, std::uint64_t return_address, StackWord* words,
                        int most_words) noexcept {
  const auto at = reinterpret_cast<std::uint64_t>(record);
  if (!can_unwind || frame.sp == 0) return {Caller::unknown, 0, false};
  if (frame.sp > at) return {Caller::is_none, 0, false};  // the record lies in a frame that is no longer there
  Walk noting(frame, words, most_words, find_tables);
  const Caller found = caller_by(noting, at, return_address);
  if (found != Caller::unknown) return {found, noting.words(), noting.uses_fp()};
  Walk walk(frame, nullptr, Walk::no_words, find_tables);
  return {caller_by(walk, at, return_address), 0, false};
}

Unwound unwind(StackFrame frame, std::uint64_t* returns, int most, StackWord* words, int most_words) noexcept {
  return unwind_by(find_tables, frame, returns, most, words, most_words);
}

}  // namespace commlens
