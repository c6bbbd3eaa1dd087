// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The text of NCCL 2.24 to 2.31, line by line. A report has a header, a table of communicators, and
// sections headed by a kind or by "#group-index (hash) KIND"; sentences are told by their words and
// numbers, so that another release's wording of the rest does not matter.
#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "detectors/reports/ras_report.h"

namespace rankscope::reports {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<int64_t> Number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

int32_t Small(int64_t number) {
  return static_cast<int32_t>(std::min<int64_t>(std::max<int64_t>(number, INT32_MIN), INT32_MAX));
}

std::vector<std::string_view> Words(std::string_view line) {
  constexpr size_t kMaxWords = 64;
  std::vector<std::string_view> words;
  while (words.size() < kMaxWords) {
    const size_t begin = line.find_first_not_of(" \t\r,");
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r,"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

// The text behind the first occurrence of `word`, empty where it does not occur.
std::string_view Behind(std::string_view line, std::string_view word) {
  const size_t at = line.find(word);
  return at == std::string_view::npos ? std::string_view{} : line.substr(at + word.size());
}

std::optional<int64_t> NumberBehind(std::string_view line, std::string_view word) {
  const auto words = Words(Behind(line, word));
  return words.empty() ? std::nullopt : Number(words.front());
}

bool Contains(std::string_view line, std::string_view word) {
  return line.find(word) != std::string_view::npos;
}

bool IsRule(std::string_view line) {
  return line.size() >= 3 && line.find_first_not_of('=') == std::string_view::npos;
}

class Reader {
 public:
  RasReport Read(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      Line(line);
    }
    Settle();
    report_.cut = !saw_warnings_ && !report_.none;
    return std::move(report_);
  }

 private:
  enum class Section : uint8_t { kHeader, kTable, kDead, kUnresponsive, kTimeout, kCommunicator };
  // What the ranks named next have in common.
  enum class Subject : uint8_t { kNone, kMissing, kStatus, kCount, kError };

  void Line(std::string_view raw) {
    const std::string_view line = Trim(raw);
    if (line.empty() || IsRule(line)) return;
    if (line == "Errors" || line == "Job summary") return;
    if (line == "Warnings") {
      saw_warnings_ = true;
      return;
    }
    if (line.starts_with("NCCL version ")) {
      const auto words = Words(line);
      if (words.size() > 2) report_.version = words[2];
      return;
    }
    if (line.starts_with("CUDA runtime version")) return;
    if (line.starts_with("Communicators...")) return Began(line);
    if (line == "No communicator data collected!") {
      report_.none = true;
      return;
    }
    if (line.front() == '#' && line.size() > 1) {
      if (Contains(line, "(") && Head(line)) return;
      if (Contains(line, "in group")) return;  // second line of the table's head
    }
    if (raw.front() != ' ' && Kind(line)) return;
    if (section_ == Section::kHeader && Summary(line)) return;
    if (section_ == Section::kTable && Row(line)) return;
    if (Sentence(line)) return;
    ++report_.not_understood;
  }

  void Began(std::string_view line) {
    section_ = Section::kTable;
    const std::string_view seconds = Behind(line, "(");
    double number = 0;
    const auto [end, error] =
        std::from_chars(seconds.data(), seconds.data() + seconds.size(), number);
    if (error == std::errc{} && end != seconds.data()) report_.collection_seconds = number;
  }

  // The totals: five numbers where all nodes are equal, else three under their own head.
  bool Summary(std::string_view line) {
    if (line.starts_with("Nodes") || line.starts_with("(total)") || line.starts_with("Processes") ||
        line.starts_with("per ")) {
      totals_ = line.starts_with("(total)") ? Contains(line, "per node") ? 5 : 3 : totals_;
      if (line.starts_with("per ")) totals_ = 0;
      return true;
    }
    const auto words = Words(line);
    std::vector<int64_t> numbers;
    for (const std::string_view word : words) {
      const auto number = Number(word);
      if (!number) return false;
      numbers.push_back(*number);
    }
    if (totals_ == 5 && numbers.size() == 5) {
      report_.nodes = Small(numbers[0]);
      report_.processes = Small(numbers[3]);
      report_.gpus = Small(numbers[4]);
    } else if (totals_ == 3 && numbers.size() == 3) {
      report_.nodes = Small(numbers[0]);
      report_.processes = Small(numbers[1]);
      report_.gpus = Small(numbers[2]);
    }
    return true;
  }

  bool Row(std::string_view line) {
    const auto words = Words(line);
    if (line.starts_with("Group")) return true;
    if (words.size() < 7) return false;
    const auto number = [&](size_t i) { return Number(words[i]); };
    if (!number(0) || !number(1) || !number(2) || !number(4) || !number(5)) return false;
    RasGroup group;
    group.communicators = Small(*number(1));
    group.nodes = Small(*number(2));
    group.ranks_per_communicator = Small(*number(4));
    group.ranks = Small(*number(5));
    group.status = words[6];
    for (size_t i = 7; i < words.size(); ++i) {
      if (i > 7) group.errors += ',';
      group.errors += words[i];
    }
    if (report_.groups.size() < kMaxRasCommunicators) {
      report_.communicators_told = Small(int64_t{report_.communicators_told} + group.communicators);
      report_.groups.push_back(std::move(group));
    }
    return true;
  }

  // "#0-0 (27a079b828ff1a75) MISMATCH"
  bool Head(std::string_view line) {
    const size_t open = line.find('('), close = line.find(')');
    const auto group = Number(line.substr(1, std::min(line.find('-'), open) - 1));
    if (!group || close == std::string_view::npos || close < open) return false;
    const std::string_view id = line.substr(open + 1, close - open - 1);
    section_ = Section::kCommunicator;
    subject_ = Subject::kNone;
    Settle();
    current_ = FindOrAdd(id);
    if (current_ == nullptr) return true;
    if (*group >= 0 && static_cast<size_t>(*group) < report_.groups.size())
      current_->size = report_.groups[static_cast<size_t>(*group)].ranks_per_communicator;
    const std::string_view kind = line.substr(close + 1);
    current_->mismatch |= Contains(kind, "MISMATCH");
    current_->incomplete |= Contains(kind, "INCOMPLETE");
    current_->failed |= Contains(kind, "ERROR");
    return true;
  }

  RasCommunicator* FindOrAdd(std::string_view id) {
    for (RasCommunicator& known : report_.communicators) {
      if (known.id == id) return &known;
    }
    if (report_.communicators.size() >= kMaxDetailed) return nullptr;
    report_.communicators.push_back({});
    report_.communicators.back().id = id;
    return &report_.communicators.back();
  }

  bool Kind(std::string_view line) {
    if (line == "DEAD") {
      section_ = Section::kDead;
    } else if (line == "INCOMPLETE") {
      section_ = Section::kUnresponsive;
    } else if (line == "TIMEOUT") {
      section_ = Section::kTimeout;
    } else {
      return false;
    }
    Settle();
    current_ = nullptr;
    return true;
  }

  bool Sentence(std::string_view line) {
    const auto words = Words(line);
    std::optional<int64_t> first;
    if (!words.empty()) first = Number(words.front());
    switch (section_) {
      case Section::kDead:
      case Section::kUnresponsive: {
        const bool dead = section_ == Section::kDead;
        if (line.starts_with("Process ")) return Process(line, dead);
        if (const auto count = dead ? first : NumberBehind(line, "from ")) {
          (dead ? report_.dead_told : report_.unresponsive_told) = Small(*count);
          return true;
        }
        return line.front() == '[';
      }
      case Section::kTimeout:
        if (const auto count = NumberBehind(line, "Encountered ")) {
          report_.timeouts = Small(*count);
          return true;
        }
        return false;
      case Section::kCommunicator:
        return InCommunicator(line, words, first);
      case Section::kHeader:
      case Section::kTable:
        return false;
    }
    return false;
  }

  bool Process(std::string_view line, bool dead) {
    auto& list = dead ? report_.dead : report_.unresponsive;
    if (list.size() >= kMaxDetailed) return true;
    RasProcess process;
    process.pid = NumberBehind(line, "Process ").value_or(-1);
    if (const auto words = Words(Behind(line, " on node ")); !words.empty())
      process.host = words[0];
    process.gpus = Trim(Behind(Behind(line, " managing "), " "));
    list.push_back(std::move(process));
    return true;
  }

  bool InCommunicator(std::string_view line, const std::vector<std::string_view>& words,
                      std::optional<int64_t> first) {
    if (current_ == nullptr) return true;
    if (const auto missing = NumberBehind(line, "Missing communicator data from ")) {
      subject_ = Subject::kMissing;
      current_->missing = Small(*missing);
      return true;
    }
    if (line.starts_with("The missing rank")) return MissingRanks(line);
    if (line.starts_with("Communicator ranks have different ")) return Differ(line);
    if (line.starts_with("Initialization error") || line.starts_with("Asynchronous error")) {
      subject_ = Subject::kError;
      status_.clear();
      return true;
    }
    if (line.starts_with("Rank ")) return Rank(line, words);
    if (!first) return line.front() == '[';
    // "26 ranks have launched up to operation 6650" and its kind
    const int32_t ranks = Small(*first);
    if (Contains(line, "launched")) {
      Counted(NumberBehind(line, "operation ").value_or(0), ranks);
      return true;
    }
    if (Contains(line, " status ")) {
      subject_ = Subject::kStatus;
      const auto status = Words(Behind(line, " status "));
      status_ = status.empty() ? std::string_view{} : status.front();
      return true;
    }
    if (Contains(line, " reported ")) {
      subject_ = Subject::kError;
      status_ = Trim(Behind(line, " reported "));
      return true;
    }
    return false;
  }

  // 2.24 and 2.25 name the ranks alone: "The missing ranks: 3,21"
  bool MissingRanks(std::string_view line) {
    for (const std::string_view word : Words(Behind(line, ":"))) {
      const auto rank = Number(word);
      if (!rank || current_->ranks.size() >= kMaxDetailed) continue;
      RasRank named;
      named.rank = Small(*rank);
      named.state = RasRank::State::kUnresponsive;
      current_->ranks.push_back(std::move(named));
    }
    return true;
  }

  bool Differ(std::string_view line) {
    const std::string_view what = Behind(line, "different ");
    if (what.starts_with("status")) {
      subject_ = Subject::kStatus;
      return true;
    }
    subject_ = Subject::kCount;
    operation_ = kRasAllOperations;
    for (size_t i = 0; i < kRasOperationCount; ++i) {
      if (what.starts_with(kRasOperations[i]) &&
          what.substr(kRasOperations[i].size()).starts_with(" ")) {
        operation_ = i;
      }
    }
    return true;
  }

  void Counted(int64_t launched, int32_t ranks) {
    subject_ = Subject::kCount;
    launched_ = launched;
    if (current_->counts.size() < kMaxDetailed)
      current_->counts.push_back({operation_, launched, ranks});
  }

  // "Rank 3 -- GPU 3 (NVML 5) managed by process 483075 on node 172.16.64.210", and with what sets
  // it apart between the number and the dash, where it is alone.
  bool Rank(std::string_view line, const std::vector<std::string_view>& words) {
    const auto number = words.size() > 1 ? Number(words[1]) : std::nullopt;
    if (!number) return false;
    const size_t dash = std::min(line.find(" -- "), line.size());
    const std::string_view alone = line.substr(0, dash);
    if (Contains(alone, "launched")) Counted(NumberBehind(alone, "operation ").value_or(0), 1);
    if (const std::string_view status = Behind(alone, " has status "); !status.empty()) {
      subject_ = Subject::kStatus;
      status_ = Trim(status);
    }
    if (const std::string_view error = Behind(alone, " reported "); !error.empty()) {
      subject_ = Subject::kError;
      status_ = Trim(error);
    }
    RasRank* rank = Named(Small(*number));
    if (rank == nullptr) return true;
    const std::string_view who = line.substr(dash);
    rank->pid = NumberBehind(who, " process ").value_or(rank->pid);
    if (const auto host = Words(Behind(who, " on node ")); !host.empty()) rank->host = host.front();
    if (const auto gpu = NumberBehind(who, "GPU ")) rank->cuda_device = Small(*gpu);
    rank->nvml_device = rank->cuda_device;
    if (const std::string_view nvml = Behind(who, "(NVML "); !nvml.empty()) {
      if (const auto gpu = Number(nvml.substr(0, std::min(nvml.find(')'), nvml.size()))))
        rank->nvml_device = Small(*gpu);
    }
    Describe(*rank);
    return true;
  }

  void Describe(RasRank& rank) {
    using State = RasRank::State;
    switch (subject_) {
      case Subject::kMissing:
        rank.state = State::kUnresponsive;
        break;
      case Subject::kStatus:
        rank.state = status_ == "RUNNING"                          ? State::kRunning
                     : status_ == "INIT"                           ? State::kInitialising
                     : status_ == "FINALIZE"                       ? State::kFinalising
                     : status_ == "ABORT"                          ? State::kAborted
                     : status_ == "NOCOMM" || status_ == "UNKNOWN" ? State::kNoMember
                                                                   : State::kUnknown;
        break;
      case Subject::kCount:
        rank.launched[operation_] = launched_;
        break;
      case Subject::kError:
        rank.error = status_.empty() ? "error" : std::string(status_);
        break;
      case Subject::kNone:
        break;
    }
  }

  RasRank* Named(int32_t number) {
    for (RasRank& known : current_->ranks) {
      if (known.rank == number) return &known;
    }
    if (current_->ranks.size() >= kMaxDetailed) return nullptr;
    current_->ranks.push_back({});
    current_->ranks.back().rank = number;
    return &current_->ranks.back();
  }

  // What RAS said of whole processes holds for their ranks.
  void Settle() {
    if (current_ == nullptr) return;
    current_->reported = std::max(0, current_->size - current_->missing);
    for (RasRank& rank : current_->ranks) {
      for (const RasProcess& process : report_.dead) {
        if (rank.pid == process.pid && rank.host == process.host && rank.pid >= 0)
          rank.state = RasRank::State::kDead;
      }
    }
  }

  // Of what is listed one by one; the text itself lists at most half of the ranks.
  static constexpr size_t kMaxDetailed = 2048;

  RasReport report_;
  Section section_ = Section::kHeader;
  Subject subject_ = Subject::kNone;
  RasCommunicator* current_ = nullptr;
  size_t operation_ = kRasAllOperations;
  int64_t launched_ = 0;
  std::string status_;
  int totals_ = 0;
  bool saw_warnings_ = false;
};

}  // namespace

RasReport ReadRasText(std::string_view text) {
  return Reader().Read(text);
}

RasReport ReadRas(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' ? ReadRasJson(text.substr(begin))
                                                               : ReadRasText(text);
}

std::optional<std::array<int, 3>> RasVersion(std::string_view version) {
  std::array<int, 3> numbers = {0, 0, 0};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto [end, error] =
        std::from_chars(version.data(), version.data() + version.size(), numbers[i]);
    if (error != std::errc{}) return std::nullopt;
    version.remove_prefix(static_cast<size_t>(end - version.data()));
    if (version.empty() || version.front() != '.') {
      if (i == 0) return std::nullopt;
      break;
    }
    version.remove_prefix(1);
  }
  return numbers;
}

}  // namespace rankscope::reports
