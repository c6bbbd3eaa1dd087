// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What words and types of exceptions mean, as tables: the words are those of the libraries' own
// raise statements. Private to exception_table.cc, prose_shapes.cc and their tests; constants, any
// thread.
#pragma once

#include <span>
#include <string_view>

namespace rankscope::logs {

// An empty column fits anything. `type` is the last component of the exception's type, or, where it
// holds a dot, the end of the whole dotted name; `words` a substring of the message. Tables are
// read from the top.
struct ClassRow {
  std::string_view type;
  std::string_view words;
  std::string_view value;
};

std::span<const ClassRow> FaultByWords();  // data | config | env | asset
std::span<const ClassRow> FaultByType();
std::span<const ClassRow> SubRows();  // of ExceptionSub's list

// What conda prints before it leaves: "CLASS: words", without a traceback. A script that does not
// stop at errors goes on with the environment that it has.
bool IsCondas(std::string_view type, std::string_view message);

// Words of a failure that the next try may not meet: a busy or unreachable server.
std::span<const std::string_view> TransientWords();

// The part of a dotted name or message that a row asks for is there.
bool Fits(const ClassRow& row, std::string_view dotted_type, std::string_view message);

}  // namespace rankscope::logs
