// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The words that documents print for the verdict's enumerations. Private to verdict_json.cc and
// verdict_text.cc. Any thread.
#pragma once

#include <string_view>

#include "detectors/proto/verdict.pb.h"

namespace rankscope {

std::string_view Word(proto::State state);
std::string_view Word(proto::Scope scope);
std::string_view Word(proto::Domain domain);
std::string_view Word(proto::Tier tier);
std::string_view Word(proto::Phase phase);
std::string_view Word(proto::Store store);
std::string_view Word(proto::RetryOutlook outlook);
std::string_view Word(proto::Cause::Role role);

// Of a store that a claim needs: present | absent | down | stale | unsupported | denied |
// not_applicable.
std::string_view StoreWord(proto::Availability availability);
// Of a source: up | down | ...; unknown where it never said.
std::string_view SourceWord(proto::Availability availability);

}  // namespace rankscope
