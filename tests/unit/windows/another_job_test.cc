// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/another_job.h"

#include <gtest/gtest.h>

namespace rankscope::windows {
namespace {

logs::Incident Named(std::string_view key, std::string_view id,
                     logs::IncidentKind kind = logs::IncidentKind::kSchedulerEnd) {
  logs::Incident incident;
  incident.kind = kind;
  incident.fields = {{std::string(key), std::string(id)}};
  return incident;
}

TEST(AnotherJob, ItsOwnNumberIsItsOwn) {
  const JobNumbers plain{"8841", "", false};
  for (const std::string_view id : {"8841", "8841.0", "8841.batch", "8841+0", "8841+1.0", "8841_2"})
    EXPECT_FALSE(OfAnotherJob(Named("step", id), plain)) << id;
  const JobNumbers task{"8845", "8841_3", false};
  for (const std::string_view id : {"8845", "8845.0", "8841_3", "8841_3.0", "8841"})
    EXPECT_FALSE(OfAnotherJob(Named("job", id), task)) << id;
  const JobNumbers part{"8841", "", true};
  for (const std::string_view id : {"8841", "8842.0", "8841+1"})
    EXPECT_FALSE(OfAnotherJob(Named("job", id), part)) << id;
}

TEST(AnotherJob, AnotherNumberIsAnothers) {
  const JobNumbers plain{"8841", "", false};
  for (const std::string_view id : {"9107", "9107.0", "884", "88410", "9107+0"})
    EXPECT_TRUE(OfAnotherJob(Named("job", id), plain)) << id;
  EXPECT_TRUE(OfAnotherJob(Named("step", "9107.0", logs::IncidentKind::kHostOom), plain));
  const JobNumbers task{"8845", "8841_3", false};
  for (const std::string_view id : {"8846", "8841_4", "9107_3"})
    EXPECT_TRUE(OfAnotherJob(Named("job", id), task)) << id;
}

TEST(AnotherJob, WhereNothingIsKnownTheTextStands) {
  for (const std::string_view own : {"run-1000-0a1b2c3d", "proc-0a1b2c3d", "", "train"})
    EXPECT_FALSE(OfAnotherJob(Named("job", "9107"), {own, "", false})) << own;
  const JobNumbers plain{"8841", "", false};
  EXPECT_FALSE(OfAnotherJob(Named("job", "9107_3"), plain)) << "it may be of that array";
  EXPECT_FALSE(OfAnotherJob(Named("job", ""), plain));
  EXPECT_FALSE(OfAnotherJob(Named("job", "vision"), plain));
  EXPECT_FALSE(OfAnotherJob(Named("node", "9107"), plain));
  EXPECT_FALSE(OfAnotherJob(Named("job", "9107", logs::IncidentKind::kException), plain));
}

}  // namespace
}  // namespace rankscope::windows
