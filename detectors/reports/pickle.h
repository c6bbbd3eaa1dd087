// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads a Python pickle that holds nothing but data: PyTorch's Flight Recorder writes its dumps so.
// A pickle is a program for a small machine; the instructions that import, call or build anything
// (GLOBAL, REDUCE, INST, OBJ, NEWOBJ, BUILD, EXT, PERSID ...) are refused by name, and so is every
// one that is not known. Memory, depth and memo are bounded. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "detectors/model/result.h"
#include "detectors/reports/tree.h"

namespace rankscope::reports {

struct Document {
  Tree tree;  // borrows its strings from the text
  Tree::Id root = Tree::kNone;
  int64_t repaired = 0;  // JSON: separators that were missing or too many
  bool cut = false;      // JSON: the text ends within a value; what is there is in the tree
};

// `bytes` must outlive the document.
Result<Document> ReadPickle(std::string_view bytes);

// Whether this looks like a pickle of protocol 2 or later.
bool IsPickle(std::string_view bytes);

}  // namespace rankscope::reports
