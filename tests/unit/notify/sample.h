// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A notification with everything in it, for the tests of this folder.
#pragma once

#include <limits>

#include "exporter/notify/news.h"

namespace rankscope::exporter::notify {

inline Notification SampleNotification() {
  Notification n;
  n.set_id("rs.8841.1764276656000.n1");
  n.set_thread(n.id());
  n.set_status(Notification::FAILED);
  n.set_at_ns(int64_t{1'795'812'656} * 1'000'000'000);
  n.set_job_id("8841");
  n.set_job_name("llama");
  n.set_user("lena");
  n.set_uid(1000);
  n.set_partition("gpu");
  n.set_command("torchrun train.py");
  n.set_node("n1");
  n.set_attempt(1);
  n.set_code("A2");
  n.set_family("signal_kill");
  n.set_what("a fatal signal killed a process, without a traceback");
  n.set_sub("sigsegv");
  n.set_domain("workload");
  n.set_severity("critical");
  n.set_confidence("0.95, kernel record");
  n.add_ranks(1);
  n.add_nodes("n1");
  n.set_ended("failed");
  n.set_exit_known(true);
  n.set_exit_code(1);
  n.set_seconds(7505);
  n.set_begin_ns(n.at_ns() - int64_t{7505} * 1'000'000'000);
  n.set_end_ns(n.at_ns());
  n.add_shows("rank 1 was terminated by SIGSEGV, without a traceback");
  n.add_causes("rank 1 crashed in native code (SIGSEGV)");
  n.add_remedies("Rerun with PYTHONFAULTHANDLER=1 to get the Python frame");
  n.set_step(5400);
  n.set_steps(10000);
  n.set_loss(2.61);
  n.set_checkpoint("/scratch/run7/step_5000.pt");
  n.set_checkpoint_step(5000);
  n.set_log_of("rank 1");
  n.add_log("step 5400 loss 2.61");
  return n;
}

}  // namespace rankscope::exporter::notify
