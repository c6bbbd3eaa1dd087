// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's own log: logfmt or JSON on stderr, one line per change of something. Any thread.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
}

namespace rankscope::exporter {

class Logger {
 public:
  struct Field {
    std::string_view key;
    std::string value;
  };

  // level: debug | info | warn | error; format: logfmt | json.
  Logger(const std::string& level, const std::string& format);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  void SetLevel(const std::string& level);

  void Debug(std::string_view message, std::initializer_list<Field> fields = {});
  void Info(std::string_view message, std::initializer_list<Field> fields = {});
  void Warn(std::string_view message, std::initializer_list<Field> fields = {});
  void Error(std::string_view message, std::initializer_list<Field> fields = {});

 private:
  std::string Body(std::string_view message, std::initializer_list<Field> fields) const;

  std::shared_ptr<spdlog::logger> logger_;
  bool json_;
};

// `msg="a b" key=value`: quoted where a reader of logfmt needs it.
std::string LogfmtBody(std::string_view message, std::initializer_list<Logger::Field> fields);

}  // namespace rankscope::exporter
