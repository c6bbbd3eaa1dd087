// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Every row of evidence.inc, rendered with every value that it asks for: each can be reached past
// those before it, and tests/fixtures/sentences/evidence.txt holds what it says, to be read.
#include <cstdlib>

#include "detectors/sentences/evidence_text.h"
#include "detectors/sentences/render.h"
#include "tests/unit/sentences/samples.h"

namespace rankscope::sentences {
namespace {

using features::Evidence;

// An observation that this row is for: its condition holds, and it has all that its template names
// or, where `bare`, no more than its condition asks for.
Evidence For(const EvidenceRow& row, bool bare) {
  Evidence evidence;
  evidence.kind = row.kind;
  evidence.observed = 3;
  evidence.line = "<line>";
  if (!bare) {
    evidence.ranks = {1};
    evidence.expected = 4;
    evidence.times = 2;
  }
  std::set<FieldId> given;
  EachTerm(row.when.text(), [&](const Term& term) {
    given.insert(term.field);
    if (term.test == Test::kIsNot) return true;
    if (term.test != Test::kEquals && term.test != Test::kBegins) {
      given.erase(term.field);
      if (bare) evidence.values.Set(Sample(term.field));
      return true;
    }
    if (term.field == FieldId::kTimes) {
      evidence.times = std::atoi(std::string(term.value).c_str());
    } else if (term.field == FieldId::kStore) {
      std::string name = "STORE_";
      for (const char c : term.value) name += static_cast<char>(std::toupper(c));
      EXPECT_TRUE(proto::Store_Parse(name, &evidence.store)) << name;
    } else {
      evidence.values.Set(term.field, term.value);
    }
    return true;
  });
  if (bare) return evidence;
  FieldsOf named;
  Walk(row.text.text(), named, false);
  EachTerm(row.when.text(), [&](const Term& term) {
    if (!given.contains(term.field)) named.fields.insert(term.field);
    return true;
  });
  for (const FieldId id : named.fields) {
    if (id > FieldId::kAt && !given.contains(id)) evidence.values.Set(Sample(id));
    if (id == FieldId::kAt) evidence.values.Set(FieldId::kStep, 7.0);
  }
  return evidence;
}

std::string Sentences(bool bare) {
  std::string text;
  for (const EvidenceRow& row : EvidenceRows()) {
    const Evidence evidence = For(row, bare);
    EXPECT_EQ(&FindRow(evidence), &row) << "not reached: " << row.signal << " " << row.when.text();
    text += std::string(row.signal) + (row.when.text().empty() ? "" : " (") +
            std::string(row.when.text()) + (row.when.text().empty() ? "" : ")") + ": " +
            EvidenceText(evidence) + "\n";
  }
  return text;
}

TEST(EvidenceRows, EachIsReachedAndSaysThisWithAllItsValues) {
  Expect("evidence.txt", Sentences(false));
}

TEST(EvidenceRows, EachIsReachedAndSaysThisWithoutThem) {
  Expect("evidence_bare.txt", Sentences(true));
}

TEST(EvidenceRows, WhatRayCallsOutOfMemoryIsNoAllocationOfTheProgram) {
  Evidence evidence;
  evidence.kind = features::EvidenceKind::kHostOom;
  evidence.values = {{FieldId::kType, "MemoryError"}};
  EXPECT_EQ(EvidenceText(evidence), "a process could not allocate host memory");
  evidence.values = {{FieldId::kType, "ray.exceptions.OutOfMemoryError"}};
  EXPECT_EQ(EvidenceText(evidence),
            "a process was killed because host memory ran out (source: message of the scheduler or "
            "kernel)");
}

TEST(EvidenceRows, APortThatFell) {
  Evidence evidence;
  evidence.kind = features::EvidenceKind::kPortCounters;
  evidence.values = {{FieldId::kDevice, "mlx5_0"}, {FieldId::kPort, "1"}, {FieldId::kLink, "IB"}};
  evidence.values.Set(FieldId::kFell, "yes").Set(FieldId::kState, "DOWN");
  EXPECT_EQ(EvidenceText(evidence), "port 1 of mlx5_0 (IB) went down: DOWN");
  evidence.values.Set(FieldId::kCounts, "link_downs 1");
  EXPECT_EQ(EvidenceText(evidence),
            "port 1 of mlx5_0 (IB) counted link_downs 1 during the run and went down: DOWN");
}

TEST(EvidenceRows, AStackInEachOfItsParts) {
  Evidence evidence;
  evidence.kind = features::EvidenceKind::kThreadStack;
  evidence.ranks = {1};
  evidence.process.pid = 17;
  const auto text = [&evidence](FieldValues values) {
    evidence.values = std::move(values);
    evidence.values.Set(FieldId::kPhrase, "waits");
    return EvidenceText(evidence);
  };
  EXPECT_EQ(text({}), "rank 1 (pid 17) waits");
  EXPECT_EQ(text({{FieldId::kWchan, "w"}}), "rank 1 (pid 17) waits: its main thread is at w");
  EXPECT_EQ(text({{FieldId::kWchan, "w"}, {FieldId::kStack, "a;b;c;d"}}),
            "rank 1 (pid 17) waits: its main thread is at a;b;c");
  EXPECT_EQ(text({{FieldId::kSyscall, "read"}, {FieldId::kFd, "pipe"}, {FieldId::kWchan, "w"}}),
            "rank 1 (pid 17) waits: its main thread is in read on a pipe, in the kernel at w");
  EXPECT_EQ(text({{FieldId::kPython, "f;g;h;i"}, {FieldId::kStack, "a"}, {FieldId::kHolder, "x"}}),
            "rank 1 (pid 17) waits: its main thread is at f;g;h, in the kernel at a; the lock "
            "is held by x");
  EXPECT_EQ(text({{FieldId::kPython, "f"}, {FieldId::kSyscall, "read"}}),
            "rank 1 (pid 17) waits: its main thread is at f, in read");
}

TEST(EvidenceRows, WhatIsLeftOfAnEarlierJob) {
  Evidence evidence;
  evidence.kind = features::EvidenceKind::kParentJob;
  evidence.values = {{FieldId::kRecords, int64_t{0}}, {FieldId::kOrigin, "state"}};
  EXPECT_EQ(EvidenceText(evidence),
            "the previous run had printed no training record, and left no checkpoint that was seen "
            "(source: this node's state directory)");
  evidence.values = {{FieldId::kParent, "7"},
                     {FieldId::kNode, "n1"},
                     {FieldId::kRecords, int64_t{1}},
                     {FieldId::kSavedStep, 30.0},
                     {FieldId::kBytes, 1048576.0}};
  EXPECT_EQ(EvidenceText(evidence),
            "job 7 on n1 had printed 1 training record, and left a checkpoint of step 30 (1 MiB) "
            "(source: the job's comment)");
  evidence.observed = 40;
  evidence.expected = 100;
  evidence.values.Set(FieldId::kLoss, 2.5).Set(FieldId::kFinished, "yes");
  evidence.values.Set(FieldId::kOrigin, "controller").Set(FieldId::kWrote, "a.pt");
  EXPECT_EQ(
      EvidenceText(evidence),
      "job 7 on n1 had reached step 40 of 100 and loss 2.5, reported that it was done, and left "
      "a.pt of step 30 (1 MiB) (source: the controller's copy of its summary)");
}

}  // namespace
}  // namespace rankscope::sentences
