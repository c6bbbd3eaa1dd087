// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// For the readers of this room: how one printed value becomes one field of a record, so that a
// reader is a table of names beside fields. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/slurm/records.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {

template <class Member>
struct OwnerOfMember;
template <class Value, class Owner>
struct OwnerOfMember<Value Owner::*> {
  using Type = Owner;
};
template <auto kMember>
using OwnerOf = typename OwnerOfMember<decltype(kMember)>::Type;

inline std::string Bounded(std::string_view text, size_t most = kMaxField) {
  return std::string(text.substr(0, most));
}

inline bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

template <auto kMember>
void SetText(std::string_view value, OwnerOf<kMember>& record) {
  record.*kMember = Bounded(Said(value));
}

template <auto kMember>
void SetId(std::string_view value, OwnerOf<kMember>& record) {
  value = Said(value);
  if (IsId(value) && value != "0") record.*kMember = value;
}

template <auto kMember>
void SetTime(std::string_view value, OwnerOf<kMember>& record) {
  record.*kMember = ReadTime(Said(value));
}

template <auto kMember>
void SetCount(std::string_view value, OwnerOf<kMember>& record) {
  record.*kMember = ReadCount(Said(value));
}

template <auto kMember>
void SetDuration(std::string_view value, OwnerOf<kMember>& record) {
  record.*kMember = ReadDuration(Said(value));
}

template <auto kMember>
void SetExit(std::string_view value, OwnerOf<kMember>& record) {
  record.*kMember = ReadExit(Said(value));
}

template <auto kMember>
void SetMemory(std::string_view value, OwnerOf<kMember>& record) {
  record.*kMember = ReadMemory(Said(value));
}

template <class Record>
void SetState(const StateWords& state, Record& record) {
  record.state = state.base;
  record.state_flags = state.flags;
}

inline void SetJobState(std::string_view value, SlurmJob& job) {
  StateWords state = ReadJobState(value);
  job.state_by = std::move(state.by);
  SetState(std::move(state), job);
}

// Slurm prints 0:0 for what has not ended.
inline void ForgetExitOfTheLiving(SlurmJob& job) {
  if (!job.state.empty() && !IsEndState(job.state)) job.exit = job.derived_exit = std::nullopt;
}

}  // namespace rankscope::exporter::slurm
