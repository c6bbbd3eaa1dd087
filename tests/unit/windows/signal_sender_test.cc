// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/signal_sender.h"

#include <gtest/gtest.h>

namespace rankscope::windows {
namespace {

struct SignalSender : testing::Test {
  SignalSender() {
    target.key = {102, 50};
    target.parent = {100, 40};
    target.uid = 1000;
    target.job_id = "j";
    signal.target = target.key;
    signal.signo = 9;
    signal.sender = {4711, 60};
    signal.sender_comm = "bash";
    signal.sender_uid = 1000;
  }
  std::string_view Kind(const attribution::ProcessInfo* sender = nullptr) {
    return SenderKind(signal, target, sender);
  }

  attribution::ProcessInfo target;
  SignalSent signal;
};

TEST_F(SignalSender, UsersAreToldApart) {
  EXPECT_EQ(Kind(), "same_user");
  signal.sender_uid = 0;
  EXPECT_EQ(Kind(), "other_user");
}

TEST_F(SignalSender, NobodyIsTheKernel) {
  signal.sender = {};
  EXPECT_EQ(Kind(), "kernel");
}

TEST_F(SignalSender, ItselfIsTheSameProcessAndNotTheSamePid) {
  signal.sender = target.key;
  EXPECT_EQ(Kind(), "itself");
  signal.sender.start_ticks += 1;
  EXPECT_EQ(Kind(), "same_user");
}

TEST_F(SignalSender, OnlyALauncherIsOneAndAnotherParentIsTheJob) {
  attribution::ProcessInfo sender;
  sender.job_id = "j";
  EXPECT_EQ(Kind(&sender), "job");
  sender.role = attribution::ProcessRole::kLauncher;
  EXPECT_EQ(Kind(&sender), "job") << "whatever is no rank has this role";
  sender.command = "/usr/bin/python3 -m torch.distributed.run train.py";
  EXPECT_EQ(Kind(&sender), "launcher");
  sender.job_id = "another";
  EXPECT_EQ(Kind(&sender), "same_user");
  signal.sender = target.parent;
  EXPECT_EQ(Kind(), "job") << "not known as a launcher, it does not clean up";
}

TEST_F(SignalSender, DaemonsAreKnownByNameAndUser) {
  signal.sender_uid = 0;
  signal.sender_comm = "slurmstepd";
  EXPECT_EQ(Kind(), "scheduler");
  signal.sender_comm = "systemd-oomd";
  EXPECT_EQ(Kind(), "oom_daemon");
  signal.sender_comm = "containerd-shim";
  EXPECT_EQ(Kind(), "runtime");
  // The run's own program of that name is no daemon.
  signal.sender_comm = "slurmstepd";
  signal.sender_uid = 1000;
  EXPECT_EQ(Kind(), "same_user");
}

}  // namespace
}  // namespace rankscope::windows
