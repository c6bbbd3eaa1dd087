// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether GPUs have dcgm-exporter's names: never beside a dcgm-exporter, wherever it is.
#include "exporter/daemon/dcgm_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/loopback_service.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter {
namespace {

using testing::HasSubstr;

class DcgmNamesTest : public testing::Test {
 protected:
  static std::string Url(uint16_t port) {
    return "http://127.0.0.1:" + std::to_string(port) + "/metrics";
  }
  // What is decided where this is served.
  DcgmNames WithPage(const std::string& body, const std::string& status = "200 OK") {
    const LoopbackService service([&](int fd) {
      char request[4096];
      if (recv(fd, request, sizeof request, 0) <= 0) return;
      const std::string answer = "HTTP/1.1 " + status +
                                 "\r\nContent-Length: " + std::to_string(body.size()) +
                                 "\r\nConnection: close\r\n\r\n" + body;
      EXPECT_GT(send(fd, answer.data(), answer.size(), MSG_NOSIGNAL), 0);
    });
    config_.gpu.dcgm_url = Url(service.port());
    return DecideDcgmNames(config_, proc_.path());
  }
  DcgmNames WithNobody() {
    config_.gpu.dcgm_url = Url(9);  // discard: nobody listens
    return DecideDcgmNames(config_, proc_.path());
  }
  void AddProcess(const std::string& pid, const std::string& name) const {
    std::filesystem::create_directory(proc_.path() + "/" + pid);
    std::ofstream(proc_.path() + "/" + pid + "/comm") << name << "\n";
  }

  Config config_;
  TemporaryDirectory proc_;
};

TEST_F(DcgmNamesTest, WhereNobodyAnswersTheyAreOurs) {
  const DcgmNames names = WithNobody();
  EXPECT_TRUE(names.shown);
  EXPECT_TRUE(names.yields);
  EXPECT_THAT(names.reason, HasSubstr("no dcgm-exporter answers at http://127.0.0.1:9/metrics"));
  config_.gpu.dcgm_url.clear();
  EXPECT_TRUE(DecideDcgmNames(config_, proc_.path()).shown);
}

TEST_F(DcgmNamesTest, WhereADcgmExporterAnswersTheyAreIts) {
  for (const char* page : {"DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-7\"} 40\n",
                           "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-7\",GPU_I_ID=\"1\"} 4\n"}) {
    const DcgmNames names = WithPage(page);
    EXPECT_FALSE(names.shown);
    EXPECT_THAT(names.reason, HasSubstr("dcgm-exporter answers at http://127.0.0.1:"));
  }
}

TEST_F(DcgmNamesTest, AnothersPageIsNoDcgmExporter) {
  EXPECT_TRUE(WithPage("up 1\n").shown);
  EXPECT_TRUE(WithPage("not here\n", "404 Not Found").shown);
}

TEST_F(DcgmNamesTest, WhoTakesACallAndIsSilentMayBeOne) {
  const LoopbackService service([](int fd) {
    char request[4096];
    while (recv(fd, request, sizeof request, 0) > 0) {
    }
  });
  config_.gpu.dcgm_url = Url(service.port());
  const DcgmNames names = DecideDcgmNames(config_, proc_.path());
  EXPECT_FALSE(names.shown);
  EXPECT_THAT(names.reason, HasSubstr("may be there"));
}

TEST_F(DcgmNamesTest, OneThatRunsInAPodAnswersNowhereAndIsSeenAllTheSame) {
  AddProcess("41", "bash");
  AddProcess("self", "dcgm-exporter");
  EXPECT_TRUE(WithNobody().shown);
  AddProcess("4711", "dcgm-exporter");
  const DcgmNames names = WithNobody();
  EXPECT_FALSE(names.shown);
  EXPECT_THAT(names.reason, HasSubstr("process 4711"));
}

TEST_F(DcgmNamesTest, AWordOfTheConfigurationIsObeyed) {
  AddProcess("4711", "dcgm-exporter");
  config_.metrics.dcgm_names = "true";
  EXPECT_TRUE(WithNobody().shown);
  EXPECT_FALSE(WithNobody().yields);
  config_.metrics.dcgm_names = "false";
  EXPECT_FALSE(WithNobody().shown);
}

TEST_F(DcgmNamesTest, WhereNoGpuIsPolledThereIsNothingToName) {
  for (SourceSettings& source : config_.sources) {
    if (source.name == "nvml") source.enabled = false;
  }
  if (config_.FindSource("nvml") == nullptr) config_.sources.push_back({"nvml", false, {}});
  EXPECT_FALSE(WithNobody().shown);
}

}  // namespace
}  // namespace rankscope::exporter
