// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// /metrics as the clients that exist ask for it.
#include "exporter/http/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exporter/metrics/encoder.h"
#include "tests/unit/http/gunzip.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::http {
namespace {

using metrics::Format;
using metrics::GroupSet;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kText = "text/plain; version=0.0.4; charset=utf-8";
const std::string kOpenMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const std::string kProtobuf =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

TEST(ScrapeFormat, OfRealScrapers) {
  const struct {
    const char* client;
    const char* accept;
    std::string content_type;
  } kCases[] = {
      {"Prometheus 2.42",
       "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
       "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       kOpenMetrics},
      {"Prometheus 2.42 with native histograms",
       "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
       "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1"
       ";q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       kProtobuf},
      {"Prometheus 3",
       "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
       "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping="
       "allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
       kOpenMetrics + "; escaping=underscores"},
      {"Prometheus 3 with native histograms",
       "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
       "q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
       "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;"
       "escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
       kProtobuf},
      {"Prometheus 3, scrape_protocols: [PrometheusText1.0.0]",
       "text/plain;version=1.0.0;escaping=underscores;q=0.2,*/*;q=0.1", kText},
      {"Prometheus 3, scrape_protocols: [PrometheusText0.0.4, OpenMetricsText1.0.0]",
       "text/plain;version=0.0.4;q=0.3,application/openmetrics-text;version=1.0.0;"
       "escaping=allow-utf-8;q=0.2,*/*;q=0.1",
       kText},
      {"vmagent", "text/plain;version=0.0.4;q=1,*/*;q=0.1", kText},
      {"Telegraf",
       "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
       "q=0.7,text/plain;version=0.0.4;q=0.3",
       kProtobuf},
      {"only the draft", "application/openmetrics-text; version=0.0.1,text/plain;q=0.5",
       "application/openmetrics-text; version=0.0.1; charset=utf-8"},
      {"only a later version", "application/openmetrics-text; version=2.0.0,text/plain;q=0.5",
       kText},
      {"no version", "application/openmetrics-text", kOpenMetrics},
      {"a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", kText},
      {"curl", "*/*", kText},
      {"nothing", "", kText},
      {"whole family", "application/*", kText},
      {"protobuf of something else", "application/vnd.google.protobuf", kText},
      {"protobuf in text",
       "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
       kText},
      {"refusing all", "text/plain;q=0, application/openmetrics-text;q=0, */*;q=0", kText},
      {"refusing OpenMetrics", "application/openmetrics-text;q=0, */*", kText},
      {"malformed", "application/openmetrics-text/1;;q==,\"", kText},
      {"malformed", "q=1;application/openmetrics-text", kText},
  };
  for (const auto& one : kCases) {
    EXPECT_EQ(ChooseScrapeFormat(one.accept).content_type, one.content_type) << one.client;
  }
}

TEST(ScrapeFormat, NothingOfTheClientIsEchoed) {
  const std::string content_type =
      ChooseScrapeFormat(
          "application/openmetrics-text;version=1.0.0;escaping=\"x\r\nSet-Cookie: a\"")
          .content_type;
  EXPECT_THAT(content_type, Not(HasSubstr("Cookie")));
}

TEST(GroupsOf, SelectsAndRefuses) {
  EXPECT_EQ(*GroupsOf({}), GroupSet::All());
  EXPECT_EQ(*GroupsOf({{"x", "y"}}), GroupSet::All());
  GroupSet rank = GroupSet::None();
  rank.Add(metrics::Group::kRank);
  EXPECT_EQ(*GroupsOf({{"collect[]", "rank"}, {"collect[]", "rank"}}), rank);
  GroupSet rest = GroupSet::All();
  rest.Remove(metrics::Group::kRank);
  EXPECT_EQ(*GroupsOf({{"exclude[]", "rank"}}), rest);
  EXPECT_EQ(GroupsOf({{"collect[]", "ranks"}}).error(),
            "no group of metrics 'ranks'; there are: exporter, gpu, job, log, process, rank, "
            "slurm, source, training, verdict");
  EXPECT_FALSE(GroupsOf({{"collect[]", ""}}));
  EXPECT_FALSE(GroupsOf({{"exclude[]", "x"}}));
  EXPECT_FALSE(GroupsOf({{"collect[]", "rank"}, {"exclude[]", "job"}}));
}

TEST(Groups, EveryRowHasOneAndEveryGroupARow) {
  for (size_t group = 0; group < metrics::kGroupNames.size(); ++group) {
    GroupSet one = GroupSet::None();
    one.Add(static_cast<metrics::Group>(group));
    size_t rows = 0;
    for (const metrics::MetricRow& row : metrics::Catalog()) {
      EXPECT_TRUE(GroupSet::All().Has(row)) << row.name;
      if (one.Has(row)) ++rows;
    }
    EXPECT_GT(rows, 0u) << metrics::kGroupNames[group];
  }
}

class ScrapeTest : public testing::Test {
 protected:
  Response Ask(std::vector<Header> headers, const Parameters& parameters = {}) const {
    Request request;
    request.headers = std::move(headers);
    return Scrape(request, parameters, state_);
  }

  State state_{std::make_shared<const metrics::Published>(),
               std::make_shared<const Exposition>(
                   metrics::SnapshotBuilder().Build(test::OnNode({test::HangingJob()}))),
               nullptr};
};

TEST_F(ScrapeTest, PagesAreSharedAndTheirFormatIsTold) {
  const Response first = Ask({});
  EXPECT_EQ(first.HeaderValue("Content-Type"), kText);
  EXPECT_EQ(first.scrape, Format::kText);
  EXPECT_EQ(first.pages, Ask({}).pages);
  const Response open = Ask({{"Accept", "application/openmetrics-text"}});
  EXPECT_EQ(open.scrape, Format::kOpenMetrics);
  EXPECT_THAT(std::string(open.Content()), testing::EndsWith("\n# EOF\n"));
  EXPECT_NE(first.pages, open.pages);
}

TEST_F(ScrapeTest, ManyAtOnceGetOnePage) {
  constexpr size_t kClients = 16;
  std::array<Page, kClients> plain;
  std::array<Page, kClients> packed;
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      packed[i] = state_.exposition().Whole(Format::kOpenMetrics, true);
      plain[i] = state_.exposition().Whole(Format::kOpenMetrics, false);
    });
  }
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < kClients; ++i) {
    EXPECT_NE(plain[i], nullptr);
    EXPECT_EQ(plain[i], plain[0]);
    EXPECT_EQ(packed[i], packed[0]);
  }
}

TEST_F(ScrapeTest, GzipUnpacksToThePlainPageInEachFormat) {
  for (const std::string& accept : {kText, kOpenMetrics, kProtobuf}) {
    const Response plain = Ask({{"Accept", accept}, {"Accept-Encoding", "gzip;q=0"}});
    const Response packed = Ask({{"Accept", accept}, {"Accept-Encoding", "gzip"}});
    EXPECT_EQ(plain.HeaderValue("Content-Type"), accept);
    EXPECT_EQ(plain.HeaderValue("Content-Encoding"), "");
    EXPECT_EQ(packed.HeaderValue("Content-Encoding"), "gzip");
    EXPECT_EQ(packed.scrape, plain.scrape);
    EXPECT_LT(packed.Content().size() * 2, plain.Content().size());
    EXPECT_EQ(test::Gunzip(packed.Content()), plain.Content());
    EXPECT_EQ(packed.pages, Ask({{"Accept", accept}, {"Accept-Encoding", "gzip"}}).pages);
  }
}

TEST_F(ScrapeTest, CollectTakesWholeFamiliesOfAGroup) {
  const std::string rank(Ask({}, {{"collect[]", "rank"}}).Content());
  EXPECT_THAT(rank, StartsWith("# HELP rankscope_rank_alive "));
  EXPECT_THAT(rank, Not(HasSubstr("verdict")));
  const std::string two(Ask({{"Accept", "application/openmetrics-text"}},
                            {{"collect[]", "process"}, {"collect[]", "rank"}})
                            .Content());
  EXPECT_THAT(two, HasSubstr("\nprocess_threads "));
  EXPECT_THAT(two, HasSubstr("\nrankscope_rank_alive{"));
  EXPECT_THAT(two, testing::EndsWith("\n# EOF\n"));
  const std::string without(Ask({}, {{"exclude[]", "verdict"}}).Content());
  EXPECT_THAT(without, HasSubstr("rankscope_rank_alive"));
  EXPECT_THAT(without, Not(HasSubstr("rankscope_verdict")));
  // All groups by name are the page that everybody else gets.
  Parameters all;
  for (const std::string_view name : metrics::kGroupNames) {
    all.emplace_back("collect[]", std::string(name));
  }
  EXPECT_EQ(Ask({}, all).pages, Ask({}).pages);
  const Response refused = Ask({}, {{"collect[]", "abacus"}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.scrape, std::nullopt);
  EXPECT_THAT(refused.body, HasSubstr("there are: exporter, gpu, job,"));
}

}  // namespace
}  // namespace rankscope::http
