// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/document/verdict_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/unit/verdict_json/example.h"

namespace rankscope {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(VerdictJson, PrintsTheDocumentByteByByte) {
  proto::Verdict verdict = testing::ExampleVerdict();
  verdict.mutable_disposition()->set_kind("cancelled");
  verdict.mutable_disposition()->set_by("lena");
  verdict.mutable_disposition()->set_uid(1000);
  verdict.mutable_disposition()->set_at_ns(verdict.onset_ns());
  proto::Change& change = *verdict.add_history();
  change.set_at_ns(verdict.onset_ns());
  change.set_from("G1");
  change.set_to("A2");
  EXPECT_EQ(
      VerdictToJson(verdict),
      R"x({"schema":1,"job_id":"8841","attempt":2,"state":"final","revision":3,"node":"n1","scope":"job","code":"A2",)x"
      R"x("family":"signal_kill","sub":"sigkill","fault_class":null,"exception_type":null,"signal":"SIGKILL",)x"
      R"x("domain":"unknown","confidence":0.85,"tier":"C","ground":null,"phase":"train","onset":"2026-11-20T16:00:50.496Z",)x"
      R"x("detected":"2026-11-20T16:00:51.000Z","ranks":[1],"nodes":["n1"],"gpus":[],"framework":"pytorch_example",)x"
      R"x("exit_code":1,"triage":{"severity":"critical","running":false,"when":"after_warmup",)x"
      R"x("symptom":"one_rank_crashed"},"localization":{"scope":"rank"},"isolation":{"component":"process",)x"
      R"x("ruled_in_by":[0,1]},"shows":[{"id":0,"text":"rank 1 ended by SIGKILL, no traceback","store":"log",)x"
      R"x("observed":-9,"cite":{"stream":"run log","offset":18231,"line":"exitcode  : -9 (pid: 312)"}},)x"
      R"x({"id":1,"text":"memory rose","store":"host","signal":"resident_bytes","observed":123457000,)x"
      R"x("expected":0.333333,"unit":"By","rank":0,"begin":"1970-01-01T00:00:01.000Z",)x"
      R"x("end":"1970-01-01T00:00:02.500Z","cite":{"promql":"rankscope_rank_resident_bytes{job_id=\"8841\"}"}},)x"
      R"x({"id":2,"text":"the scheduler says so","store":"scheduler","observed":"FAILED",)x"
      R"x("cite":{"job_id":"8841","field":"State","value":"FAILED","origin":"sacct"}},)x"
      R"x({"id":3,"text":"the kernel killed it","store":"kernel",)x"
      R"x("cite":{"source":"kmsg","text":"Out of memory: Killed process 312 (python)"}},)x"
      R"x({"id":4,"text":"wait status","store":"process","cite":{"pid":312,"what":"wait_status","value":"9"}}],)x"
      R"x("implies":[{"text":"the process did not end itself","remedy":"rerun","domain":"unknown","evidence":[0]}],)x"
      R"x("cannot_decide":[{"question":"who sent SIGKILL","needs":"kernel","why":"unsupported"}],)x"
      R"x("next_tests":[{"command":"journalctl -k --since 16:00 | grep -i 'killed process'",)x"
      R"x("expects":"a line with pid 312: the kernel's OOM killer sent it"}],)x"
      R"x("ruled_out":[{"code":"B1","by":"no allocator text","evidence":[1]},)x"
      R"x({"code":"E1","by":"no allocator text","evidence":[]}],)x"
      R"x("undecidable":[{"code":"B2","needs":"gpu","why":"not_applicable"}],)x"
      R"x("cause_chain":[{"evidence":0,"role":"root"},{"evidence":1,"role":"cascade"}],)x"
      R"x("resolution":{"immediate":["rerun from step 40"],"structural":[],"verify":["watch resident_bytes"]},)x"
      R"x("retry_outlook":"may_recover","wasted_gpu_seconds":0,)x"
      R"x("warnings":[{"kind":"loss_spike","subject":"rank 0","severity":"info","text":"loss rose and came back","evidence":[1],)x"
      R"x("remedy":null}],"data_quality":{"exact":true,"lost_bytes":0,"sources":[{"source":"procfs","state":"up"}],)x"
      R"x("lost_events":0,"clock_uncertainty_s":0,"truncated_at":null,"notes":[]},)x"
      R"x("attempts":[{"attempt":1,"code":"C1","family":"rendezvous_hang","sub":null,"confidence":0.65,)x"
      R"x("end":"2026-11-20T15:53:20.000Z","last_step":12,"evidence":[2]}],)x"
      R"x("disposition":{"kind":"cancelled","by":"lena","uid":1000,"reason":null,)x"
      R"x("at":"2026-11-20T16:00:50.496Z"},)x"
      R"x("history":[{"at":"2026-11-20T16:00:50.496Z","from":"G1","to":"A2","why":null}],)x"
      R"x("amended_by":null,"updated":null})x");
}

TEST(VerdictJson, AnEmptyVerdictHasTheSameKeysInTheSameOrder) {
  const Json full = Json::parse(VerdictToJson(testing::ExampleVerdict()));
  const Json empty = Json::parse(VerdictToJson(proto::Verdict()));
  EXPECT_EQ(Keys(empty), Keys(full));
  for (const char* key : {"triage", "localization", "isolation", "resolution", "data_quality"}) {
    EXPECT_EQ(Keys(empty[key]), Keys(full[key])) << key;
  }
  for (const char* key :
       {"sub", "fault_class", "exception_type", "signal", "onset", "detected", "exit_code"}) {
    EXPECT_TRUE(empty[key].is_null()) << key;
  }
}

TEST(VerdictJson, FileComesFirst) {
  const std::string text = VerdictToJson(proto::Verdict(), "logs/a b.log");
  EXPECT_EQ(text.substr(0, 22), R"({"file":"logs/a b.log")");
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(VerdictToJson(proto::Verdict()), Not(HasSubstr("\"file\"")));
}

TEST(VerdictJson, ADocumentWrapsItsVerdicts) {
  proto::VerdictDocument document;
  document.set_node("n1");
  *document.add_verdicts() = testing::ExampleVerdict();
  document.add_verdicts()->set_job_id("2");
  const Json json = Json::parse(DocumentToJson(document));
  EXPECT_THAT(Keys(json), ElementsAre("schema", "node", "verdicts"));
  ASSERT_EQ(json["verdicts"].size(), 2u);
  EXPECT_EQ(json["verdicts"][1]["job_id"], "2");
  EXPECT_EQ(Json::parse(DocumentToJson({}))["verdicts"], Json::array());
}

TEST(VerdictJson, NumbersThatJsonLacksAreStrings) {
  proto::Verdict verdict;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {std::nan(""), infinity, -infinity, 1e300, 1e-300, 0.1 + 0.2, -0.0,
                             1e15, 12345678.9, 0.00001234567, 1e6}) {
    verdict.add_shows()->set_observed(value);
  }
  const Json shows = Json::parse(VerdictToJson(verdict))["shows"];
  std::vector<std::string> printed;
  for (const auto& evidence : shows) printed.push_back(evidence["observed"].dump());
  EXPECT_THAT(printed, ElementsAre("\"nan\"", "\"inf\"", "\"-inf\"", "1e+300", "1e-300", "0.3", "0",
                                   "1e+15", "12345700", "1.23457e-05", "1000000"));
}

TEST(VerdictJson, ConfidenceIsTheShortestTextThatReadsBack) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> between(0, 1);
  proto::Verdict verdict;
  for (int i = 0; i < 1000; ++i) {
    verdict.set_confidence(between(random));
    ASSERT_EQ(Json::parse(VerdictToJson(verdict))["confidence"].get<double>(),
              verdict.confidence());
  }
  verdict.set_confidence(0.6);
  EXPECT_THAT(VerdictToJson(verdict), HasSubstr("\"confidence\":0.6,"));
}

TEST(VerdictJson, LargeIntegersAreNumbers) {
  proto::Verdict verdict;
  verdict.add_shows()->mutable_cite()->mutable_log()->set_offset(
      std::numeric_limits<int64_t>::max());
  EXPECT_THAT(VerdictToJson(verdict), HasSubstr("\"offset\":9223372036854775807,"));
}

TEST(VerdictJson, HostileTextStaysInsideItsString) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string hostile;
    for (int i = 0; i < 40; ++i) {
      constexpr std::string_view kTricky = "\"\\/\b\f\n\r\t\x7F{}[]:,\xC3\xA9\xE2\x80\xA8\xFF\xC0";
      hostile.push_back(random() % 2 == 0 ? static_cast<char>(random() % 256)
                                          : kTricky[random() % kTricky.size()]);
    }
    proto::Verdict verdict;
    verdict.set_job_id(hostile);
    verdict.set_exception_type(hostile);
    auto* log = verdict.add_shows()->mutable_cite()->mutable_log();
    log->set_line(hostile);
    const std::string text = VerdictToJson(verdict, hostile);
    Json json;
    ASSERT_NO_THROW(json = Json::parse(text)) << text;
    EXPECT_EQ(Keys(json).size(), Keys(Json::parse(VerdictToJson(proto::Verdict(), "f"))).size());
    EXPECT_EQ(json["file"], json["job_id"]);
    for (const char byte : text) ASSERT_GE(static_cast<uint8_t>(byte), 0x20);
  }
}

TEST(VerdictJson, EscapesRoundTrip) {
  std::string out;
  AppendJsonString(std::string_view("a\"\\\n\r\t\x01\x00\x7F\xC3\xA9", 11), out);
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\r\\t\\u0001\\u0000\\u007f\xC3\xA9\"");
  out.clear();
  AppendJsonString("loss \u202e5.0\u2069", out);
  EXPECT_EQ(out, "\"loss \\u202e5.0\\u2069\"");
  out.clear();
  AppendJsonString("\xE2\x82x", out);
  EXPECT_EQ(out, "\"\xEF\xBF\xBD\xEF\xBF\xBDx\"");
}

TEST(VerdictJson, EveryAvailabilityHasItsWord) {
  proto::Verdict verdict;
  for (int i = 0; i <= 6; ++i) {
    verdict.add_cannot_decide()->set_why(static_cast<proto::Availability>(i));
    verdict.mutable_data_quality()->add_sources()->set_state(static_cast<proto::Availability>(i));
  }
  const Json json = Json::parse(VerdictToJson(verdict));
  std::vector<std::string> stores;
  std::vector<std::string> sources;
  for (const auto& open : json["cannot_decide"]) stores.push_back(open["why"]);
  for (const auto& source : json["data_quality"]["sources"]) sources.push_back(source["state"]);
  EXPECT_THAT(stores, ElementsAre("absent", "present", "down", "stale", "unsupported", "denied",
                                  "not_applicable"));
  EXPECT_THAT(sources, ElementsAre("unknown", "up", "down", "stale", "unsupported", "denied",
                                   "not_applicable"));
}

TEST(VerdictJson, TimesAreCivil) {
  EXPECT_EQ(Rfc3339(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(Rfc3339(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(Rfc3339(951'782'400'000'000'000), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(Rfc3339(1'709'251'199'999'999'999), "2024-02-29T23:59:59.999Z");
  EXPECT_EQ(Rfc3339(4'107'542'400'000'000'000), "2100-03-01T00:00:00.000Z");
  EXPECT_EQ(Rfc3339(std::numeric_limits<int64_t>::max()), "2262-04-11T23:47:16.854Z");
  EXPECT_EQ(Rfc3339(std::numeric_limits<int64_t>::min()), "1677-09-21T00:12:43.145Z");
}

}  // namespace
}  // namespace rankscope
