// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "detectors/verdict/warnings.h"

namespace rankscope::engine {
namespace {

constexpr std::array kRows = {
#define WARNING(kind, subject, signal, severity, text, remedy) \
  WarningRow{kind, subject, signal, severity, text, remedy},
#include "detectors/sentences/warnings.inc"
#undef WARNING
};

}  // namespace

std::span<const WarningRow> Warnings() {
  return kRows;
}

}  // namespace rankscope::engine
