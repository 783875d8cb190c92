# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced.  Parts of a page under docs/ that a script has printed itself.

# page FILE SCRIPT TEXT: puts what the file TEXT holds into FILE, where SCRIPT wrote last time.
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

# What the machine is, as far as it matters to what was measured on it.
machine() {
  local name
  name=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)
  echo "$(date -u +%F), $name, Linux $(uname -r | sed 's/[^0-9.].*//'), $(nproc) processors"
}
