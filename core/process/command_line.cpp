// SPDX-License-Identifier: Apache-2.0
#include "core/process/command_line.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace commlens {
namespace {

constexpr char mask[] = "***";

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_of_name(char c) {
  return is_upper(c) || is_lower(c) || is_digit(c) || c == '_' || c == '-' || c == '.' ||
         static_cast<signed char>(c) < 0;
}

std::string lower(const std::string& text) {
  std::string result = text;
  for (char& c : result) {
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Returns the name in lower case, with '_' between words: "--accessKey", "ACCESS-KEY" and "access.key" become
// "access_key".
std::string in_words(const std::string& name) {
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i != 0 && is_upper(name[i]) && is_lower(name[i - 1])) words += '_';
    words += name[i] == '-' || name[i] == '.' ? '_' : name[i];
  }
  return lower(words.substr(std::min(words.find_first_not_of('_'), words.size())));
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// True for an authentication scheme, the word between an Authorization header's name and its secret.
bool is_scheme(const std::string& word) {
  const std::string text = lower(word);
  return text == "bearer" || text == "basic" || text == "token" || text == "digest" || text == "negotiate";
}

// True if the scheme of a URL, which ends before `at`, is HTTP: a user without a password is a token there.
bool is_http(const std::string& text, std::size_t at) {
  const std::string before = lower(text.substr(0, at));
  return ends_with(before, "http://") || ends_with(before, "https://");
}

// Masks the password of each user:password@ after "://", and TOKEN@ after "https://" or "http://".  Masks up to the
// last '@' of the word, because a password may contain an unescaped '@' or '/'.
std::string without_passwords(std::string text) {
  for (std::size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at)) {
    at += 3;
    const std::size_t end = std::min(text.find_first_of(" \t\r\n\"'", at), text.size());
    const std::size_t colon = text.find(':', at), sign = text.rfind('@', end == 0 ? 0 : end - 1);
    if (sign == std::string::npos || sign < at) continue;
    if (sign < colon) {
      if (is_http(text, at) && text.find('/', at) > sign) text.replace(at, sign - at, mask);
      continue;
    }
    if (text.find('/', at) < colon) continue;  // the colon is in the path
    const std::size_t slash = std::min(text.find('/', colon), sign);
    const bool is_port = slash < sign && slash > colon + 1 &&
                         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(colon) + 1,
                                     text.begin() + static_cast<std::ptrdiff_t>(slash), is_digit);
    if (!is_port) text.replace(colon + 1, sign - colon - 1, mask);
  }
  return text;
}

// Returns where the value of the first named secret begins, in NAME=VALUE, NAME: VALUE or "NAME": "VALUE"; npos: there
// is none.
std::size_t value_of_secret(const std::string& text) {
  for (std::size_t at = text.find_first_of("=:"); at != std::string::npos; at = text.find_first_of("=:", at + 1)) {
    std::size_t end = at;
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '"' || text[end - 1] == '\'')) --end;
    std::size_t begin = end;
    while (begin > 0 && is_of_name(text[begin - 1])) --begin;
    if (is_name_of_secret(text.substr(begin, end - begin))) return at + 1;
  }
  return std::string::npos;
}

// Returns where the text after "Bearer " begins, or npos.
std::size_t behind_bearer(const std::string& text) {
  constexpr std::string_view bearer = "bearer ";
  const std::string low = lower(text);
  for (std::size_t at = low.find(bearer); at != std::string::npos; at = low.find(bearer, at + 1)) {
    if (at == 0 || !is_of_name(low[at - 1])) return at + bearer.size();
  }
  return std::string::npos;
}

// Masks arguments one after the other: an argument may be the name of a secret, and the next one its value.
class Masking {
 public:
  std::string masked(const std::string& argument) {
    if (is_expected_ && is_scheme(argument)) return argument;
    const bool is_option = argument.size() > 1 && argument[0] == '-';
    const bool is_name = is_option && argument.find('=') == std::string::npos && is_name_of_secret(argument);
    // Another option after the name is no value: the name may be an option without one, and the next option's value a
    // secret.
    const bool is_value = is_expected_ && !is_name;
    is_expected_ = is_name || is_scheme_of_bearer(argument);
    if (is_value) return mask;
    if (is_expected_) return argument;
    const std::size_t at = std::min(value_of_secret(argument), behind_bearer(argument));
    if (at == std::string::npos) return without_passwords(argument);
    const std::size_t value = std::min(argument.find_first_not_of(" \t", at), argument.size());
    // "Authorization:" and "Bearer" may be separate arguments.
    is_expected_ = argument[at - 1] == ':' && (value == argument.size() || is_scheme(argument.substr(value)));
    if (is_expected_ || value == argument.size()) return without_passwords(argument);
    return without_passwords(argument.substr(0, value)) + mask;
  }

 private:
  static bool is_scheme_of_bearer(const std::string& argument) { return lower(argument) == "bearer"; }

  bool is_expected_ = false;  // the next argument is a secret
};

std::string quoted_for_shell(const std::string& argument, bool has_mask) {
  constexpr char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%*";
  const std::string_view safe(plain, sizeof plain - (has_mask ? 1 : 2));
  if (!argument.empty() && argument.find_first_not_of(safe) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

}  // namespace

bool is_name_of_secret(const std::string& name) {
  const std::string words = in_words(name);
  for (const std::string_view exact : {"auth", "authorization", "sshpass"}) {
    if (words == exact) return true;
  }
  for (const std::string_view end : {"token", "_key", "apikey", "_pwd"}) {
    if (ends_with(words, end)) return true;
  }
  for (const std::string_view part : {"password", "passwd", "passphrase", "secret", "credential"}) {
    if (words.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string shown_value(const std::string& name, const std::string& value) {
  return is_name_of_secret(name) ? mask : Masking().masked(value);
}

std::string shown(const std::vector<std::string>& arguments, CommandLine how) {
  if (how == CommandLine::program) {
    const std::string path = arguments.empty() ? std::string() : arguments[0];
    return path.empty() ? path : quoted_for_shell(path.substr(path.rfind('/') + 1), false);
  }
  Masking masking;
  std::string line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_open = how == CommandLine::full || i == 0;
    const std::string text = is_open ? arguments[i] : masking.masked(arguments[i]);
    line += (i == 0 ? "" : " ") + quoted_for_shell(text, text != arguments[i]);
  }
  return line;
}

}  // namespace commlens
