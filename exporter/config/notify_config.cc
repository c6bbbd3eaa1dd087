// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/notify_config.h"

#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "exporter/config/yaml_shape.h"
#include "exporter/loop/http_url.h"

namespace rankscope::exporter {
namespace {

// Each is a section of the file; a site with more has another tool.
constexpr size_t kMostChannels = 64;
constexpr size_t kMostRules = 256;

using Words = std::vector<std::string>;

Status CheckName(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  if (!text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), allowed))
    return {};
  return Error{"a name has small letters, digits, - and _, at most 40"};
}

Status CheckPath(std::string_view text) {
  return text.starts_with('/') ? Status() : Status(Error{"not an absolute path"});
}

Status CheckAddress(std::string_view text) {
  return IsMailAddress(text) ? Status() : Status(Error{"not an address; write name@host"});
}

Status CheckDomain(std::string_view text) {
  return IsMailAddress("a@" + std::string(text)) ? Status() : Status(Error{"not a mail domain"});
}

Status CheckPage(std::string_view text) {
  return CheckHttpUrl(text);
}

Status CheckAny(std::string_view) {
  return {};
}

Status OneOf(std::string_view text, std::span<const std::string_view> choices) {
  std::string list;
  for (const std::string_view choice : choices) {
    if (choice == text) return {};
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  return Error{"'" + std::string(text.substr(0, 40)) + "' is not one of " + list};
}

Status CheckSeverity(std::string_view text) {
  static constexpr std::string_view kWords[] = {"critical", "warning", "info", "ok"};
  return OneOf(text, kWords);
}

Status CheckJobDomain(std::string_view text) {
  static constexpr std::string_view kWords[] = {"workload", "infrastructure", "scheduler",
                                                "unknown"};
  return OneOf(text, kWords);
}

Status CheckOccasion(std::string_view text) {
  std::vector<std::string_view> names;
  for (const OccasionRow& row : kOccasions) names.push_back(row.name);
  return OneOf(text, names);
}

class NotifyReader {
 public:
  explicit NotifyReader(std::string name) : name_(std::move(name)) {}

  NotifyOutcome Read(std::string_view text) {
    if (const auto problem = CheckYamlShape(text)) {
      Add(problem->line, problem->what);
      return Take();
    }
    try {
      const YAML::Node root = YAML::Load(std::string(text));
      if (!root.IsNull()) ReadRoot(root);
    } catch (const YAML::Exception& error) {
      Add(error.mark.line, "not valid YAML: " + error.msg);
    }
    return Take();
  }

 private:
  using Check = Status (*)(std::string_view);
  using Setter = std::function<void(const YAML::Node&)>;
  using Keys = std::map<std::string, Setter>;

  void Add(int line, const std::string& what) {
    problems_.emplace_back(
        line, (line < 0 ? name_ : name_ + ':' + std::to_string(line + 1)) + ": " + what);
  }
  NotifyOutcome Take() {
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    NotifyOutcome outcome;
    outcome.config = std::move(config_);
    for (auto& [line, text] : problems_) outcome.problems.push_back(std::move(text));
    return outcome;
  }

  void ReadMap(const YAML::Node& node, const std::string& what, const Keys& keys) {
    if (!node.IsMap()) return Add(node.Mark().line, what + ": expected `key: value`");
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const int line = entry.first.Mark().line;
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      const auto found = keys.find(key);
      if (found == keys.end()) {
        std::string list;
        for (const auto& [name, setter] : keys) list += (list.empty() ? "" : ", ") + name;
        Add(line, what + ": unknown key '" + key.substr(0, 40) + "'; there are " + list);
      } else if (!seen.insert(key).second) {
        Add(line, what + ": " + key + " is given twice");
      } else {
        found->second(entry.second);
      }
    }
  }

  Setter Text(std::string key, std::string& value, Check check) {
    return [this, key = std::move(key), &value, check](const YAML::Node& node) {
      if (!node.IsScalar()) return Add(node.Mark().line, key + ": expected one value");
      if (const Status status = check(node.Scalar()); !status.ok())
        return Add(node.Mark().line, key + ": " + status.error());
      value = node.Scalar();
    };
  }
  Setter List(std::string key, Words& value, Check check) {
    return [this, key = std::move(key), &value, check](const YAML::Node& node) {
      if (!node.IsSequence()) return Add(node.Mark().line, key + ": expected a list");
      for (const YAML::Node& item : node) {
        if (!item.IsScalar()) {
          Add(item.Mark().line, key + ": expected a list of words");
        } else if (const Status status = check(item.Scalar()); !status.ok()) {
          Add(item.Mark().line, key + ": " + status.error());
        } else {
          value.push_back(item.Scalar());
        }
      }
    };
  }
  Setter Number(std::string key, int64_t& value, int64_t most) {
    return [this, key = std::move(key), &value, most](const YAML::Node& node) {
      const std::string text = node.IsScalar() ? node.Scalar() : "";
      int64_t parsed = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
      if (error != std::errc() || end != text.data() + text.size() || parsed < 1 || parsed > most)
        return Add(node.Mark().line,
                   key + ": expected a whole number from 1 to " + std::to_string(most));
      value = parsed;
    };
  }
  Setter Flag(std::string key, bool& value) {
    return [this, key = std::move(key), &value](const YAML::Node& node) {
      const std::string text = node.IsScalar() ? node.Scalar() : "";
      if (text != "true" && text != "false")
        return Add(node.Mark().line, key + ": expected true or false");
      value = text == "true";
    };
  }
  Setter Pause(std::string key, Duration& value, Duration most, std::string example) {
    return [this, key = std::move(key), &value, most,
            example = std::move(example)](const YAML::Node& node) {
      const auto parsed = ParseDuration(node.IsScalar() ? node.Scalar() : "");
      if (!parsed || *parsed > most)
        return Add(node.Mark().line, key + ": expected a duration up to " + example);
      value = *parsed;
    };
  }
  template <class Item>
  Setter Sections(std::string key, std::vector<Item>& items, size_t most,
                  void (NotifyReader::*read)(const YAML::Node&, Item&)) {
    return [this, key = std::move(key), &items, most, read](const YAML::Node& node) {
      if (!node.IsSequence()) return Add(node.Mark().line, key + ": expected a list of sections");
      if (node.size() > most)
        return Add(node.Mark().line, key + ": at most " + std::to_string(most));
      items.reserve(node.size());
      for (const YAML::Node& item : node) (this->*read)(item, items.emplace_back());
    };
  }

  void ReadRoot(const YAML::Node& root) {
    ReadMap(root, "notify",
            {{"link", Text("link", config_.link, CheckPage)},
             {"mail_domains", List("mail_domains", config_.mail_domains, CheckDomain)},
             {"per_user_per_hour", Number("per_user_per_hour", config_.per_user_per_hour, 10000)},
             {"gather", Pause("gather", config_.gather, Seconds(300), "5m, like 1s")},
             {"array_wait",
              Pause("array_wait", config_.array_wait, Seconds(24 * 3600), "24h, like 10m")},
             {"channels",
              Sections("channels", config_.channels, kMostChannels, &NotifyReader::ReadChannel)},
             {"rules", Sections("rules", config_.rules, kMostRules, &NotifyReader::ReadRule)}});
    while (config_.link.ends_with('/')) config_.link.pop_back();
    for (const auto& [line, rule] : rule_lines_) {
      for (const std::string& channel : config_.rules[rule].channels) {
        if (config_.Find(channel) == nullptr)
          Add(line, "rules: there is no channel '" + channel + "'");
      }
    }
  }

  void ReadChannel(const YAML::Node& node, NotifyChannel& channel) {
    std::string kind;
    const auto starttls = +[](std::string_view text) -> Status {
      static constexpr std::string_view kWords[] = {"required", "if_offered", "never"};
      return OneOf(text, kWords);
    };
    const auto kinds = +[](std::string_view text) { return OneOf(text, kChannelKinds); };
    ReadMap(node, "channel",
            {{"name", Text("name", channel.name, CheckName)},
             {"kind", Text("kind", kind, kinds)},
             {"url", Text("url", channel.url, CheckAny)},
             {"url_file", Text("url_file", channel.url_file, CheckPath)},
             {"curl_config", Text("curl_config", channel.curl_config, CheckPath)},
             {"from", Text("from", channel.from, CheckAddress)},
             {"to", List("to", channel.to, CheckAddress)},
             {"user", Text("user", channel.user, CheckAny)},
             {"password_file", Text("password_file", channel.password_file, CheckPath)},
             {"ca_file", Text("ca_file", channel.ca_file, CheckPath)},
             {"starttls", Text("starttls", channel.starttls, starttls)},
             {"log", Flag("log", channel.log)},
             {"jobs", Flag("jobs", channel.jobs)},
             {"per_minute", Number("per_minute", channel.per_minute, 10000)}});
    const auto found = std::find(std::begin(kChannelKinds), std::end(kChannelKinds), kind);
    if (found != std::end(kChannelKinds))
      channel.kind = static_cast<ChannelKind>(found - std::begin(kChannelKinds));
    if (node.IsMap()) CheckChannel(node.Mark().line, kind, channel);
  }

  void CheckChannel(int line, const std::string& kind, const NotifyChannel& channel) {
    const auto complain = [&](const std::string& what) {
      Add(line, "channel " + channel.name + ": " + what);
    };
    if (channel.name.empty()) complain("has no name");
    if (std::count_if(config_.channels.begin(), config_.channels.end(),
                      [&](const NotifyChannel& other) { return other.name == channel.name; }) > 1)
      complain("there are two of this name");
    if (kind.empty()) return complain("has no kind");
    if (channel.url.empty() == channel.url_file.empty())
      complain("needs url or url_file, and only one of them");
    if (channel.kind == ChannelKind::kEmail) {
      if (!channel.url.starts_with("smtp://") && !channel.url.starts_with("smtps://"))
        complain("its url is smtp://HOST:PORT or smtps://HOST:PORT");
      if (channel.url.find('@') != std::string::npos ||
          std::count(channel.url.begin(), channel.url.end(), '/') > 2)
        complain("its url has only a host and a port; user and password_file are keys");
      if (channel.from.empty()) complain("needs `from: name@host`");
      if (channel.user.empty() != channel.password_file.empty())
        complain("needs user and password_file, or neither");
      return;
    }
    if (!channel.url.empty()) {
      if (const Status url = CheckHttpUrl(channel.url); !url.ok()) complain(url.error());
    }
    if (!channel.from.empty() || !channel.to.empty() || !channel.user.empty() ||
        !channel.ca_file.empty())
      complain(
          "from, to, user, password_file and ca_file are for mail; curl_config has the others");
  }

  void ReadRule(const YAML::Node& node, NotifyRule& rule) {
    ReadMap(node, "rule",
            {{"domains", List("domains", rule.domains, CheckJobDomain)},
             {"severities", List("severities", rule.severities, CheckSeverity)},
             {"families", List("families", rule.families, CheckAny)},
             {"users", List("users", rule.users, CheckAny)},
             {"partitions", List("partitions", rule.partitions, CheckAny)},
             {"on", List("on", rule.on, CheckOccasion)},
             {"channels", List("channels", rule.channels, CheckName)}});
    if (node.IsMap() && rule.channels.empty()) Add(node.Mark().line, "rule: names no channel");
    rule_lines_.emplace_back(node.Mark().line, config_.rules.size() - 1);
  }

  std::string name_;
  NotifyConfig config_;
  std::vector<std::pair<int, size_t>> rule_lines_;
  std::vector<std::pair<int, std::string>> problems_;
};

}  // namespace

const NotifyChannel* NotifyConfig::Find(std::string_view channel) const {
  for (const NotifyChannel& one : channels) {
    if (one.name == channel) return &one;
  }
  return nullptr;
}

NotifyOutcome ParseNotifyConfig(std::string_view text, const std::string& name) {
  return NotifyReader(name).Read(text);
}

NotifyOutcome LoadNotifyConfig(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxConfigBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && file.gcount() == 0 && !file.eof())
    return {{}, {path + ": cannot be read; check notify.file and the permissions of the file"}};
  text.resize(static_cast<size_t>(file.gcount()));
  return ParseNotifyConfig(text, path);
}

Status CheckOwner(const std::string& path, uint32_t uid) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return Error{path + ": cannot be read"};
  if (info.st_uid != 0 && info.st_uid != uid)
    return Error{path + ": belongs to another user; chown root"};
  if ((info.st_mode & 022) != 0) return Error{path + ": others can write it; chmod go-w"};
  return {};
}

bool IsMailAddress(std::string_view text) {
  const auto is_word = [](std::string_view part, std::string_view marks) {
    return !part.empty() && part.front() != '.' && part.back() != '.' && part.front() != '-' &&
           std::all_of(part.begin(), part.end(), [marks](char c) {
             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    marks.find(c) != std::string_view::npos;
           });
  };
  const size_t at = text.find('@');
  return at != std::string_view::npos && text.size() <= 254 &&
         is_word(text.substr(0, at), "._+-=") && is_word(text.substr(at + 1), ".-");
}

std::string MaskedUrl(std::string_view url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return "...";
  const size_t end = url.find_first_of("/?#", scheme + 3);
  std::string_view host = url.substr(0, end);
  if (const size_t at = host.rfind('@'); at != std::string_view::npos)
    return std::string(url.substr(0, scheme + 3)) + "..." + std::string(host.substr(at));
  return std::string(host) + (end == std::string_view::npos ? "" : "/...");
}

}  // namespace rankscope::exporter
