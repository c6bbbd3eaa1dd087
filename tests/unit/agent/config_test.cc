// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/engine/engine.h"

namespace rankscope::exporter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::vector<SourceSettings> kSources = {{"run", true, {}}, {"procfs", true, Seconds(1)}};

ConfigOutcome Parse(std::string_view text) {
  return ParseConfig(text, "c.yaml", kSources);
}

TEST(Config, FiveMistakesAreFiveProblemsWithTheirLines) {
  const auto outcome = Parse(
      "web:\n"
      "  listen: [\"localhost\"]\n"
      "  max_requests: many\n"
      "state:\n"
      "  keep: 24 hours\n"
      "  job_bytes: 64MB\n"
      "metrics:\n"
      "  max_serie: 10\n");
  EXPECT_THAT(
      outcome.problems,
      ElementsAre(StartsWith("c.yaml:2: web.listen: 'localhost' has no port"),
                  StartsWith("c.yaml:3: web.max_requests: 'many'"),
                  StartsWith("c.yaml:5: state.keep: '24 hours' is not a duration; write"),
                  StartsWith("c.yaml:6: state.job_bytes: '64MB' is not a size; write 64MiB"),
                  AllOf(StartsWith("c.yaml:8: metrics.max_serie: unknown key"),
                        HasSubstr("did you mean metrics.max_series?"))));
}

TEST(Config, EveryKeyOfTheDocumentIsRead) {
  const auto outcome = Parse(
      "node: {name: gpu-7.cluster_1}\n"
      "web: {listen: [\"127.0.0.1:1\", \"0.0.0.0:2\"], max_requests: 7}\n"
      "state: {dir: /x, job_bytes: 1MiB, total_bytes: 3GiB, keep: 1h30m}\n"
      "run: {socket: /y}\n"
      "metrics: {profile: full, max_series: 12000, dcgm_names: true}\n"
      "sources: {procfs: {enabled: false, interval: 500ms}}\n"
      "slurm: {role: off}\n"
      "fleet: {prometheus: \"http://p:9090\"}\n"
      "gpu: {dcgm_url: \"\"}\n"
      "families: {collective_hang: {hang_floor: 90s}, rendezvous_hang: {suspect: 1m, fire: 2m}}\n"
      "log: {level: debug, format: json}\n");
  ASSERT_THAT(outcome.problems, IsEmpty());
  const Config& c = outcome.config;
  EXPECT_EQ(c.node.name, "gpu-7.cluster_1");
  EXPECT_THAT(c.web.listen, ElementsAre("127.0.0.1:1", "0.0.0.0:2"));
  EXPECT_EQ(c.web.max_requests, 7);
  EXPECT_EQ(c.gpu.dcgm_url, "");
  EXPECT_EQ(c.state.dir, "/x");
  EXPECT_EQ(c.state.job_bytes, 1 << 20);
  EXPECT_EQ(c.state.total_bytes, int64_t{3} << 30);
  EXPECT_EQ(c.state.keep, Seconds(5400));
  EXPECT_EQ(c.run.socket, "/y");
  EXPECT_EQ(c.metrics.profile, "full");
  EXPECT_EQ(c.metrics.max_series, 12000);
  EXPECT_FALSE(c.FindSource("procfs")->enabled);
  EXPECT_EQ(c.FindSource("procfs")->interval, Milliseconds(500));
  EXPECT_EQ(c.slurm.role, "off");
  EXPECT_EQ(c.fleet.prometheus, "http://p:9090");
  EXPECT_EQ(c.families.hang_floor, Seconds(90));
  EXPECT_EQ(c.families.rendezvous_suspect, Seconds(60));
  EXPECT_EQ(c.families.rendezvous_fire, Seconds(120));
  EXPECT_EQ(c.log.level, "debug");
  EXPECT_EQ(c.log.format, "json");
}

TEST(Config, ANodesNameIsAName) {
  EXPECT_TRUE(Parse("node: {name: \"\"}\n").problems.empty()) << "the host name";
  for (const char* name : {"a b", "n7:80", "n{7}", "n\\n7", "ünode"}) {
    const auto outcome = Parse("node: {name: \"" + std::string(name) + "\"}\n");
    ASSERT_EQ(outcome.problems.size(), 1u) << name;
    EXPECT_THAT(outcome.problems[0], HasSubstr("is not a host name")) << name;
  }
}

TEST(Config, ATargetNamesPartitionMeasureAndNumber) {
  const auto good =
      Parse("slurm: {targets: [\"gpu:tokens_per_second=12000\", \"gpu-debug:mfu=0.35\"]}\n");
  EXPECT_TRUE(good.problems.empty());
  for (const char* target :
       {"tokens_per_second=1", ":mfu=0.3", "gpu:mfu=1.5", "gpu:mfu", "gpu:speed=3", "gpu:mfu=0.3x",
        "gpu:tokens_per_second=-1", "gpu:mfu=nan"}) {
    const auto outcome = Parse("slurm: {targets: [\"" + std::string(target) + "\"]}\n");
    ASSERT_EQ(outcome.problems.size(), 1u) << target;
    EXPECT_THAT(outcome.problems[0], HasSubstr("is not PARTITION:WHAT=N")) << target;
  }
}

TEST(Config, TheDefaultsAreTheEngines) {
  const Config c = DefaultConfig(kSources);
  const engine::Config engine;
  EXPECT_EQ(c.families.hang_floor, engine.hang_floor);
  EXPECT_EQ(c.families.rendezvous_suspect, engine.rendezvous_suspect);
  EXPECT_EQ(c.families.rendezvous_fire, engine.rendezvous_fire);
}

TEST(Config, WhatIsPrintedReadsBackTheSame) {
  Config config = DefaultConfig(kSources);
  ASSERT_TRUE(SetConfigKey(config, "state.dir", "/a b/\"c\"").ok());
  ASSERT_TRUE(SetConfigKey(config, "web.listen", "127.0.0.1:1,10.0.0.1:2").ok());
  const std::string printed = PrintConfig(config);
  const auto outcome = Parse(printed);
  EXPECT_THAT(outcome.problems, IsEmpty());
  EXPECT_EQ(PrintConfig(outcome.config), printed);
  EXPECT_THAT(printed, HasSubstr("  # Maximum number of requests served at once; more are answered "
                                 "with 503.\n  max_requests: 40\n"));
}

TEST(Config, NothingIsAllDefaults) {
  for (const char* text : {"", "# only a comment\n", "---\n", "web:\n", "{}"}) {
    const auto outcome = Parse(text);
    EXPECT_THAT(outcome.problems, IsEmpty()) << text;
    EXPECT_EQ(PrintConfig(outcome.config), PrintConfig(DefaultConfig(kSources))) << text;
  }
}

TEST(Config, WrongShapesAreNamed) {
  EXPECT_THAT(Parse("web: 3\n").problems, ElementsAre(HasSubstr("c.yaml:1: web: expected keys")));
  EXPECT_THAT(Parse("- a\n").problems, ElementsAre(HasSubstr("expected keys")));
  EXPECT_THAT(Parse("web:\n  listen: x\n").problems,
              ElementsAre(HasSubstr("c.yaml:2: web.listen: expected a list")));
  EXPECT_THAT(Parse("web:\n  max_requests: [1]\n").problems,
              ElementsAre(HasSubstr("web.max_requests: expected one value")));
  EXPECT_THAT(Parse("log: {level: loud}\n").problems,
              ElementsAre(HasSubstr("not one of debug, info, warn, error")));
  EXPECT_THAT(Parse("log: {level: info}\nlog: {level: info}\n").problems,
              ElementsAre(HasSubstr("c.yaml:2: log: is given twice")));
  EXPECT_THAT(Parse("a: 1\n---\nb: 2\n").problems,
              testing::ElementsAre(HasSubstr("second YAML document")));
  EXPECT_THAT(
      Parse("gpu: {dcgm_url: \"127.0.0.1:9400\"}").problems,
      ElementsAre(HasSubstr("c.yaml:1: gpu.dcgm_url: '127.0.0.1:9400' is not a URL; write http:")));
  EXPECT_THAT(Parse("sources: {abacus: {enabled: true}}").problems,
              ElementsAre(HasSubstr("sources.abacus: unknown key")));
  EXPECT_THAT(Parse("state: {job_bytes: 4GiB}").problems,
              ElementsAre(HasSubstr("smaller than state.job_bytes")));
}

TEST(Config, BrokenYamlIsOneProblemWithItsLine) {
  EXPECT_THAT(Parse("web:\n  listen: [\n").problems,
              ElementsAre(AllOf(StartsWith("c.yaml:"), HasSubstr("not valid YAML"))));
}

TEST(Config, HostileTextsAreRefusedBeforeTheYamlReader) {
  EXPECT_THAT(Parse(std::string(10'000, '[')).problems, ElementsAre(HasSubstr("too deep")));
  EXPECT_THAT(Parse(std::string(300'000, '#')).problems, ElementsAre(HasSubstr("at most")));
  EXPECT_THAT(Parse(std::string("a\0b", 3)).problems, ElementsAre(HasSubstr("NUL")));
  std::string dashes;
  for (int i = 0; i < 1000; ++i) dashes += "- ";
  EXPECT_THAT(Parse(dashes).problems, ElementsAre(HasSubstr("indented too far")));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(Parse(many).problems, testing::SizeIs(51));
}

TEST(Config, AMissingFileIsOneProblemThatNamesIt) {
  EXPECT_THAT(LoadConfig("/nonexistent/c.yaml", kSources).problems,
              ElementsAre(StartsWith("/nonexistent/c.yaml: cannot be read")));
  EXPECT_THAT(LoadConfig("/", kSources).problems, testing::SizeIs(1));
}

TEST(ParseDuration, TakesPrometheusSyntaxOnly) {
  EXPECT_EQ(*ParseDuration("30s"), Seconds(30));
  EXPECT_EQ(*ParseDuration("1m30s"), Seconds(90));
  EXPECT_EQ(*ParseDuration("1d"), Seconds(86400));
  EXPECT_EQ(*ParseDuration("1s500ms"), Milliseconds(1500));
  EXPECT_EQ(*ParseDuration("0"), Duration{});
  for (const char* bad : {"", "30", "s", "1.5s", "-1s", "30s1m", "1s1s", "1m 30s", "1h30",
                          "9999999999999999999s", "300000y", "1S"}) {
    EXPECT_FALSE(ParseDuration(bad)) << bad;
  }
  for (const char* text : {"30s", "1m30s", "24h", "1s500ms", "100ms"}) {
    EXPECT_EQ(FormatDuration(*ParseDuration(text)), text);
  }
}

TEST(ParseShare, TakesPercentsOnly) {
  EXPECT_DOUBLE_EQ(*ParseShare("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*ParseShare("0.25%"), 0.0025);
  EXPECT_EQ(FormatShare(*ParseShare("0.25%")), "0.25%");
  EXPECT_EQ(FormatShare(1), "100%");
  for (const char* bad : {"", "1", "%", "-1%", "1 %", "nan%", "inf%", "1%%"}) {
    EXPECT_FALSE(ParseShare(bad)) << bad;
  }
}

TEST(ParseSize, TakesBinaryUnitsOnly) {
  EXPECT_EQ(*ParseSize("64MiB"), 64 << 20);
  EXPECT_EQ(*ParseSize("4096"), 4096);
  for (const char* bad : {"", "MiB", "64MB", "64 MiB", "-1", "1.5GiB", "99999999TiB"}) {
    EXPECT_FALSE(ParseSize(bad)) << bad;
  }
  EXPECT_EQ(FormatSize(int64_t{2} << 30), "2GiB");
  EXPECT_EQ(FormatSize(1000), "1000");
}

TEST(CheckListenAddress, WantsAnAddressAndAPort) {
  for (const char* good : {"127.0.0.1:10177", "127.0.0.1:0", "0.0.0.0:65535", "[::]:10177",
                           "[::1]:0", "[2001:db8::7]:1"}) {
    EXPECT_TRUE(CheckListenAddress(good).ok()) << good;
  }
  for (const char* bad :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "[::]", "::1:1", "[]:1",
        "[::1:1", "[127.0.0.1]:1", "[::ffff:127.0.0.1]:1", "[fe80::1%lo]:1", "localhost:1",
        "256.0.0.1:1", "127.0.0.1:1 ", ":10177"}) {
    EXPECT_FALSE(CheckListenAddress(bad).ok()) << bad;
  }
  EXPECT_THAT(CheckListenAddress("::1:1").error(), HasSubstr("brackets"));
  EXPECT_THAT(CheckListenAddress(":10177").error(), HasSubstr("0.0.0.0"));
}

TEST(BeyondLoopback, NamesWhatOthersReach) {
  Config config;
  config.web.listen = {"127.9.9.9:1", "[::1]:2", "[::]:3", "10.0.0.1:4"};
  EXPECT_THAT(BeyondLoopback(config), ElementsAre("[::]:3", "10.0.0.1:4"));
}

}  // namespace
}  // namespace rankscope::exporter
