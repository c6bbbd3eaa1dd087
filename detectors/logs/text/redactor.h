// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Secrets in captured text are masked before anything stores, parses or shows it. A mask ('*')
// keeps the length, so byte offsets stay true. The rules are a table that `rankscope list
// redactions` prints; a fast literal pass decides whether a rule is tried at all. Stateless; any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rankscope::logs {

struct RedactionRow {
  std::string_view name;
  std::string_view what;     // for people
  std::string_view example;  // contains one secret of this kind
};

std::span<const RedactionRow> Redactions();

// Whether `text` may hold a secret: never false where Redact would mask something. About a byte per
// cycle.
bool MayHoldSecret(std::string_view text);

// Masks in place and returns the number of masked spans.
int32_t Redact(std::span<char> text);

// The same for an environment value or one argv element whose name alone may make it secret
// ("WANDB_API_KEY").
std::string RedactValue(std::string_view name, std::string_view value);

// All arguments of a program, in place: a flag that names a secret may stand before its value.
void RedactArguments(std::span<std::string> argv);

}  // namespace rankscope::logs
