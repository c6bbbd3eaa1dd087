// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A verdict with everything in it, for the tests of its documents. Any thread.
#pragma once

#include "detectors/proto/verdict.pb.h"

namespace rankscope::testing {

inline proto::Verdict ExampleVerdict() {
  proto::Verdict verdict;
  verdict.set_job_id("8841");
  verdict.mutable_attempt()->set_ordinal(2);
  verdict.set_state(proto::FINAL);
  verdict.set_revision(3);
  verdict.set_scope(proto::SCOPE_JOB);
  verdict.set_node("n1");
  verdict.set_code("A2");
  verdict.set_family("signal_kill");
  verdict.set_sub("sigkill");
  verdict.set_signal("SIGKILL");
  verdict.set_domain(proto::DOMAIN_UNKNOWN);
  verdict.set_confidence(0.85);
  verdict.set_tier(proto::TIER_C);
  verdict.set_phase(proto::PHASE_TRAIN);
  verdict.set_framework("pytorch_example");
  verdict.set_onset_ns(1'795'190'450'496'000'000);
  verdict.set_detected_ns(1'795'190'451'000'000'000);
  verdict.set_exit_code(1);
  verdict.set_exit_known(true);
  verdict.add_ranks(1);
  verdict.add_nodes("n1");
  verdict.mutable_triage()->set_severity("critical");
  verdict.mutable_triage()->set_when("after_warmup");
  verdict.mutable_triage()->set_symptom("one_rank_crashed");
  verdict.mutable_localization()->set_scope("rank");
  verdict.mutable_isolation()->set_component("process");
  verdict.mutable_isolation()->add_ruled_in_by(0);
  verdict.mutable_isolation()->add_ruled_in_by(1);

  auto* log = verdict.add_shows();
  log->set_id(0);
  log->set_text("rank 1 ended by SIGKILL, no traceback");
  log->set_store(proto::STORE_LOG);
  log->set_observed(-9);
  auto* cite = log->mutable_cite()->mutable_log();
  cite->set_stream("run log");
  cite->set_offset(18231);
  cite->set_line("exitcode  : -9 (pid: 312)");
  auto* number = verdict.add_shows();
  number->set_id(1);
  number->set_text("memory rose");
  number->set_store(proto::STORE_HOST);
  number->set_signal("resident_bytes");
  number->set_observed(123456789.0);
  number->set_expected(1.0 / 3.0);
  number->set_unit("By");
  number->set_rank(0);
  number->set_begin_ns(1'000'000'000);
  number->set_end_ns(2'500'000'000);
  number->mutable_cite()->set_promql("rankscope_rank_resident_bytes{job_id=\"8841\"}");
  auto* word = verdict.add_shows();
  word->set_id(2);
  word->set_text("the scheduler says so");
  word->set_store(proto::STORE_SCHEDULER);
  word->set_observed_text("FAILED");
  auto* fact = word->mutable_cite()->mutable_scheduler();
  fact->set_job_id("8841");
  fact->set_field("State");
  fact->set_value("FAILED");
  fact->set_origin("sacct");
  auto* kernel = verdict.add_shows();
  kernel->set_id(3);
  kernel->set_text("the kernel killed it");
  kernel->set_store(proto::STORE_KERNEL);
  kernel->mutable_cite()->mutable_kernel()->set_source("kmsg");
  kernel->mutable_cite()->mutable_kernel()->set_text("Out of memory: Killed process 312 (python)");
  auto* process = verdict.add_shows();
  process->set_id(4);
  process->set_text("wait status");
  process->set_store(proto::STORE_PROCESS);
  process->mutable_cite()->mutable_process()->mutable_process()->set_pid(312);
  process->mutable_cite()->mutable_process()->set_what("wait_status");
  process->mutable_cite()->mutable_process()->set_value("9");

  auto* implies = verdict.add_implies();
  implies->set_text("the process did not end itself");
  implies->set_remedy("rerun");
  implies->set_domain(proto::DOMAIN_UNKNOWN);
  implies->add_evidence(0);
  auto* open = verdict.add_cannot_decide();
  open->set_question("who sent SIGKILL");
  open->set_needs(proto::STORE_KERNEL);
  open->set_why(proto::UNSUPPORTED);
  auto* test = verdict.add_next_tests();
  test->set_command("journalctl -k --since 16:00 | grep -i 'killed process'");
  test->set_expects("a line with pid 312: the kernel's OOM killer sent it");

  const auto family = [&](const char* code, proto::FamilyState::S state, const char* by) {
    auto* row = verdict.add_families();
    row->set_code(code);
    row->set_state(state);
    row->set_by(by);
    return row;
  };
  family("A2", proto::FamilyState::RULED_IN, "");
  family("B1", proto::FamilyState::RULED_OUT, "no allocator text")->add_evidence(1);
  family("E1", proto::FamilyState::RULED_OUT, "no allocator text");
  auto* b2 = family("B2", proto::FamilyState::NOT_DECIDABLE, "");
  b2->set_needs(proto::STORE_GPU);
  b2->set_why(proto::NOT_APPLICABLE);

  auto* root = verdict.add_cause_chain();
  root->set_evidence(0);
  root->set_role(proto::Cause::ROOT);
  auto* cascade = verdict.add_cause_chain();
  cascade->set_evidence(1);
  cascade->set_role(proto::Cause::CASCADE);
  verdict.mutable_resolution()->add_immediate("rerun from step 40");
  verdict.mutable_resolution()->add_verify("watch resident_bytes");
  verdict.set_retry_outlook(proto::RETRY_MAY_RECOVER);
  auto* warning = verdict.add_warnings();
  warning->set_kind("loss_spike");
  warning->set_subject("rank 0");
  warning->set_severity("info");
  warning->set_text("loss rose and came back");
  warning->add_evidence(1);
  auto* quality = verdict.mutable_data_quality();
  quality->set_exact(true);
  auto* source = quality->add_sources();
  source->set_name("procfs");
  source->set_state(proto::UP);
  auto* attempt = verdict.add_attempts();
  attempt->mutable_attempt()->set_ordinal(1);
  attempt->set_code("C1");
  attempt->set_family("rendezvous_hang");
  attempt->set_confidence(0.65);
  attempt->set_end_ns(1'795'190'000'000'000'000);
  attempt->set_last_step(12);
  attempt->add_evidence(2);
  return verdict;
}

}  // namespace rankscope::testing
