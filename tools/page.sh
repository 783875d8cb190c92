# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced.  Writes the output of a script into its part of a page under docs/.

# page FILE SCRIPT TEXT: replaces the part of FILE that SCRIPT wrote before by the content of file TEXT.
page() {
  local file=$1 script=$2 text=$3
  grep -q "^<!-- written by $script" "$file" || { say page "$file has no place for $script"; return 1; }
  awk -v begin="<!-- written by $script" -v text="$text" '
    index($0, begin) == 1 {
      print; print "```"
      while ((getline line < text) > 0) print line
      print "```"
      skip = 1
    }
    /^<!-- end -->$/ { skip = 0 }
    !skip && index($0, begin) != 1 { print }
  ' "$file" >"$file.new"
  mv "$file.new" "$file"
  say page "$file"
}

# Prints the facts about the machine that matter for a measurement.
machine() {
  local name
  name=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)
  echo "$(date -u +%F), $name, Linux $(uname -r | sed 's/[^0-9.].*//'), $(nproc) processors"
}
