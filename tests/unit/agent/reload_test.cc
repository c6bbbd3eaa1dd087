// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::exporter {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TakeOver, TakesWhatCanChangeAndNamesTheRest) {
  Config now = DefaultConfig({});
  EXPECT_THAT(TakeOver(now, now).changed, IsEmpty());
  Config read = now;
  read.log.level = "debug";
  read.metrics.max_series = 500;
  read.slurm.targets = {"gpu:mfu=0.4"};
  read.web.roles = {"user:ann=log"};
  read.notify.file = "/etc/rankscope/notify.yaml";
  read.web.max_requests = 7;
  read.state.dir = "/elsewhere";
  const ConfigChange change = TakeOver(now, read);
  EXPECT_THAT(change.changed, ElementsAre("web.roles", "metrics.max_series", "slurm.targets",
                                          "notify.file", "log.level"));
  EXPECT_THAT(change.needs_restart, ElementsAre("web.max_requests", "state.dir"));
  EXPECT_EQ(change.config.log.level, "debug");
  EXPECT_EQ(change.config.notify.file, "/etc/rankscope/notify.yaml");
  EXPECT_EQ(change.config.metrics.max_series, 500);
  EXPECT_THAT(change.config.slurm.targets, ElementsAre("gpu:mfu=0.4"));
  EXPECT_EQ(change.config.web.max_requests, now.web.max_requests);
  EXPECT_EQ(change.config.state.dir, now.state.dir);
  // What differs is named each time until the restart.
  EXPECT_THAT(TakeOver(change.config, read).needs_restart,
              ElementsAre("web.max_requests", "state.dir"));
}

TEST(WithoutSecrets, MasksWhatStandsBeforeTheHost) {
  EXPECT_EQ(WithoutSecrets("a: \"http://me:pw@host/x\"\nb: \"https://t@h\"\nc: \"http://h/a\"\n"),
            "a: \"http://<secret>@host/x\"\nb: \"https://<secret>@h\"\nc: \"http://h/a\"\n");
  EXPECT_EQ(WithoutSecrets("u: \"http://a@b@c:1\""), "u: \"http://<secret>@c:1\"");
  EXPECT_EQ(WithoutSecrets("u: \"http://a:b/c@d/\""), "u: \"http://<secret>@d/\"");
  EXPECT_EQ(WithoutSecrets("mail: a@b\n"), "mail: a@b\n");
}

}  // namespace
}  // namespace rankscope::exporter
