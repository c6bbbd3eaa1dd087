// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "exporter/config/config_keys.h"
#include "exporter/config/yaml_shape.h"

namespace rankscope::exporter {
namespace {

// Beyond, a file is not a configuration with mistakes but something else.
constexpr size_t kMaxProblems = 50;

// The key of the table that is nearest in spelling, for the remedy; empty when none is near.
std::string Nearest(const std::string& path, const std::vector<Key>& keys) {
  const auto distance = [](const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= b.size(); ++j) {
        const size_t above = row[j];
        row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1u : 0u)});
        diagonal = above;
      }
    }
    return row[b.size()];
  };
  std::string best;
  size_t best_distance = 4;  // three typing mistakes
  for (const Key& key : keys) {
    const size_t d = distance(path.substr(0, 80), key.path);
    if (d < best_distance) {
      best_distance = d;
      best = key.path;
    }
  }
  return best;
}

class Reader {
 public:
  Reader(Config& config, std::string name)
      : config_(config), name_(std::move(name)), keys_(Bind(config)) {}

  void Read(std::string_view text) {
    if (const auto problem = CheckYamlShape(text)) return Add(problem->line, "", problem->what);
    try {
      const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
      if (documents.size() > 1) {
        Add(documents[1].Mark().line, "", "a second YAML document; a configuration has one");
      }
      if (!documents.empty() && !documents[0].IsNull()) ReadMap(documents[0], "");
    } catch (const YAML::Exception& error) {
      Add(error.mark.line, "", "not valid YAML: " + error.msg);
    }
    CheckTogether();
  }

  Problems Take() {
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Problems texts;
    for (auto& [line, text] : problems_) texts.push_back(std::move(text));
    if (texts.size() > kMaxProblems) {
      const size_t more = texts.size() - kMaxProblems;
      texts.resize(kMaxProblems);
      texts.push_back(name_ + ": and " + std::to_string(more) + " more");
    }
    return texts;
  }

 private:
  void Add(int line, const std::string& path, const std::string& what) {
    const std::string where = line < 0 ? name_ : name_ + ':' + std::to_string(line + 1);
    problems_.emplace_back(line, where + ": " + (path.empty() ? "" : path + ": ") + what);
  }

  bool IsSection(const std::string& path) const {
    return std::any_of(keys_.begin(), keys_.end(),
                       [&](const Key& key) { return key.path.rfind(path + '.', 0) == 0; });
  }

  void ReadMap(const YAML::Node& node, const std::string& prefix) {
    if (!node.IsMap()) {
      Add(node.Mark().line, prefix, "expected keys with values; write `key: value`");
      return;
    }
    std::vector<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        Add(entry.first.Mark().line, prefix, "a key must be a word");
        continue;
      }
      const std::string word = entry.first.Scalar();
      const std::string path = prefix.empty() ? word : prefix + '.' + word;
      const int line = entry.first.Mark().line;
      if (std::find(seen.begin(), seen.end(), word) != seen.end()) {
        Add(line, path, "is given twice; keep one");
        continue;
      }
      seen.push_back(word);
      const auto key = std::find_if(keys_.begin(), keys_.end(),
                                    [&](const Key& candidate) { return candidate.path == path; });
      if (key != keys_.end()) {
        ReadValue(*key, entry.second, line);
      } else if (IsSection(path)) {
        if (!entry.second.IsNull()) ReadMap(entry.second, path);
      } else {
        const std::string near = Nearest(path, keys_);
        Add(line, path,
            "unknown key; " + (near.empty() ? std::string("`rankscope serve --print-config` lists "
                                                          "all")
                                            : "did you mean " + near + "?"));
      }
    }
  }

  void ReadValue(const Key& key, const YAML::Node& node, int key_line) {
    const int line = node.Mark().line >= 0 ? node.Mark().line : key_line;
    Status status;
    if (key.list && node.IsSequence()) {
      std::vector<std::string> items;
      for (const YAML::Node& item : node) {
        if (!item.IsScalar()) {
          Add(item.Mark().line, key.path, "expected a list of words");
          return;
        }
        items.push_back(item.Scalar());
      }
      status = key.set_list(items);
    } else if (key.list) {
      status = Error{"expected a list; write " + key.get()};
    } else if (node.IsScalar()) {
      status = key.set(node.Scalar());
    } else {
      status = Error{"expected one value, such as " + key.get()};
    }
    if (!status.ok()) Add(line, key.path, status.error());
  }

  void CheckTogether() {
    if (config_.state.total_bytes < config_.state.job_bytes) {
      Add(-1, "state.total_bytes", "smaller than state.job_bytes; no recording would be kept");
    }
    if (config_.families.rendezvous_fire < config_.families.rendezvous_suspect) {
      Add(-1, "families.rendezvous_hang.fire", "shorter than its suspect");
    }
  }

  Config& config_;
  std::string name_;
  std::vector<Key> keys_;
  std::vector<std::pair<int, std::string>> problems_;
};

}  // namespace

const SourceSettings* Config::FindSource(std::string_view name) const {
  for (const SourceSettings& source : sources) {
    if (source.name == name) return &source;
  }
  return nullptr;
}

Config DefaultConfig(std::span<const SourceSettings> sources) {
  Config config;
  config.sources.assign(sources.begin(), sources.end());
  return config;
}

ConfigOutcome ParseConfig(std::string_view text, const std::string& name,
                          std::span<const SourceSettings> sources) {
  ConfigOutcome outcome;
  outcome.config = DefaultConfig(sources);
  Reader reader(outcome.config, name);
  reader.Read(text);
  outcome.problems = reader.Take();
  return outcome;
}

ConfigOutcome LoadConfig(const std::string& path, std::span<const SourceSettings> sources) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxConfigBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && file.gcount() == 0 && !file.eof()) {
    return {DefaultConfig(sources),
            {path +
             ": cannot be read; check the path and its permissions, or leave out --config.file"}};
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return ParseConfig(text, path, sources);
}

Status SetConfigKey(Config& config, std::string_view key, std::string_view value) {
  for (const Key& candidate : Bind(config)) {
    if (candidate.path != key) continue;
    const Status status = candidate.set(std::string(value));
    return status.ok() ? Status() : Status(Error{candidate.path + ": " + status.error()});
  }
  return Error{std::string(key) + ": unknown key"};
}

std::string PrintConfig(const Config& config) {
  Config copy = config;
  std::string text =
      "# SPDX-FileCopyrightText: The rankscope authors\n"
      "# SPDX-License-Identifier: Apache-2.0\n"
      "# rankscope serve: every key there is, with the value in effect. Flags override this "
      "file.\n";
  std::vector<std::string> open;
  for (const Key& key : Bind(copy)) {
    std::vector<std::string> words;
    std::stringstream stream(key.path);
    for (std::string word; std::getline(stream, word, '.');) words.push_back(word);
    size_t common = 0;
    while (common < open.size() && common + 1 < words.size() && open[common] == words[common]) {
      ++common;
    }
    for (size_t i = common; i + 1 < words.size(); ++i) {
      text += std::string(2 * i, ' ') + words[i] + ":\n";
    }
    open.assign(words.begin(), words.end() - 1);
    const std::string indent(2 * (words.size() - 1), ' ');
    if (!key.comment.empty()) text += indent + "# " + key.comment + '\n';
    text += indent + words.back() + ": " + key.get() + '\n';
  }
  return text;
}

}  // namespace rankscope::exporter
