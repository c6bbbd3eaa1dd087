// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Observation -> frame.
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <optional>
#include <variant>

#include "detectors/model/utf8.h"
#include "detectors/proto/recording.pb.h"
#include "detectors/recording/recording.h"

namespace rankscope::recording {

namespace {

using google::protobuf::io::CodedOutputStream;

// The enumerations of the model and of the wire have the same numbers, so a cast converts them.
static_assert(static_cast<int>(Availability::kNotApplicable) == proto::NOT_APPLICABLE);
static_assert(static_cast<int>(RunMark::What::kDisowned) == proto::RunMark::DISOWNED);
static_assert(static_cast<int>(LineEnd::kClosed) == proto::LogLine::CLOSED);

void Put(const ProcessKey& key, proto::ProcessKey* out) {
  out->set_pid(key.pid);
  out->set_start_ticks(key.start_ticks);
}

void Put(const RankKey& key, proto::RankKey* out) {
  out->set_job_id(ToUtf8(key.job_id));
  out->set_rank(key.rank);
}

void Put(const KeyValue& pair, proto::KeyValue* out) {
  out->set_key(ToUtf8(pair.key));
  out->set_value(ToUtf8(pair.value));
}

void PutKind(std::monostate, proto::Observation*) {}

void PutKind(const Epoch& epoch, proto::Observation* out) {
  auto* to = out->mutable_epoch();
  to->set_wall_offset_ns(epoch.wall_offset_ns);
  to->set_uncertainty_ns(epoch.uncertainty_ns);
  to->set_boot_id(ToUtf8(epoch.boot_id));
  to->set_away_since_ns(epoch.away_since.ns);
}

void PutKind(const Tick&, proto::Observation* out) {
  out->mutable_tick();
}

void PutKind(const SourceState& state, proto::Observation* out) {
  auto* to = out->mutable_source_state();
  to->set_source(state.source);
  to->set_name(ToUtf8(state.name));
  to->set_state(static_cast<proto::Availability>(state.state));
  to->set_reason(ToUtf8(state.reason));
  to->set_lost(state.lost);
  to->set_interval_ns(state.interval.ns);
  to->set_lost_untold(state.lost_untold);
}

void PutKind(const RunMark& mark, proto::Observation* out) {
  auto* to = out->mutable_run();
  to->set_job_id(ToUtf8(mark.job_id));
  to->set_what(static_cast<proto::RunMark::What>(mark.what));
  for (const std::string& arg : mark.argv) to->add_argv(ToUtf8(arg));
  to->set_wait_status(mark.wait_status);
  to->set_cwd(ToUtf8(mark.cwd));
  to->set_log(ToUtf8(mark.log));
  if (mark.root != ProcessKey{}) Put(mark.root, to->mutable_root());
  to->set_world_size(mark.world_size);
  to->set_status_known(mark.status_known);
  to->set_error(ToUtf8(mark.error));
  to->set_slurm_restart(mark.slurm_restart);
  if (mark.uid) to->set_uid(*mark.uid);
  to->set_from_folder(mark.from_folder);
}

void PutKind(const ProcessStart& start, proto::Observation* out) {
  auto* to = out->mutable_start();
  if (start.key != ProcessKey{}) Put(start.key, to->mutable_key());
  if (start.parent != ProcessKey{}) Put(start.parent, to->mutable_parent());
  to->set_uid(start.uid);
  to->set_comm(ToUtf8(start.comm));
  for (const std::string& arg : start.argv) to->add_argv(ToUtf8(arg));
  for (const KeyValue& pair : start.env) Put(pair, to->add_env());
  to->set_cgroup(ToUtf8(start.cgroup));
  for (const int32_t pid : start.ns_pids) to->add_ns_pids(pid);
  to->set_complete(start.complete);
  to->set_preexisting(start.preexisting);
  for (const std::string& uuid : start.gpu_uuids) to->add_gpu_uuids(ToUtf8(uuid));
  for (const int32_t number : start.gpu_minors) to->add_gpu_minors(number);
  to->set_job_id(ToUtf8(start.job_id));
}

void PutKind(const ProcessExit& exit, proto::Observation* out) {
  auto* to = out->mutable_exit();
  if (exit.key != ProcessKey{}) Put(exit.key, to->mutable_key());
  to->set_wait_status(exit.wait_status);
  to->set_status_known(exit.status_known);
  to->set_core(exit.core);
}

void PutKind(const SignalSent& sent, proto::Observation* out) {
  auto* to = out->mutable_signal();
  if (sent.target != ProcessKey{}) Put(sent.target, to->mutable_target());
  to->set_signo(sent.signo);
  to->set_si_code(sent.si_code);
  if (sent.sender != ProcessKey{}) Put(sent.sender, to->mutable_sender());
  to->set_sender_comm(ToUtf8(sent.sender_comm));
  to->set_sender_uid(sent.sender_uid);
  to->set_sender_cgroup(ToUtf8(sent.sender_cgroup));
}

void PutKind(const SampleBatch& batch, proto::Observation* out) {
  auto* to = out->mutable_samples();
  switch (batch.subject.kind) {
    case Subject::Kind::kNone:
      break;
    case Subject::Kind::kRank:
      Put(batch.subject.rank, to->mutable_rank());
      break;
    case Subject::Kind::kProcess:
      Put(batch.subject.process, to->mutable_process());
      break;
    case Subject::Kind::kGpu:
      to->set_gpu_uuid(ToUtf8(batch.subject.name));
      break;
    case Subject::Kind::kJob:
      to->set_job_id(ToUtf8(batch.subject.name));
      break;
    case Subject::Kind::kHost:
      to->set_host(true);
      break;
  }
  for (const Sample& sample : batch.samples) {
    to->add_signal(static_cast<uint32_t>(sample.signal));
    to->add_number(sample.value);
  }
  to->set_query(ToUtf8(batch.query));
}

void PutKind(const KernelEvent& event, proto::Observation* out) {
  auto* to = out->mutable_kernel();
  to->set_kmsg_seq(event.kmsg_seq);
  to->set_type(std::string(NameOf(event.type)));
  to->set_text(ToUtf8(event.text));
  if (event.victim != ProcessKey{}) Put(event.victim, to->mutable_victim());
  to->set_gpu_bus_id(ToUtf8(event.gpu_bus_id));
  to->set_code(event.code);
  to->set_scope(ToUtf8(event.scope));
  to->set_cgroup(ToUtf8(event.cgroup));
  to->set_limit_bytes(event.limit_bytes);
  to->set_used_bytes(event.used_bytes);
}

void PutKind(const SchedulerFact& fact, proto::Observation* out) {
  auto* to = out->mutable_scheduler();
  to->set_job_id(ToUtf8(fact.job_id));
  to->set_step_id(ToUtf8(fact.step_id));
  to->set_field(ToUtf8(fact.field));
  to->set_value(ToUtf8(fact.value));
  to->set_origin(ToUtf8(fact.origin));
  to->set_wall_ns(fact.wall_ns);
  to->set_node(ToUtf8(fact.node));
}

void PutKind(const SchedulerRecord& record, proto::Observation* out) {
  auto* to = out->mutable_record();
  to->set_job_id(ToUtf8(record.job_id));
  to->set_origin(ToUtf8(record.origin));
  to->set_state(ToUtf8(record.state));
  to->set_event(ToUtf8(record.event));
  to->set_submit(record.submit);
  to->set_start(record.start);
  to->set_end(record.end);
  if (record.elapsed_seconds >= 0) to->set_elapsed_seconds(record.elapsed_seconds);
  if (record.time_limit_seconds >= 0) to->set_time_limit_seconds(record.time_limit_seconds);
  if (record.restarts >= 0) to->set_restarts(record.restarts);
  if (record.gpus >= 0) to->set_gpus(record.gpus);
  if (record.priority >= 0) to->set_priority(record.priority);
  to->set_by(ToUtf8(record.by));
  to->set_reason(ToUtf8(record.reason));
  to->set_nodes(ToUtf8(record.nodes));
  to->set_failed_node(ToUtf8(record.failed_node));
  to->set_exit(ToUtf8(record.exit));
  to->set_derived_exit(ToUtf8(record.derived_exit));
  to->set_partition(ToUtf8(record.partition));
  to->set_dependency(ToUtf8(record.dependency));
  to->set_submit_line(ToUtf8(record.submit_line));
  to->set_work_dir(ToUtf8(record.work_dir));
  to->set_wall_ns(record.wall_ns);
}

void PutKind(const Event& event, proto::Observation* out) {
  auto* to = out->mutable_event();
  if (event.rank != RankKey{}) Put(event.rank, to->mutable_rank());
  if (event.process != ProcessKey{}) Put(event.process, to->mutable_process());
  to->set_type(event.type);
  to->set_request(event.request);
  for (const KeyValue& pair : event.str) Put(pair, to->add_str());
  for (const IntKeyValue& pair : event.num) {
    auto* number = to->add_num();
    number->set_key(ToUtf8(pair.key));
    number->set_value(pair.value);
  }
  to->set_begin_ns(event.begin.ns);
}

void PutKind(const EngineState& state, proto::Observation* out) {
  auto* to = out->mutable_state();
  to->set_build(ToUtf8(state.build));
  to->set_blob(state.blob);
}

// Log lines take AppendLine; this is the form that it must match.
void PutKind(const LogLine&, proto::Observation*) {}

void AppendMessage(const google::protobuf::MessageLite& message, size_t size, std::string& out) {
  const size_t at = out.size();
  const auto length = static_cast<uint32_t>(size);
  out.resize(at + CodedOutputStream::VarintSize32(length) + size);
  auto* to = reinterpret_cast<uint8_t*>(out.data() + at);
  message.SerializeWithCachedSizesToArray(CodedOutputStream::WriteVarint32ToArray(length, to));
}

// Lines come by the million, so their frames are written without a message between. A test holds
// the bytes equal to the message's own serialisation: fields by rising number, defaults left out.

constexpr uint32_t Tag(int field, bool bytes) {
  return static_cast<uint32_t>(field) << 3 | (bytes ? 2u : 0u);
}

size_t NumberSize(int field, uint64_t value) {
  if (value == 0) return 0;
  return CodedOutputStream::VarintSize32(Tag(field, false)) +
         CodedOutputStream::VarintSize64(value);
}

size_t BytesSize(int field, size_t size, bool even_if_empty = false) {
  if (size == 0 && !even_if_empty) return 0;
  return CodedOutputStream::VarintSize32(Tag(field, true)) +
         CodedOutputStream::VarintSize32(static_cast<uint32_t>(size)) + size;
}

uint8_t* WriteNumber(int field, uint64_t value, uint8_t* to) {
  if (value == 0) return to;
  to = CodedOutputStream::WriteVarint32ToArray(Tag(field, false), to);
  return CodedOutputStream::WriteVarint64ToArray(value, to);
}

uint8_t* WriteLength(int field, size_t size, uint8_t* to) {
  to = CodedOutputStream::WriteVarint32ToArray(Tag(field, true), to);
  return CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), to);
}

uint8_t* WriteBytes(int field, std::string_view bytes, uint8_t* to) {
  if (bytes.empty()) return to;
  to = WriteLength(field, bytes.size(), to);
  std::copy(bytes.begin(), bytes.end(), to);
  return to + bytes.size();
}

// int32 travels sign-extended.
uint64_t Wide(int64_t value) {
  return static_cast<uint64_t>(value);
}

struct ValidText {
  explicit ValidText(std::string_view text) : view(text) {
    if (!IsUtf8(text)) view = repaired.emplace(ToUtf8(text));
  }
  ValidText(const ValidText&) = delete;
  ValidText& operator=(const ValidText&) = delete;
  std::optional<std::string> repaired;
  std::string_view view;
};

bool AppendLine(const Observation& observation, const LogLine& line, std::string& out) {
  using L = proto::LogLine;
  using O = proto::Observation;
  const ValidText node(observation.node);
  const ValidText stream_name(line.stream_name);
  const ValidText job_id(line.job_id);
  const int text_field = IsUtf8(line.text) ? L::kTextFieldNumber : L::kRawFieldNumber;
  const bool has_writer = line.writer != ProcessKey{};
  const size_t writer_size =
      NumberSize(proto::ProcessKey::kPidFieldNumber, Wide(line.writer.pid)) +
      NumberSize(proto::ProcessKey::kStartTicksFieldNumber, Wide(line.writer.start_ticks));
  const size_t line_size = NumberSize(L::kStreamFieldNumber, line.stream) +
                           BytesSize(L::kStreamNameFieldNumber, stream_name.view.size()) +
                           BytesSize(L::kJobIdFieldNumber, job_id.view.size()) +
                           (has_writer ? BytesSize(L::kWriterFieldNumber, writer_size) : 0) +
                           NumberSize(L::kOffsetFieldNumber, Wide(line.offset)) +
                           BytesSize(text_field, line.text.size()) +
                           NumberSize(L::kEndFieldNumber, static_cast<uint64_t>(line.end)) +
                           NumberSize(L::kCutBytesFieldNumber, Wide(line.cut_bytes)) +
                           NumberSize(L::kRedactionsFieldNumber, Wide(line.redactions)) +
                           NumberSize(L::kLostBeforeFieldNumber, Wide(line.lost_before)) +
                           NumberSize(L::kRankPlusOneFieldNumber, Wide(line.rank + 1)) +
                           NumberSize(L::kLocalRankPlusOneFieldNumber, Wide(line.local_rank + 1)) +
                           NumberSize(L::kRestartPlusOneFieldNumber, Wide(line.restart + 1)) +
                           NumberSize(L::kPrintedMsFieldNumber, Wide(line.printed_ms)) +
                           NumberSize(L::kFileDeviceFieldNumber, line.file.device) +
                           NumberSize(L::kFileInodeFieldNumber, line.file.inode) +
                           NumberSize(L::kFileEndFieldNumber, Wide(line.file.end));
  const size_t size = NumberSize(O::kTNsFieldNumber, Wide(observation.t.ns)) +
                      NumberSize(O::kSeqFieldNumber, Wide(observation.seq)) +
                      NumberSize(O::kSourceFieldNumber, observation.source) +
                      BytesSize(O::kNodeFieldNumber, node.view.size()) +
                      BytesSize(O::kLineFieldNumber, line_size, true);
  if (size > kFrameCap) return false;

  const size_t at = out.size();
  out.resize(at + CodedOutputStream::VarintSize32(static_cast<uint32_t>(size)) + size);
  auto* to = reinterpret_cast<uint8_t*>(out.data() + at);
  to = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), to);
  to = WriteNumber(O::kTNsFieldNumber, Wide(observation.t.ns), to);
  to = WriteNumber(O::kSeqFieldNumber, Wide(observation.seq), to);
  to = WriteNumber(O::kSourceFieldNumber, observation.source, to);
  to = WriteBytes(O::kNodeFieldNumber, node.view, to);
  to = WriteLength(O::kLineFieldNumber, line_size, to);
  to = WriteNumber(L::kStreamFieldNumber, line.stream, to);
  to = WriteBytes(L::kStreamNameFieldNumber, stream_name.view, to);
  to = WriteBytes(L::kJobIdFieldNumber, job_id.view, to);
  if (has_writer) {
    to = WriteLength(L::kWriterFieldNumber, writer_size, to);
    to = WriteNumber(proto::ProcessKey::kPidFieldNumber, Wide(line.writer.pid), to);
    to = WriteNumber(proto::ProcessKey::kStartTicksFieldNumber, Wide(line.writer.start_ticks), to);
  }
  to = WriteNumber(L::kOffsetFieldNumber, Wide(line.offset), to);
  to = WriteBytes(text_field, line.text, to);
  to = WriteNumber(L::kEndFieldNumber, static_cast<uint64_t>(line.end), to);
  to = WriteNumber(L::kCutBytesFieldNumber, Wide(line.cut_bytes), to);
  to = WriteNumber(L::kRedactionsFieldNumber, Wide(line.redactions), to);
  to = WriteNumber(L::kLostBeforeFieldNumber, Wide(line.lost_before), to);
  to = WriteNumber(L::kRankPlusOneFieldNumber, Wide(line.rank + 1), to);
  to = WriteNumber(L::kLocalRankPlusOneFieldNumber, Wide(line.local_rank + 1), to);
  to = WriteNumber(L::kRestartPlusOneFieldNumber, Wide(line.restart + 1), to);
  to = WriteNumber(L::kPrintedMsFieldNumber, Wide(line.printed_ms), to);
  to = WriteNumber(L::kFileDeviceFieldNumber, line.file.device, to);
  to = WriteNumber(L::kFileInodeFieldNumber, line.file.inode, to);
  WriteNumber(L::kFileEndFieldNumber, Wide(line.file.end), to);
  return true;
}

}  // namespace

void AppendHeader(const Header& header, std::string& out) {
  proto::Header message;
  message.set_version(header.version);
  message.set_tool_version(ToUtf8(header.tool_version));
  message.set_node(ToUtf8(header.node));
  message.set_boot_id(ToUtf8(header.boot_id));
  message.set_signal_table_version(header.signal_table_version);
  AppendMessage(message, message.ByteSizeLong(), out);
}

bool AppendObservation(const Observation& observation, std::string& out) {
  if (const auto* line = std::get_if<LogLine>(&observation.kind))
    return AppendLine(observation, *line, out);
  proto::Observation message;
  message.set_t_ns(observation.t.ns);
  message.set_seq(observation.seq);
  message.set_source(observation.source);
  message.set_node(ToUtf8(observation.node));
  std::visit([&](const auto& kind) { PutKind(kind, &message); }, observation.kind);
  const size_t size = message.ByteSizeLong();
  if (size > kFrameCap) return false;
  AppendMessage(message, size, out);
  return true;
}

}  // namespace rankscope::recording
