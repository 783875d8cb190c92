// SPDX-License-Identifier: Apache-2.0
#include "core/base/options.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "core/base/config_file.h"
#include "tests/unit/check.h"

extern char** environ;

namespace {
bool is_set_user_id = false;
}

// getauxval(), as the linker calls it (--wrap, CMakeLists.txt).
extern "C" unsigned long __real_getauxval(unsigned long type);
extern "C" unsigned long __wrap_getauxval(unsigned long type) {
  return type == AT_SECURE ? static_cast<unsigned long>(is_set_user_id) : __real_getauxval(type);
}

namespace commlens {
namespace {

// No COMMLENS_ variable but those a test sets, and a configuration file of its own.
class Setting {
 public:
  Setting() {
    clear();
    set("COMMLENS_CONFIG", "/nonexistent/commlens.conf");
  }
  ~Setting() {
    clear();
    if (!path_.empty()) unlink(path_.c_str());
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

  Setting& set(const char* name, const char* value) {
    setenv(name, value, 1);
    return *this;
  }
  Setting& file(const std::string& text) {
    char path[] = "/tmp/commlens-options-XXXXXX";
    const int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    path_ = path;
    std::ofstream(path_) << text;
    return set("COMMLENS_CONFIG", path);
  }
  const std::string& path() const { return path_; }

 private:
  static void clear() {
    for (char** entry = environ; *entry != nullptr;) {
      const std::string variable = *entry;
      if (variable.rfind("COMMLENS_", 0) != 0) {
        ++entry;
      } else {
        unsetenv(variable.substr(0, variable.find('=')).c_str());
        entry = environ;
      }
    }
  }
  std::string path_;
};

bool one_warning(const Options& options, const std::string& part) {
  return options.warnings().size() == 1 && options.warnings()[0].find(part) != std::string::npos;
}

}  // namespace

TEST(without_environment_and_file_the_defaults_hold) {
  Setting setting;
  unsetenv("COMMLENS_CONFIG");
  const Options options = Options::read();
  for (int i = 0; i < option_count; ++i) {
    if (access("/etc/commlens.conf", F_OK) == 0) break;  // a machine where commlens is configured
    CHECK_EQ(options.text(static_cast<Option>(i)), std::string(option_facts[i].initial));
  }
  CHECK(options.warnings().empty());
}

TEST(the_file_wins_over_the_default_and_the_environment_over_the_file) {
  Setting setting;
  setting.file("# ours\n\n  output =  from file.db \nquiet=1 # quiet\ncallsites = off\n");
  const Options from_file = Options::read();
  CHECK_EQ(from_file.text(Option::output), std::string("from file.db"));
  CHECK(from_file.on(Option::quiet));
  CHECK(!from_file.on(Option::callsites));
  CHECK(from_file.on(Option::enable));
  CHECK(from_file.warnings().empty());
  setting.set("COMMLENS_OUTPUT", "from environment.db").set("COMMLENS_QUIET", "0");
  const Options both = Options::read();
  CHECK_EQ(both.text(Option::output), std::string("from environment.db"));
  CHECK(!both.on(Option::quiet));
  CHECK(!both.on(Option::callsites));
  CHECK(both.warnings().empty());
}

TEST(a_switch_understands_its_words_and_nothing_else) {
  for (const char* yes : {"1", "on", "yes", "true"}) {
    Setting setting;
    setting.set("COMMLENS_QUIET", yes);
    const Options options = Options::read();
    CHECK(options.on(Option::quiet));
  }
  for (const char* no : {"0", "off", "no", "false"}) {
    Setting setting;
    setting.set("COMMLENS_CALLSITES", no);
    const Options options = Options::read();
    CHECK(!options.on(Option::callsites));
  }
  for (const char* neither : {"", "2", "maybe", " 1", "on\n"}) {
    Setting setting;
    setting.file("quiet = 1\n").set("COMMLENS_QUIET", neither).set("COMMLENS_CALLSITES", "1");
    const Options options = Options::read();
    CHECK(options.on(Option::quiet));  // as it was before
    CHECK(one_warning(options, "COMMLENS_QUIET"));
  }
}

TEST(a_wrong_choice_is_answered_with_the_choices) {
  Setting setting;
  unsetenv("COMMLENS_CONFIG");
  setting.set("COMMLENS_MATRIX", "everything");
  const std::vector<std::string> warnings = Options::read().warnings();
  CHECK_EQ(warnings.size(), 1u);
  CHECK_EQ(warnings[0], std::string("COMMLENS_MATRIX: 'everything' is invalid; use off, p2p or all; ") +
                            option_facts[static_cast<int>(Option::matrix)].initial + " is used instead");
}

TEST(a_number_is_whole_and_not_negative) {
  for (const char* number : {"0", "7", "999999999"}) {
    Setting setting;
    setting.set("COMMLENS_PATIENCE", number);
    unsetenv("COMMLENS_CONFIG");
    CHECK_EQ(Options::read().number(Option::patience), std::strtoul(number, nullptr, 10));
  }
  for (const char* none : {"", "-1", "1.5", "ten", "1s", " 1", "10000000000000000000000"}) {
    Setting setting;
    setting.file("patience = 12\n").set("COMMLENS_PATIENCE", none);
    const Options options = Options::read();
    CHECK_EQ(options.number(Option::patience), 12u);
    CHECK(one_warning(options, "COMMLENS_PATIENCE"));
  }
}

TEST(a_choice_is_one_of_its_words) {
  for (const char* choice : {"full", "summary"}) {
    Setting setting;
    setting.set("COMMLENS_DETAIL", choice);
    unsetenv("COMMLENS_CONFIG");
    CHECK_EQ(Options::read().text(Option::detail), std::string(choice));
  }
  for (const char* none : {"", "all", "summar", "full summary", "Full", " "}) {
    Setting setting;
    setting.file("detail = summary\n").set("COMMLENS_DETAIL", none);
    const Options options = Options::read();
    CHECK_EQ(options.text(Option::detail), std::string("summary"));
    CHECK(one_warning(options, "COMMLENS_DETAIL"));
  }
}

TEST(an_unknown_variable_is_named_once_and_ignored) {
  Setting setting;
  setting.file("").set("COMMLENS_OUTPTU", "x.db").set("COMMLENSE", "not ours").set("MY_COMMLENS_X", "not ours");
  const Options options = Options::read();
  CHECK(one_warning(options, "COMMLENS_OUTPTU"));
  CHECK_EQ(options.text(Option::output), std::string(option_facts[static_cast<int>(Option::output)].initial));
}

TEST(an_unknown_variable_gets_the_option_most_like_it) {
  const std::pair<const char*, const char*> cases[] = {
      {"COMMLENS_OUTPTU", "; did you mean COMMLENS_OUTPUT?"},
      {"COMMLENS_CALLSITE", "; did you mean COMMLENS_CALLSITES?"},
      {"COMMLENS_MATRIX_PAIR", "; did you mean COMMLENS_MATRIX_PAIRS?"},
      {"COMMLENS_output", " (docs/reference/options.md lists all)"},
      {"COMMLENS_FOO", " (docs/reference/options.md lists all)"},
      {"COMMLENS_", " (docs/reference/options.md lists all)"},
  };
  for (const auto& [name, hint] : cases) {
    Setting setting;
    setting.file("").set(name, "x");
    CHECK(one_warning(Options::read(), std::string("unknown variable ") + name + "; ignored" + hint));
  }
}

TEST(a_share_that_is_none_is_refused) {
  Setting setting;
  setting.file("");
  CHECK_EQ(Options::read().text(Option::sample), std::string("1"));
  setting.set("COMMLENS_SAMPLE", "0.25");
  CHECK_EQ(Options::read().text(Option::sample), std::string("0.25"));
  for (const char* const wrong : {"", "2", "10%", "-1"}) {
    setting.set("COMMLENS_SAMPLE", wrong);
    const Options options = Options::read();
    CHECK_EQ(options.text(Option::sample), std::string("1"));
    CHECK(one_warning(options, "COMMLENS_SAMPLE: '" + std::string(wrong) + "' is invalid; use a number from 0 to 1"));
  }
}

TEST(a_share_in_the_file_counts_unless_the_environment_has_one) {
  Setting setting;
  setting.file("sample = 0.1\nskip = a,b*\n");
  CHECK_EQ(Options::read().text(Option::sample), std::string("0.1"));
  CHECK_EQ(Options::read().text(Option::skip), std::string("a,b*"));
  setting.set("COMMLENS_SAMPLE", "wrong");
  CHECK_EQ(Options::read().text(Option::sample), std::string("0.1"));
  setting.set("COMMLENS_SAMPLE", "1");
  CHECK_EQ(Options::read().text(Option::sample), std::string("1"));
}

TEST(a_line_that_is_no_option_is_named_with_its_number) {
  for (const char* line : {"outptu = x", "output", "COMMLENS_OUTPUT = x", "= x", "mpi = mpich", "config = x"}) {
    Setting setting;
    setting.file("quiet = 1\n" + std::string(line) + "\ncallsites = 0\n");
    const Options options = Options::read();
    CHECK(one_warning(options, setting.path() + ":2:"));
    CHECK(options.on(Option::quiet));
    CHECK(!options.on(Option::callsites));
    CHECK_EQ(options.text(Option::mpi), std::string("auto"));
  }
}

TEST(a_bad_value_in_the_file_is_named_and_the_default_stays) {
  Setting setting;
  setting.file("enable = perhaps\n");
  const Options options = Options::read();
  CHECK(options.on(Option::enable));
  CHECK(one_warning(options, setting.path() + ":1:"));
}

TEST(a_file_that_was_asked_for_and_cannot_be_read_is_reported) {
  Setting setting;
  CHECK(one_warning(Options::read(), "/nonexistent/commlens.conf"));
  setting.set("COMMLENS_CONFIG", "/tmp");
  CHECK(one_warning(Options::read(), "/tmp"));
}

TEST(a_privileged_process_reads_nothing_and_is_not_measured) {
  Setting setting;
  setting.file("output = /from/file.db\nnot an option\n").set("COMMLENS_OUTPUT", "/from/environment.db");
  setting.set("COMMLENS_ENABLE", "1").set("COMMLENS_OUTPTU", "1");
  is_set_user_id = true;
  const Options options = Options::read();
  is_set_user_id = false;
  CHECK(!options.on(Option::enable));
  CHECK_EQ(options.text(Option::output), std::string(option_facts[static_cast<int>(Option::output)].initial));
  CHECK(options.warnings().empty());
  CHECK(Options::read().on(Option::enable));
}

TEST(only_a_regular_file_is_a_configuration) {
  const std::string fifo = "/tmp/commlens-options-fifo-" + std::to_string(getpid());
  CHECK_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const struct {
    std::string path, problem;
  } cases[] = {{fifo, "it is a FIFO"},
               {"/dev/zero", "it is not a regular file"},
               {"/dev/tty", "it is not a regular file"},
               {"/tmp", "it is a directory"}};
  for (const auto& one : cases) {
    Setting setting;
    setting.set("COMMLENS_CONFIG", one.path.c_str());
    CHECK(one_warning(Options::read(), "configuration " + one.path + " is not used: " + one.problem));
    CHECK(Options::read().on(Option::enable));
  }
  unlink(fifo.c_str());
}

TEST(dev_null_is_an_empty_configuration) {
  Setting setting;
  setting.set("COMMLENS_CONFIG", "/dev/null");
  CHECK(Options::read().warnings().empty());
}

TEST(a_configuration_has_64_kib_at_most) {
  Setting fits;
  fits.file("quiet = 1\n" + std::string(most_config_bytes - 10, '#'));
  CHECK(Options::read().on(Option::quiet));
  CHECK(Options::read().warnings().empty());
  Setting too_large;
  too_large.file("quiet = 1\n" + std::string(most_config_bytes - 9, '#'));
  CHECK(!Options::read().on(Option::quiet));
  CHECK(one_warning(Options::read(), "it is larger than 64 KiB"));
  CHECK_EQ(truncate(too_large.path().c_str(), 40 << 20), 0);
  CHECK(one_warning(Options::read(), "it is larger than 64 KiB"));
}

TEST(the_standard_input_is_no_configuration) {
  Setting setting;
  setting.file("quiet = 1\n");
  const int before = dup(STDIN_FILENO), file = open(setting.path().c_str(), O_RDONLY);
  dup2(file, STDIN_FILENO);
  for (const char* name : {"/dev/stdin", "/proc/self/fd/0", setting.path().c_str()}) {
    setting.set("COMMLENS_CONFIG", name);
    const Options options = Options::read();
    CHECK(one_warning(options, "it is the standard input"));
    CHECK(!options.on(Option::quiet));
    CHECK_EQ(lseek(STDIN_FILENO, 0, SEEK_CUR), 0);
  }
  dup2(before, STDIN_FILENO);
  close(before);
  close(file);
}

TEST(a_file_of_proc_that_blocks_is_not_read) {
  Setting setting;
  setting.set("COMMLENS_CONFIG", "/proc/kmsg");
  CHECK(Options::read().on(Option::enable));  // at once
}

TEST(of_many_bad_lines_a_handful_is_named) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "\x1b[2J\x07" + std::string(200, 'x') + "\n";
  Setting setting;
  setting.file(text);
  const std::vector<std::string> warnings = Options::read().warnings();
  CHECK_EQ(warnings.size(), 6u);
  for (std::size_t i = 0; i < 5 && i < warnings.size(); ++i) {
    CHECK_EQ(warnings[i], setting.path() + ":" + std::to_string(i + 1) + ": '?[2J?" + std::string(55, 'x') +
                              "...' is not an option and is ignored");
  }
  CHECK_EQ(warnings.back(), setting.path() + ": and 295 more invalid lines");
}

TEST(a_mode_lets_nobody_else_write) {
  for (const char* mode : {"0600", "600", "0640", "0644", "0604"}) {
    Setting setting;
    setting.file("").set("COMMLENS_MODE", mode);
    CHECK_EQ(Options::read().mode(), static_cast<mode_t>(std::strtoul(mode, nullptr, 8)));
    CHECK(Options::read().warnings().empty());
  }
  for (const char* none : {"0666", "0660", "0755", "0400", "06000", "60", "0x180", "u=rw", "-600"}) {
    Setting setting;
    setting.file("mode = 0600\n").set("COMMLENS_MODE", none);
    CHECK_EQ(Options::read().mode(), 0600u);
    CHECK(one_warning(Options::read(), "COMMLENS_MODE"));
  }
  Setting setting;
  setting.file("").set("COMMLENS_MODE", "");
  CHECK_EQ(Options::read().mode(), 0644u);
}

TEST(a_file_of_anything_does_no_harm) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += static_cast<char>(i * 7919 >> 3);
  Setting setting;
  setting.file(text + std::string(5000, '=') + "\n" + std::string(9000, 'x'));
  CHECK(!Options::read().warnings().empty());
  CHECK(Options::read().on(Option::enable));
}

TEST(the_listing_names_every_option_once) {
  Setting setting;
  setting.file("").set("COMMLENS_OUTPUT", "a=b");
  const std::string listing = Options::read().listing();
  CHECK(listing.find("COMMLENS_OUTPUT=a=b\n") != std::string::npos);
  std::size_t lines = 0;
  for (const char c : listing) lines += c == '\n' ? 1 : 0;
  CHECK_EQ(lines, static_cast<std::size_t>(option_count));
}

}  // namespace commlens
