// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The words that documents and pages print for the verdict's enumerations. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "detectors/proto/verdict.pb.h"

namespace rankscope {

std::string_view Word(proto::State state);
std::string_view Word(proto::Scope scope);
std::string_view Word(proto::Domain domain);
std::string_view Word(proto::Tier tier);
std::string_view Word(proto::Ground ground);  // empty: not known
std::string_view Word(proto::Phase phase);
std::string_view Word(proto::Store store);
std::string_view Word(proto::RetryOutlook outlook);
std::string_view Word(proto::Cause::Role role);

// The confidence and what it rests on: "0.95, kernel record", "0.85, two sources agree",
// "0.65, one source", "0.35, heuristic"; ", reduced" where it is lower than that usually gives.
std::string ConfidenceWords(const proto::Verdict& verdict);

// Where a remedy is applied or what follows it, behind "Do now, ": "in the program", "then rerun".
// Of the keys in verdict.proto; empty for none.
std::string_view RemedyWords(std::string_view remedy);

// How the run ended, behind its subject: "reached its time limit", "was cancelled by lena". Empty
// while it runs.
std::string DispositionWords(const proto::Verdict& verdict);

// A store in a sentence: "kernel", "GPU".
std::string_view StoreName(proto::Store store);
// Why a store has no data, in a sentence: "not supported on this node".
std::string_view LackWords(proto::Store store, proto::Availability availability);

// Of a store that a claim needs: present | absent | down | stale | unsupported | denied |
// not_applicable.
std::string_view StoreWord(proto::Availability availability);
// Of a source: up | down | ...; unknown where it never said.
std::string_view SourceWord(proto::Availability availability);

}  // namespace rankscope
