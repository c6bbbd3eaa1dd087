// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/text.h"

#include <cstdarg>
#include <cstdio>
#include <ctime>

namespace rankscope::generator {

std::string Text(const char* format, ...) {
  char buffer[4096];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string Calendar(int64_t wall_ns, const char* format) {
  const std::time_t seconds = wall_ns / 1'000'000'000;
  const int micros = static_cast<int>(wall_ns % 1'000'000'000 / 1000);
  std::string with(format);
  if (const size_t at = with.find("%f"); at != std::string::npos)
    with.replace(at, 2, Text("%06d", micros));
  if (const size_t at = with.find("%L"); at != std::string::npos)
    with.replace(at, 2, Text("%03d", micros / 1000));
  std::tm time{};
  gmtime_r(&seconds, &time);
  char buffer[128];
  const size_t size = std::strftime(buffer, sizeof buffer, with.c_str(), &time);
  return {buffer, size};
}

std::string Clock(double seconds) {
  const int whole = static_cast<int>(seconds);
  if (whole >= 3600) return Text("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
  return Text("%02d:%02d", whole / 60, whole % 60);
}

}  // namespace rankscope::generator
