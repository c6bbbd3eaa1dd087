// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Options by which a command asks to go on from a checkpoint, or to begin anew from one. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

// "--resume=x", "--resume x" or "--resume"; empty: the command does not ask, or asks for a
// checkpoint as the beginning of another training.
std::string ResumeFlagOf(const std::vector<std::string>& argv);

// It asks for the weights of a checkpoint alone.
bool BeginsAnew(const std::vector<std::string>& argv);

// "None", "false", "0" ...: the value of an option that asks for nothing.
bool SaysNo(std::string_view value);

}  // namespace rankscope
