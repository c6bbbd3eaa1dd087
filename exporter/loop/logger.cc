// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/logger.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "detectors/document/verdict_json.h"

namespace rankscope::exporter {
namespace {

void AppendLogfmtValue(std::string_view value, std::string& out) {
  const bool plain =
      !value.empty() && value.find_first_of(" =\"\\") == std::string_view::npos &&
      std::all_of(value.begin(), value.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte > 0x20 && byte < 0x7F;  // the rest JSON writes so that it is seen
      });
  if (plain) {
    out += value;
  } else {
    AppendJsonString(value, out);
  }
}

}  // namespace

std::string LogfmtBody(std::string_view message, std::initializer_list<Logger::Field> fields) {
  std::string body = "msg=";
  AppendLogfmtValue(message, body);
  for (const Logger::Field& field : fields) {
    body += ' ';
    body += field.key;
    body += '=';
    AppendLogfmtValue(field.value, body);
  }
  return body;
}

Logger::Logger(const std::string& level, const std::string& format)
    : logger_(std::make_shared<spdlog::logger>("rankscope",
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>())),
      json_(format == "json") {
  logger_->set_pattern(json_ ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                             : "time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v",
                       spdlog::pattern_time_type::utc);
  logger_->set_level(spdlog::level::from_str(level));
  logger_->flush_on(spdlog::level::debug);
}

Logger::~Logger() = default;

std::string Logger::Body(std::string_view message, std::initializer_list<Field> fields) const {
  if (!json_) return LogfmtBody(message, fields);
  std::string body = "\"msg\":";
  AppendJsonString(message, body);
  for (const Field& field : fields) {
    body += ',';
    AppendJsonString(field.key, body);
    body += ':';
    AppendJsonString(field.value, body);
  }
  return body;
}

void Logger::SetLevel(const std::string& level) {
  logger_->set_level(spdlog::level::from_str(level));
}

void Logger::Debug(std::string_view message, std::initializer_list<Field> fields) {
  if (logger_->should_log(spdlog::level::debug)) logger_->debug("{}", Body(message, fields));
}
void Logger::Info(std::string_view message, std::initializer_list<Field> fields) {
  logger_->info("{}", Body(message, fields));
}
void Logger::Warn(std::string_view message, std::initializer_list<Field> fields) {
  logger_->warn("{}", Body(message, fields));
}
void Logger::Error(std::string_view message, std::initializer_list<Field> fields) {
  logger_->error("{}", Body(message, fields));
}

}  // namespace rankscope::exporter
