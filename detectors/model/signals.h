// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The closed vocabulary of numbers. A new signal is a row of signals.inc, never a new kind of
// observation; the catalogue of metrics, the status of jobs and the snapshot take theirs from it.
// Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace rankscope {

enum class SignalKind : uint8_t { Gauge, Counter };
enum class SignalScope : uint8_t { Rank, Gpu, Job, Host };
enum class SignalOrigin : uint8_t { Sampled, Derived, Summed, Rate };
enum class SignalProfile : uint8_t { Default, Full };

enum class SignalId : uint16_t {
#define SIGNAL(id, constant, ...) constant = id,
#include "detectors/model/signals.inc"
#undef SIGNAL
};

// The columns of signals.inc.
struct SignalRow {
  SignalId id;
  std::string_view name;
  std::string_view unit;  // UCUM: s, By, ratio; empty = a plain number
  SignalKind kind;
  SignalScope scope;
  SignalOrigin origin;
  std::string_view metric;  // name, or name{label=value}
  std::string_view help;
  SignalProfile profile;

  constexpr std::string_view metric_name() const { return metric.substr(0, metric.find('{')); }
  // Empty where the metric has no label but those of its scope.
  constexpr std::string_view label() const { return Braced(0, '='); }
  constexpr std::string_view label_value() const {
    return label().empty() ? std::string_view() : Braced(label().size() + 1, '}');
  }

 private:
  constexpr std::string_view Braced(size_t skip, char until) const {
    const size_t brace = metric.find('{');
    if (brace == std::string_view::npos) return {};
    const std::string_view rest = metric.substr(brace + 1 + skip);
    return rest.substr(0, rest.find(until));
  }
};

// Version of the table, its number of rows: rows are added and never taken out. Recordings carry
// it.
inline constexpr uint32_t kSignalTableVersion = 0
#define SIGNAL(...) +1
#include "detectors/model/signals.inc"
#undef SIGNAL
    ;

// All rows, by rising id.
std::span<const SignalRow> SignalTable();

// The row of a wire id; nullopt for an id that this build does not know.
std::optional<SignalRow> FindSignal(uint32_t id);

}  // namespace rankscope
