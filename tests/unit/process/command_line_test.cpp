// SPDX-License-Identifier: Apache-2.0
#include "core/process/command_line.h"

#include "tests/unit/check.h"

namespace commlens {
namespace {

using Words = std::vector<std::string>;

std::string masked(Words arguments) {
  arguments.insert(arguments.begin(), "app");
  return shown(arguments, CommandLine::masked).substr(4);
}

}  // namespace

TEST(names_of_secrets_are_known_in_any_spelling) {
  for (const char* name :
       {"token",         "--token",         "-token",         "--hf-token",     "HF_TOKEN",
        "accessToken",   "--password",      "DB_PASSWORD",    "passwd",         "--mysql-passwd-file",
        "secret",        "--client-secret", "SECRET_ID",      "--api-key",      "API_KEY",
        "apiKey",        "--apikey",        "aws.access.key", "OPENAI_API_KEY", "--auth",
        "Authorization", "--credential",    "--credentials",  "X-Api-Key",      "MYSQL_PWD",
        "SSHPASS"}) {
    if (!is_name_of_secret(name)) check::fail(__FILE__, __LINE__, name);
  }
  for (const char* name : {"", "-", "--", "-p", "-n", "--tokens", "--tokenizer", "--keyboard", "key", "--author",
                           "pass", "PWD", "--pwd", "--max-steps", "monkey", "--output"}) {
    if (is_name_of_secret(name)) check::fail(__FILE__, __LINE__, name);
  }
}

TEST(the_value_behind_such_a_name_is_masked) {
  CHECK_EQ(masked({"--token", "abc", "-n", "4"}), std::string("--token *** -n 4"));
  CHECK_EQ(masked({"--token=abc", "x"}), std::string("--token=*** x"));
  CHECK_EQ(masked({"TOKEN=abc", "My-Secret=x y", "API_KEY=k"}), std::string("TOKEN=*** My-Secret=*** API_KEY=***"));
  CHECK_EQ(masked({"-DDB_PASSWORD=a=b c"}), std::string("-DDB_PASSWORD=***"));
  CHECK_EQ(masked({"--set", "a=1,login.password=x,b=2"}), std::string("--set a=1,login.password=***"));
  CHECK_EQ(masked({"https://host/x?user=a&token=abc"}), std::string("'https://host/x?user=a&token=***'"));
  CHECK_EQ(masked({"{\"token\": \"abc\"}"}), std::string("'{\"token\": ***'"));
  CHECK_EQ(masked({"--password", "-x", "--auth", "--token", "abc", "y"}),
           std::string("--password *** --auth --token *** y"));
  CHECK_EQ(masked({"--token"}), std::string("--token"));
  CHECK_EQ(masked({"--token="}), std::string("--token="));
}

TEST(the_secret_of_a_header_is_masked) {
  CHECK_EQ(masked({"-H", "Authorization: Bearer abc"}), std::string("-H 'Authorization: ***'"));
  CHECK_EQ(masked({"-H", "X-Api-Key:abc"}), std::string("-H X-Api-Key:***"));
  CHECK_EQ(masked({"Authorization:", "Bearer", "abc", "y"}), std::string("Authorization: Bearer *** y"));
  CHECK_EQ(masked({"authorization: bearer", "abc", "y"}), std::string("'authorization: bearer' *** y"));
  CHECK_EQ(masked({"with Bearer abc"}), std::string("'with Bearer ***'"));
  CHECK_EQ(masked({"Bearer", "abc", "y"}), std::string("Bearer *** y"));
}

TEST(the_password_in_a_url_is_masked) {
  CHECK_EQ(masked({"postgres://me:pw@host:5432/db", "x"}), std::string("postgres://me:***@host:5432/db x"));
  CHECK_EQ(masked({"postgres://me:p/w@x@host/db"}), std::string("postgres://me:***@host/db"));
  CHECK_EQ(masked({"--db=redis://:pw@host"}), std::string("--db=redis://:***@host"));
  CHECK_EQ(masked({"a://b:c@d e://f:g@h"}), std::string("'a://b:***@d e://f:***@h'"));
  CHECK_EQ(masked({"http://host:8080/a@b"}), std::string("http://host:8080/a@b"));
  CHECK_EQ(masked({"http://host/a:b@c"}), std::string("http://host/a:b@c"));
  CHECK_EQ(masked({"me@a:p@host", "http://me@a:p@host"}), std::string("me@a:p@host http://me@a:***@host"));
  CHECK_EQ(masked({"git+https://abc@host:8080/x"}), std::string("git+https://***@host:8080/x"));
  CHECK_EQ(masked({"https://host/a@b", "https://host"}), std::string("https://host/a@b https://host"));
  CHECK_EQ(masked({"ssh://git@host/x"}), std::string("ssh://git@host/x"));
}

TEST(all_else_is_shown_quoted_for_a_shell) {
  CHECK_EQ(masked({"-n", "4", "in put", "", "it's", "*.c", "a=b", "-p", "x", "16:9"}),
           std::string("-n 4 'in put' '' 'it'\\''s' '*.c' a=b -p x 16:9"));
}

TEST(only_the_name_of_the_program_or_all_can_be_shown) {
  const Words line{"/opt/my app/bin/app", "--token", "abc"};
  CHECK_EQ(shown(line, CommandLine::program), std::string("app"));
  CHECK_EQ(shown(line, CommandLine::full), std::string("'/opt/my app/bin/app' --token abc"));
  for (const CommandLine how : {CommandLine::masked, CommandLine::program, CommandLine::full}) {
    CHECK_EQ(shown({}, how), std::string());
  }
}

}  // namespace commlens
