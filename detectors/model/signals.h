// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The closed vocabulary of numbers. A new signal is a row of signals.inc, never a new kind of
// observation. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rankscope {

enum class SignalKind : uint8_t { Gauge, Counter };

enum class SignalId : uint16_t {
#define SIGNAL(id, constant, name, unit, kind) constant = id,
#include "detectors/model/signals.inc"
#undef SIGNAL
};

struct SignalRow {
  SignalId id;
  std::string_view name;
  std::string_view unit;  // UCUM: s, By, ratio; empty = a plain number
  SignalKind kind;
};

// Version of the table; raised when a row is added. Recordings carry it.
inline constexpr uint32_t kSignalTableVersion = 4;

// All rows, by rising id.
std::span<const SignalRow> SignalTable();

// The row of a wire id; nullopt for an id that this build does not know.
std::optional<SignalRow> FindSignal(uint32_t id);

}  // namespace rankscope
