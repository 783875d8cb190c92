// SPDX-License-Identifier: Apache-2.0
#include "core/cold/options.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/unit/check.h"

extern char** environ;

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
