// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/check.h"

int main(int argc, char** argv) { return check::run(argc, argv); }
