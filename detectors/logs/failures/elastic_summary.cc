// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/elastic_summary.h"

#include <algorithm>
#include <chrono>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/model/root_cause.h"

namespace rankscope::logs {
namespace {

constexpr int32_t kEntryLines =
    64;  // an entry has seven lines; a traceback pasted into it may have many more

// "YYYY-MM-DD_HH:MM:SS" of a local clock -> seconds, comparable within a stream.
int64_t PrintedSeconds(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[13] != ':') return 0;
  const auto number = [text](size_t at, size_t size) {
    return LeadingInt(text.substr(at, size)).value_or(0);
  };
  const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(number(0, 4))),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  if (!day.ok()) return 0;
  const int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
  return days * 86400 + number(11, 2) * 3600 + number(14, 2) * 60 + number(17, 2);
}

bool IsRule(std::string_view text, char mark) {
  return text.size() >= 10 && text.find_first_not_of(mark) == std::string_view::npos;
}

// Loggers may put their own head before each line of the block: the fields are found behind it.
std::string_view FieldValue(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = TrimLeft(text.substr(at + name.size()));
  return rest.starts_with(":") ? TrimLeft(rest.substr(1)) : std::string_view();
}

int32_t Narrow(std::optional<int64_t> value, int32_t fallback) {
  return value && *value > -(1 << 30) && *value < (1 << 30) ? static_cast<int32_t>(*value)
                                                            : fallback;
}

void ReadExit(std::string_view text, Incident& entry) {
  const int32_t code = Narrow(LeadingInt(text), 0);
  entry.exit_code = code;
  entry.pid = Narrow(IntAfter(text, "pid: "), 0);
  // A shell between launcher and program turns signals into 128 + n; only a plain negative is one
  // for certain. The newer form names the signal: "-11 (pid: 7) (SIGSEGV)".
  const std::string_view named = Between(text, "(SIG", ")");
  int32_t signal = named.empty() ? 0 : SignalNumber(named);
  if (signal == 0 && code < 0 && code > -65) signal = -code;
  if (signal == 0) return;
  entry.kind = IncidentKind::kSignalDeath;
  SetSignal(entry, signal);
}

}  // namespace

bool ElasticSummaryMachine::Feed(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  const bool root = Contains(text, kAnchors[1]);
  if (root || text.ends_with(kAnchors[0])) {
    Flush(out);
    open_ = true;
    root_ = root;
    lines_ = 0;
    return true;
  }
  if (!open_) return false;
  if (++lines_ > kEntryLines) {
    Flush(out);
    return false;
  }
  // "[0]:" begins an entry.
  const size_t bracket = text.rfind('[');
  if (bracket != std::string_view::npos && text.ends_with("]:") &&
      LeadingInt(text.substr(bracket + 1)).has_value()) {
    const bool was_root = root_;
    Flush(out);
    open_ = true;
    root_ = was_root;
    lines_ = 0;
    entry_ = MakeIncident(IncidentKind::kNonZeroExit, line, "elastic_summary");
    entry_.role = Role::kWrapper;
    entry_.rank = -1;  // the launcher speaks of others; its own prefix names the agent
    if (root_) entry_.sub = kRootCause;
    has_entry_ = true;
    return true;
  }
  if (IsRule(text, '=')) {
    Flush(out);
    return true;
  }
  if (IsRule(text, '-') || Contains(text, "<NO_OTHER_FAILURES>")) return true;
  if (!has_entry_) return false;
  return ReadEntryLine(text, line);
}

bool ElasticSummaryMachine::ReadEntryLine(std::string_view text, const CleanLine& line) {
  if (const std::string_view rank = FieldValue(text, "rank  "); !rank.empty()) {
    entry_.rank = Narrow(LeadingInt(rank), -1);
    entry_.local_rank = Narrow(IntAfter(rank, "local_rank: "), -1);
    return true;
  }
  if (const std::string_view time = FieldValue(text, "time  "); !time.empty()) {
    entry_.printed_time_s = PrintedSeconds(time);
    return true;
  }
  if (const std::string_view host = FieldValue(text, "host  "); !host.empty()) {
    AddField(entry_, "host", Capped(host, 255));
    return true;
  }
  if (const std::string_view exit = FieldValue(text, "exitcode "); !exit.empty()) {
    ReadExit(exit, entry_);
    entry_.offset = line.offset;
    entry_.line = Capped(line.original.empty() ? line.text : line.original, kCitationCap);
    return true;
  }
  if (const std::string_view report = FieldValue(text, "traceback "); !report.empty()) {
    // "To enable traceback see: ..." is advice.
    if (!report.starts_with("To enable")) {
      entry_.message = Capped(report, kMessageCap);
      AddQuote(entry_, QuoteRole::kLauncher, line);
    }
    const auto signal = LeadingInt(Between(report, "Signal ", " (SIG"));
    if (signal && *signal > 0 && *signal < 65 && entry_.signal == 0) {
      entry_.kind = IncidentKind::kSignalDeath;
      SetSignal(entry_, static_cast<int32_t>(*signal));
    }
    return true;
  }
  if (text.starts_with("error_file")) return true;
  // A worker run under @record leaves its own traceback in the entry, indented.
  if (!entry_.message.starts_with("Traceback")) return false;
  const ExceptionLine exception = ParseExceptionLine(text, false);
  if (!exception.type.empty()) {
    entry_.exception_type = exception.type;
    entry_.message = Capped(exception.message, kMessageCap);
  }
  return true;
}

void ElasticSummaryMachine::Flush(RecordList& out) {
  // An entry cut off before its exit code says nothing.
  if (has_entry_ && (entry_.exit_code != 0 || entry_.signal != 0)) {
    if (entry_.message.ends_with("]:")) entry_.message.clear();
    out.push_back(std::move(entry_));
  }
  entry_ = Incident();
  has_entry_ = false;
  open_ = false;
  root_ = false;
  lines_ = 0;
}

}  // namespace rankscope::logs
