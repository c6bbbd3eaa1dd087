// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Every scenario: what it expects, and what must hold for any verdict whatsoever.

#include "tests/scenarios/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_words.h"
#include "detectors/families/family_names.h"
#include "tests/contradictions/contradictions.h"
#include "tests/scenarios/expand.h"

namespace rankscope::scenarios {
namespace {

using testing::ElementsAreArray;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;

std::vector<std::string> Words(const YAML::Node& node) {
  if (node.IsScalar()) return {node.as<std::string>()};
  return node.as<std::vector<std::string>>();
}

// By its word in a verdict's JSON.
proto::Ground GroundOf(const YAML::Node& node) {
  for (int i = proto::GROUND_HEURISTIC; i <= proto::GROUND_RECORD; ++i) {
    if (Word(static_cast<proto::Ground>(i)) == node.as<std::string>())
      return static_cast<proto::Ground>(i);
  }
  throw std::runtime_error("no ground: " + node.as<std::string>());
}

std::string StateOf(const proto::Verdict& verdict, const std::string& code) {
  for (const auto& family : verdict.families()) {
    if (family.code() == code) return proto::FamilyState::S_Name(family.state());
  }
  return "absent";
}

// `DOMAIN_WORKLOAD` -> `workload`
std::string Lower(std::string name, size_t prefix) {
  name = name.substr(prefix);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

// All sentences that claim or advise something.
std::string SaidBy(const proto::Verdict& verdict) {
  std::string said;
  for (const auto& evidence : verdict.shows()) said += evidence.text() + "\n";
  for (const auto& implication : verdict.implies()) said += implication.text() + "\n";
  for (const auto& sentence : verdict.resolution().immediate()) said += sentence + "\n";
  return said;
}
std::string AskedBy(const proto::Verdict& verdict) {
  std::string asked;
  for (const auto& open : verdict.cannot_decide()) asked += open.question() + "\n";
  return asked;
}

void CheckKey(const std::string& key, const YAML::Node& value, const proto::Verdict& verdict) {
  if (key == "at") return;
  if (key == "code") {
    EXPECT_THAT(Words(value), testing::Contains(verdict.code())) << "expected codes";
  } else if (key == "not_code") {
    EXPECT_THAT(Words(value), testing::Not(testing::Contains(verdict.code())));
  } else if (key == "sub") {
    EXPECT_EQ(verdict.sub(), value.as<std::string>());
  } else if (key == "fault_class") {
    EXPECT_EQ(verdict.fault_class(), value.as<std::string>());
  } else if (key == "exception_type") {
    EXPECT_EQ(verdict.exception_type(), value.as<std::string>());
  } else if (key == "signal") {
    EXPECT_EQ(verdict.signal(), value.as<std::string>());
  } else if (key == "domain") {
    EXPECT_EQ(Lower(proto::Domain_Name(verdict.domain()), 7), value.as<std::string>());
  } else if (key == "disposition") {
    EXPECT_EQ(verdict.disposition().kind(), value.as<std::string>());
  } else if (key == "state") {
    EXPECT_EQ(Lower(proto::State_Name(verdict.state()), 0), value.as<std::string>());
  } else if (key == "ranks") {
    EXPECT_THAT(verdict.ranks(), ElementsAreArray(value.as<std::vector<int>>()));
  } else if (key == "min_ground") {
    EXPECT_THAT(verdict.ground(), Ge(GroundOf(value)));
  } else if (key == "max_ground") {
    EXPECT_THAT(verdict.ground(), Le(GroundOf(value)));
  } else if (key == "warning") {
    std::vector<std::string> kinds;
    for (const auto& warning : verdict.warnings()) kinds.push_back(warning.kind());
    for (const std::string& kind : Words(value)) EXPECT_THAT(kinds, testing::Contains(kind));
  } else if (key == "hazards") {
    std::vector<std::string> hazards;
    for (const auto& warning : verdict.warnings()) {
      if (warning.kind() == "known_hazard")
        hazards.push_back(warning.subject() + " " + warning.severity());
    }
    EXPECT_THAT(hazards, testing::UnorderedElementsAreArray(Words(value)));
  } else if (key == "no_warning") {
    for (const auto& warning : verdict.warnings())
      EXPECT_THAT(Words(value), testing::Not(testing::Contains(warning.kind()))) << warning.text();
  } else if (key == "undecidable") {
    for (const std::string& code : Words(value))
      EXPECT_EQ(StateOf(verdict, code), "NOT_DECIDABLE") << code;
  } else if (key == "ruled_out") {
    for (const std::string& code : Words(value))
      EXPECT_EQ(StateOf(verdict, code), "RULED_OUT") << code;
  } else if (key == "says") {
    for (const std::string& text : Words(value)) EXPECT_THAT(SaidBy(verdict), HasSubstr(text));
  } else if (key == "does_not_say") {
    for (const std::string& text : Words(value))
      EXPECT_THAT(SaidBy(verdict), testing::Not(HasSubstr(text)));
  } else if (key == "asks") {
    for (const std::string& text : Words(value)) EXPECT_THAT(AskedBy(verdict), HasSubstr(text));
  } else if (key == "does_not_ask") {
    for (const std::string& text : Words(value))
      EXPECT_THAT(AskedBy(verdict), testing::Not(HasSubstr(text)));
  } else if (key == "wasted_gpu_seconds") {
    EXPECT_NEAR(verdict.wasted_gpu_seconds(), value.as<double>(), 1);
  } else if (key == "cites") {
    std::string cited;
    for (const auto& evidence : verdict.shows()) cited += evidence.cite().log().line() + "\n";
    for (const std::string& text : Words(value)) EXPECT_THAT(cited, HasSubstr(text));
  } else {
    ADD_FAILURE() << "unknown key '" << key << "' in expect";
  }
}

// Read, and judged as it is, once for all tests of a scenario that follow each other, as ctest runs
// them.
class ScenarioTest : public testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { known_.reset(); }

  const Scenario& TheScenario() { return Known().scenario; }

  // By time: when it expects something, each few seconds, and at its end.
  const std::map<double, engine::BuiltVerdict>& Verdicts() {
    auto& [path, scenario, verdicts] = Known();
    if (!verdicts.empty()) return verdicts;
    const double end =
        static_cast<double>(scenario.observations.back().t_ns()) * 1e-9 - kStartSeconds;
    constexpr int kCuts = 40;
    std::set<double> when = {INFINITY};
    for (const Expectation& expectation : scenario.expectations) when.insert(expectation.at);
    for (int i = 1; i < kCuts; ++i) when.insert(end * i / kCuts);
    const std::vector<double> times(when.begin(), when.end());
    std::vector<engine::BuiltVerdict> built = JudgeWithAssertions(scenario, times);
    for (size_t i = 0; i < times.size(); ++i) verdicts.emplace(times[i], std::move(built[i]));
    return verdicts;
  }

  const proto::Verdict& Verdict() { return Verdicts().rbegin()->second.document; }

 private:
  struct OfOneScenario {
    std::string path;
    Scenario scenario;
    std::map<double, engine::BuiltVerdict> verdicts;  // none before somebody asks
  };
  OfOneScenario& Known() {
    if (!known_ || known_->path != GetParam())
      known_.emplace(OfOneScenario{GetParam(), LoadScenario(GetParam()), {}});
    return *known_;
  }
  static inline std::optional<OfOneScenario> known_;
};

using Place = std::pair<std::string, int64_t>;  // stream, offset

// What cites a line, by its place.
std::map<Place, std::vector<const proto::Evidence*>> ByCitedLine(const proto::Verdict& verdict) {
  std::map<Place, std::vector<const proto::Evidence*>> found;
  for (const auto& evidence : verdict.shows()) {
    if (!evidence.cite().has_log()) continue;
    const proto::LogRef& cite = evidence.cite().log();
    found[{cite.stream(), cite.offset()}].push_back(&evidence);
  }
  return found;
}

TEST_P(ScenarioTest, JudgesAsExpected) {
  for (const Expectation& expectation : TheScenario().expectations) {
    const proto::Verdict& verdict = Verdicts().at(expectation.at).document;
    SCOPED_TRACE("at " + std::to_string(expectation.at) + " s:\n" + VerdictToText(verdict));
    for (const auto& entry : expectation.what) {
      CheckKey(entry.first.as<std::string>(), entry.second, verdict);
    }
  }
}

TEST_P(ScenarioTest, SaysSomethingOfEveryFamily) {
  const proto::Verdict& verdict = Verdict();
  std::vector<std::string> codes;
  std::vector<std::string> wanted;
  for (const families::FamilyName& name : families::FamilyNames()) wanted.emplace_back(name.code);
  for (const auto& family : verdict.families()) {
    codes.push_back(family.code());
    switch (family.state()) {
      case proto::FamilyState::RULED_IN:
        EXPECT_EQ(family.code(), verdict.code());
        break;
      case proto::FamilyState::RULED_OUT:
        EXPECT_NE(family.by(), "") << family.code() << " is ruled out by nothing";
        break;
      case proto::FamilyState::NOT_DECIDABLE:
        EXPECT_TRUE(family.needs() != proto::STORE_UNSPECIFIED || !family.by().empty())
            << family.code() << " is not decidable for no reason";
        break;
      default:
        ADD_FAILURE() << family.code() << " has no state";
    }
  }
  EXPECT_THAT(codes, testing::UnorderedElementsAreArray(wanted));
}

TEST_P(ScenarioTest, HighConfidenceNeedsAuthorityOrTwoStores) {
  const proto::Verdict& verdict = Verdict();
  EXPECT_THAT(verdict.confidence(), testing::AllOf(Ge(0.0), Le(0.95)));
  if (verdict.confidence() <= 0.85 + 1e-9 || verdict.tier() == proto::TIER_P) return;
  std::set<int> stores;
  for (const auto& evidence : verdict.shows()) stores.insert(evidence.store());
  EXPECT_GE(stores.size(), 2u) << VerdictToText(verdict);
}

TEST_P(ScenarioTest, TheShortTextFitsOneScreen) {
  constexpr ptrdiff_t kScreen = 40;
  const std::string text = VerdictToText(Verdict(), Detail::kShort);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), kScreen) << text;
}

TEST_P(ScenarioTest, ContradictsItselfNowhere) {
  for (const auto& [time, verdict] : Verdicts()) {
    EXPECT_THAT(contradictions::Contradictions(verdict), testing::IsEmpty())
        << "at " << time << " s:\n"
        << VerdictToText(verdict.document);
    if (HasFailure()) return;
  }
}

TEST_P(ScenarioTest, IsTheSameWhenJudgedAgain) {
  EXPECT_EQ(VerdictToJson(Verdict()), VerdictToJson(Judge(TheScenario())));
}

// The observation that a citation quotes, or nullptr: a quoted line must exist, where and as it is
// quoted.
const proto::LogLine* FindCited(const Scenario& scenario, const proto::LogRef& cite) {
  for (const auto& observation : scenario.observations) {
    if (!observation.has_line()) continue;
    const auto& line = observation.line();
    if (line.stream_name() == cite.stream() && line.offset() == cite.offset()) return &line;
  }
  return nullptr;
}

// The scenario with another text in that line, or without the line where there is no text.
Scenario WithLine(const Scenario& scenario, const proto::LogLine* line,
                  const std::optional<std::string>& text) {
  Scenario changed = scenario;
  const auto found = std::ranges::find_if(scenario.observations, [&](const auto& observation) {
    return observation.has_line() && &observation.line() == line;
  });
  const auto place = changed.observations.begin() + (found - scenario.observations.begin());
  if (text) {
    place->mutable_line()->set_text(*text);
  } else {
    changed.observations.erase(place);
  }
  return changed;
}

bool Quotes(const proto::LogRef& cite, const std::string& text) {
  return text.starts_with(cite.line()) ||
         (cite.line().size() > 100 && text.starts_with(cite.line().substr(0, 100)));
}

TEST_P(ScenarioTest, CitesWhatIsThere) {
  const proto::Verdict& verdict = Verdict();
  for (const auto& evidence : verdict.shows()) {
    if (!evidence.cite().has_log()) continue;
    const proto::LogLine* line = FindCited(TheScenario(), evidence.cite().log());
    ASSERT_NE(line, nullptr) << evidence.text() << "\ncites offset "
                             << evidence.cite().log().offset() << " of "
                             << evidence.cite().log().stream();
    EXPECT_TRUE(Quotes(evidence.cite().log(), line->text()))
        << evidence.cite().log().line() << "\nis not\n"
        << line->text();
  }
}

// Takes away each cited line: what rested on it must vanish, weaken, change its words or find
// another line that says it.
TEST_P(ScenarioTest, ClaimsFallWithTheirCitations) {
  const proto::Verdict& before = Verdict();
  for (const auto& [place, claims] : ByCitedLine(before)) {
    const proto::LogRef& cite = claims.front()->cite().log();
    const proto::LogLine* cited = FindCited(TheScenario(), cite);
    if (cited == nullptr) continue;  // CitesWhatIsThere says so
    const Scenario without = WithLine(TheScenario(), cited, std::nullopt);
    const proto::Verdict after = Judge(without);
    if (after.code() != before.code() || after.confidence() < before.confidence()) continue;
    for (const proto::Evidence* const claim : claims) {
      for (const auto& still : after.shows()) {
        if (still.text() != claim->text() || still.store() != claim->store()) continue;
        ASSERT_TRUE(still.cite().has_log()) << "still said, of nothing: " << still.text();
        const proto::LogLine* other = FindCited(without, still.cite().log());
        ASSERT_NE(other, nullptr) << "still said, of a line that is gone: " << still.text();
        EXPECT_TRUE(still.cite().log().line() == cite.line() || other->text() != cited->text())
            << "still said: " << still.text();
      }
    }
  }
}

const std::regex& NumberPattern() {
  static const std::regex pattern(R"((^|[^\w.])(\d+(?:\.\d+)?)(?![\w.]))");
  return pattern;
}

std::set<std::string> Numbers(const std::string& text) {
  std::set<std::string> numbers;
  for (std::sregex_iterator it(text.begin(), text.end(), NumberPattern()), end; it != end; ++it) {
    numbers.insert((*it)[2].str());
  }
  return numbers;
}

// Changes the last digit of every such number; the length stays, so offsets do too.
std::string ChangeNumbers(const std::string& text, const std::set<std::string>& numbers) {
  std::string changed = text;
  for (std::sregex_iterator it(text.begin(), text.end(), NumberPattern()), end; it != end; ++it) {
    if (!numbers.contains((*it)[2].str())) continue;
    char& digit = changed[static_cast<size_t>(it->position(2) + it->length(2) - 1)];
    digit = digit == '9' ? '8' : static_cast<char>(digit + 1);
  }
  return changed;
}

// Those that the sentence shares with the line that it cites.
std::set<std::string> SharedNumbers(const Scenario& scenario, const std::string& line,
                                    const std::string& sentence) {
  const std::set<std::string> in_line = Numbers(line);
  const auto& unrelated = scenario.unrelated_numbers;
  std::set<std::string> shared;
  for (const std::string& number : Numbers(sentence)) {
    if (in_line.contains(number) &&
        std::find(unrelated.begin(), unrelated.end(), number) == unrelated.end())
      shared.insert(number);
  }
  return shared;
}

// Changes the numbers that sentences share with the line that they cite: they must change, or they
// were not computed.
TEST_P(ScenarioTest, SentencesFollowTheirNumbers) {
  const proto::Verdict& before = Verdict();
  for (const auto& [place, claims] : ByCitedLine(before)) {
    const proto::LogLine* cited = FindCited(TheScenario(), claims.front()->cite().log());
    if (cited == nullptr) continue;
    std::set<std::string> shared;
    std::set<std::string> told;  // sentences that share one
    for (const proto::Evidence* const claim : claims) {
      std::set<std::string> numbers = SharedNumbers(TheScenario(), cited->text(), claim->text());
      if (numbers.empty()) continue;
      told.insert(claim->text());
      shared.merge(numbers);
    }
    if (shared.empty()) continue;
    const std::string other = ChangeNumbers(cited->text(), shared);
    const proto::Verdict after = Judge(WithLine(TheScenario(), cited, other));
    for (const auto& still : after.shows()) {
      const Place now{still.cite().log().stream(), still.cite().log().offset()};
      EXPECT_FALSE(now == place && told.contains(still.text()))
          << "said of\n  " << claims.front()->cite().log().line() << "\nand of\n  " << other
          << "\nalike: " << still.text();
    }
  }
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path = info.param;
  std::string name = path.parent_path().filename().string() + "_" + path.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, testing::ValuesIn(ScenarioPaths()), TestName);

// The line "kind: ..." alone: to expand all scenarios takes twenty seconds.
std::string KindOf(const std::string& path) {
  constexpr std::string_view kKey = "kind: ";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  }
  return {};
}

TEST(Scenarios, EachFamilyHasOneThatFiresAndTwoNearMisses) {
  std::map<std::string, std::map<std::string, int>> kinds;
  for (const std::string& path : ScenarioPaths())
    ++kinds[std::filesystem::path(path).parent_path().filename().string()][KindOf(path)];
  ASSERT_FALSE(kinds.empty());
  std::set<std::string> names;
  for (const families::FamilyName& name : families::FamilyNames()) names.emplace(name.family);
  names.insert("warnings");  // what is said beside a family
  for (auto& [family, count] : kinds) {
    EXPECT_TRUE(names.contains(family))
        << "tests/scenarios/" << family << " is not named after a family";
    EXPECT_GE(count["fires"], 1) << family;
    EXPECT_GE(count["near_miss"], 2) << family;
  }
}

// deploy/verdict.schema.json is the promise to whoever reads verdicts.
TEST(Documents, ValidateAgainstTheSchema) {
  const std::string documents = RANKSCOPE_BINARY_DIR "/tests/scenarios/documents.jsonl";
  {
    std::ofstream file(documents);
    for (const std::string& path : ScenarioPaths())
      file << VerdictToJson(Judge(LoadScenario(path))) << "\n";
    ASSERT_TRUE(file.good()) << documents;
  }
  const std::string command = "/usr/bin/python3 " RANKSCOPE_SOURCE_DIR
                              "/tests/contract/verdict_schema.py --validate " +
                              documents;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

}  // namespace
}  // namespace rankscope::scenarios
