// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A stream's lines in, records out. One reader per stream, fed in order on one thread; bounded
// memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

class Reader {
 public:
  Reader();
  ~Reader();
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;

  // Records of this line, and of earlier lines that this one completes, in order. Valid until the
  // next call.
  std::span<const Record> Feed(const LogLine& line, Timestamp t);

  // The stream has ended: what was still open (a traceback cut short, a summary without its rule).
  std::span<const Record> Flush();

  // Restorable state, for EngineState.
  std::string Save() const;
  bool Restore(std::string_view bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankscope::logs
