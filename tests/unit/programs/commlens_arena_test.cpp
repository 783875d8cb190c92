// SPDX-License-Identifier: Apache-2.0
// The real commlens-arena.
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/state/journal.h"
#include "tests/unit/check.h"
#include "tests/unit/life.h"
#include "tests/unit/rank.h"

extern char** environ;

namespace commlens {
namespace {

using Texts = std::vector<std::string>;

struct Result {
  int code;  // exit code, or minus the signal
  std::string said, complained;
};

Result run(Texts arguments, const std::string& input = {}) {
  const Folder folder;
  const std::string in = folder.path() + "/in", out = folder.path() + "/out", error = folder.path() + "/error";
  write_file(in, input);
  arguments.insert(arguments.begin(), COMMLENS_ARENA);
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, error.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t pid = 0;
  int status = -1;
  if (posix_spawn(&pid, COMMLENS_ARENA, &actions, nullptr, argv.data(), environ) == 0) waitpid(pid, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), content_of(out), content_of(error)};
}

Texts split(const std::string& text, char at) {
  Texts parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  if (!text.empty() && text.back() == at && at == '\t') parts.emplace_back();
  return parts;
}

// The rows of `list`, by the names of their columns.
std::vector<std::map<std::string, std::string>> rows_of(const Result& result) {
  std::vector<std::map<std::string, std::string>> rows;
  const Texts lines = split(result.said, '\n');
  CHECK(!lines.empty());
  if (lines.empty()) return rows;
  const Texts names = split(lines[0], '\t');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Texts fields = split(lines[i], '\t');
    CHECK_EQ(fields.size(), names.size());
    std::map<std::string, std::string> row;
    for (std::size_t k = 0; k < names.size() && k < fields.size(); ++k) row[names[k]] = fields[k];
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST(list_names_its_columns_and_facts_of_the_file) {
  const Folder folder;
  live(folder.path(), [](Registry&) { raise(SIGKILL); });
  const Result result = run({"list", folder.file()});
  CHECK_EQ(result.code, 0);
  CHECK_EQ(result.said.substr(0, result.said.find('\n')),
           std::string("file\tdevice\tinode\tbytes\tpid\tliveness\tis_of_this_boot\terror\tnotice\tstate\trank\tsize\t"
                       "launch\tnode\tprogram\tstart_time\toutput\tapp_ns"));
  const auto rows = rows_of(result);
  CHECK_EQ(rows.size(), 1u);
  if (rows.size() != 1) return;
  struct stat facts;
  stat(folder.file().c_str(), &facts);
  CHECK_EQ(rows[0].at("device"), std::to_string(facts.st_dev));
  CHECK_EQ(rows[0].at("inode"), std::to_string(facts.st_ino));
  CHECK_EQ(rows[0].at("bytes"), std::to_string(facts.st_size));
  CHECK_EQ(rows[0].at("liveness"), std::string("gone"));
  CHECK_EQ(rows[0].at("is_of_this_boot"), std::string("1"));
  CHECK_EQ(rows[0].at("rank"), std::string("1"));
  CHECK_EQ(rows[0].at("launch"), std::string("000000000000004d"));
}

TEST(no_text_of_an_arena_makes_a_field_or_a_line_or_commands_a_terminal) {
  const Folder folder;
  const std::string hostile = "2026\n/etc/passwd\t1\r\\\x1b[2J\x7f\x01 \xc3\xa9";
  const std::string safe = "2026\\n/etc/passwd\\t1\\r\\\\\\x1b[2J\\x7f\\x01 \xc3\xa9";
  live(folder.path(), [&](Registry&) {
    journal::JobEntry job;
    job.rank = 1;
    job.size = 4;
    job.node = job.output = hostile;
    job.meta = {{"program", hostile}, {"start_time", hostile}};
    journal::note(job);
    raise(SIGKILL);
  });
  const std::string named = folder.path() + "/a\nb\t.arena";
  CHECK_EQ(rename(folder.file().c_str(), named.c_str()), 0);
  const auto rows = rows_of(run({"list", named, folder.path() + "/none\n"}));
  CHECK_EQ(rows.size(), 2u);
  if (rows.size() != 2) return;
  CHECK_EQ(rows[0].at("file"), folder.path() + "/a\\nb\\t.arena");
  for (const char* field : {"node", "program", "start_time", "output"}) CHECK_EQ(rows[0].at(field), safe);
  CHECK_EQ(rows[1].at("error"), folder.path() + "/none\\n: No such file or directory");
  CHECK_EQ(rows[1].at("liveness"), std::string("unknown"));
}

TEST(names_come_from_standard_input_where_there_are_no_arguments) {
  const Folder folder;
  live(folder.path(), [](Registry&) {
    count(world, 3, 5);
    raise(SIGKILL);
  });
  const std::string file = folder.file(), zero(1, '\0');
  std::string names;
  for (int i = 0; i < 3; ++i) names += file + zero;
  CHECK_EQ(rows_of(run({"list"}, names)).size(), 3u);
  CHECK_EQ(rows_of(run({"list"})).size(), 0u);
  const Result merged = run({"merge", folder.path() + "/x.db"}, file + zero + folder.path() + "/a\nb" + zero);
  CHECK_EQ(merged.code, 0);
  CHECK_EQ(merged.said, folder.path() + "/x.db\n");
  CHECK_EQ(merged.complained, folder.path() + "/a\\nb: No such file or directory\n");
}

TEST(a_rank_that_is_there_twice_counts_once) {
  const Folder folder, other;
  live(folder.path(), [](Registry&) { raise(SIGKILL); });
  const std::string copy = other.path() + "/copy.arena";
  write_file(copy, content_of(folder.file()));
  const Result merged = run({"merge", folder.path() + "/x.db", folder.file(), copy});
  CHECK_EQ(merged.code, 0);
  CHECK_EQ(merged.complained, std::string("rank 1 has two arenas; one of them is left out\n"));
}

}  // namespace commlens
