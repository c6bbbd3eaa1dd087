// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/yaml_shape.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

namespace rankscope::exporter {
namespace {

// What the reader of YAML recurses over is bounded.
constexpr size_t kMaxLineBytes = 4096;
constexpr int kMaxFlowDepth = 16;
constexpr size_t kMaxIndent = 64;

// Where the documents of a text begin.
class Documents final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

  int line = -1;
};

// yaml-cpp 0.7 finds documents without end in a text such as ",": no more than two are looked for.
std::optional<ShapeProblem> CheckOneDocument(std::string_view text) try {
  std::stringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  Documents documents;
  if (!parser.HandleNextDocument(documents) || !parser.HandleNextDocument(documents))
    return std::nullopt;
  return ShapeProblem{documents.line, "a second YAML document; a configuration has one"};
} catch (const YAML::Exception& error) {
  return ShapeProblem{error.mark.line, "not valid YAML: " + error.msg};
}

}  // namespace

std::optional<ShapeProblem> CheckYamlShape(std::string_view text) {
  if (text.size() > kMaxConfigBytes) {
    return ShapeProblem{-1, std::to_string(text.size()) + " bytes; a configuration has at most " +
                                std::to_string(kMaxConfigBytes)};
  }
  int line = 0;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : '\n';
    if (c == '\0') return ShapeProblem{line, "a NUL byte, so this is not a text file"};
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > kMaxFlowDepth) {
      return ShapeProblem{
          line, "nested too deep; at most " + std::to_string(kMaxFlowDepth) + " brackets"};
    }
    if (c != '\n') continue;
    const std::string_view row = text.substr(start, i - start);
    const size_t indent = std::min(row.find_first_not_of(" -?"), row.size());
    if (row.size() > kMaxLineBytes || indent > kMaxIndent) {
      return ShapeProblem{line, "a line too long or indented too far for a configuration"};
    }
    start = i + 1;
    ++line;
  }
  return CheckOneDocument(text);
}

}  // namespace rankscope::exporter
