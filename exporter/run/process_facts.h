// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What /proc and the environment say about the wrapper's own child, as observations want it. Any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/ids.h"
#include "detectors/model/observation.h"

namespace rankscope::run {

std::string ReadBootId();
std::string ReadHostName();

// Our user as the machine knows it: a user namespace of a container has numbers of its own.
uint32_t ReadOuterUser();
// `map`: the text of /proc/self/uid_map; `uid` itself where it says nothing of it.
uint32_t OuterUser(std::string_view map, uint32_t uid);

// The pid with its start; start_ticks 0 when /proc does not know it (it is gone, or /proc is not
// mounted).
ProcessKey ReadProcessKey(int pid);

// Field 22 of /proc/PID/stat; 0 when the text is not such a line. The name in parentheses may hold
// anything.
int64_t ParseStartTicks(std::string_view stat);

// One argument vector with the secrets masked: in each element, and the element after a flag whose
// name is secret.
std::vector<std::string> RedactArguments(char* const* argv);

// The allow-listed variables, values masked.
std::vector<KeyValue> AllowedEnvironment(char* const* environment);

// The value of a variable in an environment block; empty when absent.
std::string_view EnvironmentValue(char* const* environment, std::string_view key);

// The start of a child of this process, complete. Its command line is taken as given, since /proc
// may still show ours.
ProcessStart DescribeChild(const ProcessKey& key, const std::string& job_id, char* const* argv,
                           char* const* environment);

}  // namespace rankscope::run
