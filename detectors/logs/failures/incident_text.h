// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Small readers of text that the failure shapes and the traceback machine share: numbers behind a
// word, byte sizes, signal names, the filling of an Incident. Private to detectors/logs; pure, any
// thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

inline bool Contains(std::string_view text, std::string_view needle) {
  return text.find(needle) != std::string_view::npos;
}
bool ContainsAny(std::string_view text, std::span<const std::string_view> needles);
bool ContainsAny(std::string_view text, std::initializer_list<std::string_view> needles);

// What follows the first `needle`; empty when it does not occur.
std::string_view After(std::string_view text, std::string_view needle);
// What precedes the first `needle`; all of `text` when it does not occur.
std::string_view Before(std::string_view text, std::string_view needle);
// What stands between `open` and the next `close`; empty when either is missing.
std::string_view Between(std::string_view text, std::string_view open, std::string_view close);

std::string_view TrimLeft(std::string_view text);
std::string_view TrimRight(std::string_view text);
std::string_view Trim(std::string_view text);

// The decimal number that `text` begins with, sign allowed; nullopt without digits or out of range.
std::optional<int64_t> LeadingInt(std::string_view text);
// The same for the number that begins right behind `needle` (spaces between are skipped).
std::optional<int64_t> IntAfter(std::string_view text, std::string_view needle);
// The digits (and sign) themselves, as printed.
std::string_view NumberText(std::string_view text);
// The word that `text` begins with: up to a space, comma, quote or bracket.
std::string_view LeadingWord(std::string_view text);

// "12.50 MiB" -> 13107200. Units B, bytes, KiB..PiB and kB..GB (1024 too: allocators print binary
// sizes).
std::optional<int64_t> LeadingBytes(std::string_view text);

// At most `cap` bytes, never ending inside a UTF-8 sequence.
std::string_view Capped(std::string_view text, size_t cap);

// The last component of a dotted name: torch.cuda.OutOfMemoryError -> OutOfMemoryError.
std::string_view LastComponent(std::string_view dotted);

// Signals of Linux on x86-64 and arm64. Names with or without SIG; 0 and "" for the unknown.
int32_t SignalNumber(std::string_view name);
std::string SignalName(int32_t signal);
// The strsignal() texts that shells, launchers and torch print: "Killed", "Segmentation fault",
// "Bus error".
// The signal that a shell turned into the exit code 128 + n, if a process dies of it by itself or
// is killed; else 0.
int32_t CrashOfExitCode(int32_t code);
int32_t SignalOfDescription(std::string_view description);

// An incident that cites `line` and speaks for its rank.
Incident MakeIncident(IncidentKind kind, const CleanLine& line, std::string_view shape);
void AddField(Incident& incident, std::string_view key, std::string_view value);
void AddField(Incident& incident, std::string_view key, int64_t value);
// The field's value; empty when absent.
std::string_view FieldOf(const Incident& incident, std::string_view key);
// Sets the signal and the field that names it.
void SetSignal(Incident& incident, int32_t signal);

// Keeps a line beside the incident's own, while there is room: kMaxQuotes in all, kMaxMessageQuotes
// of a message.
void AddQuote(Incident& incident, QuoteRole role, std::string_view line, int64_t offset);
void AddQuote(Incident& incident, QuoteRole role, const CleanLine& line);

// Text that talks about failures without being one: advice, a retry that is announced, a quoted or
// serialised text.
bool IsAdvice(std::string_view text);
bool IsRetry(std::string_view text);

}  // namespace rankscope::logs
