// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <charconv>
#include <string>
#include <utility>

#include "detectors/features/landmarks.h"

namespace rankscope::features {
namespace {

using windows::KernelFault;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// arch/x86/kernel/cpu/mce/core.c: "CPU 12: Machine Check: 0 Bank 7: be00000001010092". Bit 61 of
// the bank's status (MCI_STATUS_UC) says that nothing corrected it.
bool SaysUncorrectedBank(std::string_view text) {
  const size_t bank = text.find(" Bank ");
  const size_t colon = bank == std::string_view::npos ? bank : text.find(": ", bank);
  if (colon == std::string_view::npos) return false;
  uint64_t status = 0;
  const char* const begin = text.data() + colon + 2;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), status, 16);
  return error == std::errc() && end - begin == 16 && (status >> 61 & 1) != 0;
}

bool IsSevere(const KernelFault& fault) {
  const std::string_view text = fault.text;
  // "24007, Fatal, Link 44 ..." of NVSwitches; others say "Non-fatal".
  if (fault.type == KernelEventType::kSxid) return Has(text, ", Fatal,");
  if (fault.type == KernelEventType::kPcie)
    return Has(text, "(Fatal)") || Has(text, " Fatal error");
  if (fault.type == KernelEventType::kMemory) return Has(text, " UE ");
  if (fault.type == KernelEventType::kMachineCheck) {
    // mm/memory-failure.c names a page only for an error in it that nothing corrected.
    return Has(text, "Memory failure: 0x") || SaysUncorrectedBank(text);
  }
  return false;
}

}  // namespace

void DescribeFaults(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f) {
  for (const KernelFault& seen : window.kernel.faults.all()) {
    NodeFault fault;
    fault.type = seen.type;
    fault.device = seen.device;
    fault.text = seen.text;
    fault.rank = seen.rank;
    fault.own = seen.own();
    fault.severe = IsSevere(seen);
    fault.corrected =
        seen.type == KernelEventType::kPcie && !fault.severe && !Has(seen.text, "Uncorrect");
    fault.over = seen.over;
    fault.first = seen.first;
    fault.last = seen.last;
    Evidence evidence;
    evidence.kind = EvidenceKind::kKernelFault;
    evidence.store = proto::STORE_KERNEL;
    evidence.times = seen.times;
    evidence.begin = seen.first;
    evidence.end = seen.last;
    evidence.line = seen.text;
    evidence.values = {{FieldId::kShape, "kernel_event"},
                       {FieldId::kType, std::string(NameOf(seen.type))},
                       {FieldId::kDevice, seen.device}};
    if (seen.rank >= 0) evidence.ranks = {seen.rank};
    if (seen.type == KernelEventType::kNetworkFile) {
      // How long it has not answered, by now.
      const double seconds = (f.now - seen.first).seconds();
      if (!seen.over) evidence.observed = static_cast<double>(static_cast<int64_t>(seconds));
    }
    fault.evidence = citer.Add(std::move(evidence));
    f.faults.push_back(std::move(fault));
  }
}

}  // namespace rankscope::features
