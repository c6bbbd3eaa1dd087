// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/metrics/published_states.h"

namespace rankscope::web {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StatusPage, ShowsJobsVerdictsAndSources) {
  const std::string page = StatusPage(test::OnNode({test::HangingJob()}));
  EXPECT_THAT(page, HasSubstr("<span class=\"chip critical\">C2 collective_hang</span>"));
  EXPECT_THAT(page, HasSubstr("65 %"));
  EXPECT_THAT(page, HasSubstr("120 / 1000"));
  EXPECT_THAT(page, HasSubstr("loss fell from 10.5 to 2.3125 in 120 steps"));
  EXPECT_THAT(page, HasSubstr("href=\"/verdict?job_id=8841\""));
  EXPECT_THAT(page, HasSubstr("32 families"));  // ruled out
  EXPECT_THAT(page, HasSubstr("proc_connector: not permitted; give CAP_NET_ADMIN"));
  EXPECT_THAT(page, HasSubstr("href=\"/metrics\""));
}

TEST(StatusPage, WithoutJobsSaysHowToWatchOne) {
  EXPECT_THAT(StatusPage(test::OnNode({})), HasSubstr("rankscope run"));
  EXPECT_THAT(StatusPage({}), HasSubstr("not ready"));
}

TEST(StatusPage, EscapesEverythingFromTheWorld) {
  const std::string evil = "<script>alert(1)</script>\"'&\x1b";
  JobStatus job = test::HangingJob(evil);
  job.user = job.command = evil;
  job.verdict.set_code(evil);
  job.verdict.set_family(evil);
  job.verdict.set_sub(evil);
  job.verdict.mutable_triage()->set_severity(evil);
  job.verdict.mutable_shows(0)->set_text(evil);
  job.verdict.mutable_shows(0)->mutable_cite()->mutable_log()->set_line(evil);
  job.verdict.mutable_shows(0)->mutable_cite()->mutable_log()->set_stream(evil);
  job.verdict.add_implies()->set_text(evil);
  job.verdict.add_cannot_decide()->set_question(evil);
  job.verdict.add_next_tests()->set_command(evil);
  job.verdict.mutable_warnings(0)->set_text(evil);
  job.verdict.mutable_resolution()->add_immediate(evil);
  job.verdict.mutable_families(0)->set_by(evil);
  metrics::Published published = test::OnNode({job});
  published.agent.node = published.agent.version = evil;
  published.agent.sources[0].name = published.agent.sources[0].reason = evil;
  const std::string page = StatusPage(published);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
}

std::string Base64(const std::string& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out.push_back(k <= have ? kDigits[(group >> (18 - 6 * k)) & 63] : '=');
    }
  }
  return out;
}

// A wrong hash leaves the page without its style in every browser.
TEST(StatusPage, PolicyHasTheHashOfTheStyle) {
  std::string file = (std::filesystem::temp_directory_path() / "style.XXXXXX").string();
  const int fd = mkstemp(file.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(file) << StyleSheet();
  FILE* pipe = popen(("sha256sum " + file).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::array<char, 65> hex{};
  ASSERT_EQ(fread(hex.data(), 1, 64, pipe), 64u);
  pclose(pipe);
  std::filesystem::remove(file);
  std::string bytes;
  for (size_t i = 0; i < 64; i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.data() + i, 2), nullptr, 16)));
  }
  EXPECT_THAT(ContentSecurityPolicy(), HasSubstr("style-src 'sha256-" + Base64(bytes) + "'"));
  EXPECT_THAT(ContentSecurityPolicy(), HasSubstr("default-src 'none'"));
  // Neither attribute works under this policy.
  const std::string page = StatusPage(test::OnNode({test::HangingJob()}));
  EXPECT_THAT(page, Not(HasSubstr(" style=")));
  EXPECT_THAT(page, Not(HasSubstr(" onclick=")));
}

}  // namespace
}  // namespace rankscope::web
