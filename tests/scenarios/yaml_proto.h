// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// YAML -> protobuf by reflection: a key is a field's name. Short forms, because scenarios are
// written by hand:
//
//     key: 101                        a ProcessKey of this pid
//     env: {RANK: "1"}                a list of key-value pairs
//     wait_status: exit 1, signal 9   as waitpid would give it
//     state: down                     an enum by its lower-case name
//     values: {loss: 1.5}             in samples: signals by name
//
// Throws YAML::Exception, which carries the place in the file.
#pragma once

#include <google/protobuf/message.h>
#include <yaml-cpp/yaml.h>

namespace rankscope::scenarios {

void FillMessage(google::protobuf::Message& message, const YAML::Node& node);

}  // namespace rankscope::scenarios
