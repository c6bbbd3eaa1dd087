// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <bitset>
#include <string>
#include <unordered_map>
#include <vector>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/text/scanner.h"

namespace rankscope::logs {
namespace {

using Frame = TracebackMachine::Frame;

// An empty column fits anything; `file` and `code` are substrings, `function` is the whole name.
struct FrameRow {
  std::string_view file;
  std::string_view function;
  std::string_view code;
  FrameKind kind;
};

// Frames that tell by themselves. Within a frame the first row that fits decides, so the special
// stands before the general.
constexpr FrameRow kTelling[] = {
    {"", "destroy_process_group", "", FrameKind::kTeardown},
    {"", "__del__", "", FrameKind::kTeardown},
    {"", "_exit_function", "", FrameKind::kTeardown},
    {"", "_python_exit", "", FrameKind::kTeardown},
    {"", "_run_finalizers", "", FrameKind::kTeardown},
    {"weakref.py", "_exitfunc", "", FrameKind::kTeardown},
    {"<frozen importlib", "", "", FrameKind::kImport},
    {"importlib/__init__.py", "", "", FrameKind::kImport},
    {"transformers/utils/import_utils.py", "", "", FrameKind::kImport},

    // A model type that the installed version does not know.
    {"transformers/models/auto/configuration_auto.py", "__getitem__", "", FrameKind::kImport},
    // os.environ without the variable.
    {"/os.py", "__getitem__", "", FrameKind::kConfig},
    {"<frozen os>", "__getitem__", "", FrameKind::kConfig},

    {"", "init_process_group", "", FrameKind::kRendezvous},
    {"torch/distributed/rendezvous.py", "", "", FrameKind::kRendezvous},
    {"torch/distributed/elastic/rendezvous", "", "", FrameKind::kRendezvous},
    {"", "_create_c10d_store", "", FrameKind::kRendezvous},
    {"", "init_distributed", "", FrameKind::kRendezvous},
    {"", "initialize_distributed", "", FrameKind::kRendezvous},
    {"", "_initialize_distributed", "", FrameKind::kRendezvous},
    {"", "setup_distributed", "", FrameKind::kRendezvous},
    {"", "init_distributed_mode", "", FrameKind::kRendezvous},
    {"", "_new_process_group_helper", "", FrameKind::kRendezvous},
    {"", "", "init_process_group(", FrameKind::kRendezvous},
    {"", "", "TCPStore(", FrameKind::kRendezvous},
    {"torch/distributed/c10d_logger.py", "", "", FrameKind::kCollective},
    {"torch/distributed/distributed_c10d.py", "", "", FrameKind::kCollective},
    {"torch/distributed/utils.py", "", "", FrameKind::kCollective},
    {"deepspeed/comm/", "", "", FrameKind::kCollective},

    {"", "save_checkpoint", "", FrameKind::kCheckpointSave},
    {"", "_save_checkpoint", "", FrameKind::kCheckpointSave},
    {"", "save_pretrained", "", FrameKind::kCheckpointSave},
    {"", "save_model", "", FrameKind::kCheckpointSave},
    {"", "_save_model", "", FrameKind::kCheckpointSave},
    {"", "save_state", "", FrameKind::kCheckpointSave},
    {"", "save_file", "", FrameKind::kCheckpointSave},
    {"", "save_state_dict", "", FrameKind::kCheckpointSave},
    {"", "save_weights", "", FrameKind::kCheckpointSave},
    {"torch/serialization.py", "save", "", FrameKind::kCheckpointSave},
    {"torch/serialization.py", "_save", "", FrameKind::kCheckpointSave},
    {"torch/serialization.py", "_legacy_save", "", FrameKind::kCheckpointSave},
    {"torch/serialization.py", "", "write_end_of_file(", FrameKind::kCheckpointSave},
    {"torch/serialization.py", "", "PyTorchFileWriter(", FrameKind::kCheckpointSave},
    {"torch/distributed/checkpoint/state_dict_saver.py", "", "", FrameKind::kCheckpointSave},
    {"torch/distributed/checkpoint/", "write_data", "", FrameKind::kCheckpointSave},
    {"torch/distributed/checkpoint/", "_write_data", "", FrameKind::kCheckpointSave},
    {"torch/distributed/checkpoint/", "_write_item", "", FrameKind::kCheckpointSave},
    {"torch/distributed/checkpoint/", "_write_files_from_queue", "", FrameKind::kCheckpointSave},
    {"torch/distributed/checkpoint/", "finish_checkpoint", "", FrameKind::kCheckpointSave},
    {"torch/distributed/checkpoint/", "finish", "", FrameKind::kCheckpointSave},
    {"safetensors/", "", "serialize_file(", FrameKind::kCheckpointSave},
    {"safetensors/", "", "serialize(", FrameKind::kCheckpointSave},
    {"orbax/checkpoint/", "restore", "", FrameKind::kCheckpointLoad},
    {"orbax/checkpoint/", "_restore", "", FrameKind::kCheckpointLoad},
    {"orbax/checkpoint/", "deserialize", "", FrameKind::kCheckpointLoad},
    {"orbax/checkpoint/", "save", "", FrameKind::kCheckpointSave},
    {"orbax/checkpoint/", "_save", "", FrameKind::kCheckpointSave},
    {"orbax/checkpoint/", "async_save", "", FrameKind::kCheckpointSave},
    {"orbax/checkpoint/", "serialize", "", FrameKind::kCheckpointSave},
    {"orbax/checkpoint/", "finalize", "", FrameKind::kCheckpointSave},
    {"orbax/checkpoint/", "check_for_errors", "", FrameKind::kCheckpointSave},
    {"orbax/checkpoint/", "wait_until_finished", "", FrameKind::kCheckpointSave},
    {"array_serialization/", "async_serialize", "", FrameKind::kCheckpointSave},
    {"tensorflow/python/checkpoint/", "save", "", FrameKind::kCheckpointSave},
    {"", "_save_optimizer_and_scheduler", "", FrameKind::kCheckpointSave},
    {"", "_save_zero_checkpoint", "", FrameKind::kCheckpointSave},
    {"", "save_accelerator_state", "", FrameKind::kCheckpointSave},
    {"", "", "torch.save(", FrameKind::kCheckpointSave},
    {"", "", "save_pretrained(", FrameKind::kCheckpointSave},
    {"", "", "save_checkpoint(", FrameKind::kCheckpointSave},

    {"transformers/modeling_utils.py", "", "", FrameKind::kAssetLoad},
    {"transformers/utils/hub.py", "", "", FrameKind::kAssetLoad},
    {"transformers/configuration_utils.py", "get_config_dict", "", FrameKind::kAssetLoad},
    {"transformers/configuration_utils.py", "_get_config_dict", "", FrameKind::kAssetLoad},
    {"transformers/tokenization_utils_base.py", "_from_pretrained", "", FrameKind::kAssetLoad},
    {"huggingface_hub/", "", "", FrameKind::kAssetLoad},
    {"torch/hub.py", "", "", FrameKind::kAssetLoad},
    {"", "snapshot_download", "", FrameKind::kAssetLoad},
    {"", "hf_hub_download", "", FrameKind::kAssetLoad},
    {"", "cached_file", "", FrameKind::kAssetLoad},
    {"", "from_pretrained", "", FrameKind::kAssetLoad},

    {"", "load_state_dict", "", FrameKind::kCheckpointLoad},
    {"", "load_checkpoint", "", FrameKind::kCheckpointLoad},
    {"", "_load_checkpoint", "", FrameKind::kCheckpointLoad},
    {"", "restore_checkpoint", "", FrameKind::kCheckpointLoad},
    {"", "resume_from_checkpoint", "", FrameKind::kCheckpointLoad},
    {"", "_load_from_checkpoint", "", FrameKind::kCheckpointLoad},
    {"", "load_from_checkpoint", "", FrameKind::kCheckpointLoad},
    {"", "_load_optimizer_and_scheduler", "", FrameKind::kCheckpointLoad},
    {"", "_load_rng_state", "", FrameKind::kCheckpointLoad},
    {"", "load_state", "", FrameKind::kCheckpointLoad},
    {"", "get_checkpoint_path", "", FrameKind::kCheckpointLoad},
    {"", "restore", "", FrameKind::kCheckpointLoad},
    {"deepspeed/checkpoint/", "", "", FrameKind::kCheckpointLoad},
    {"torch/distributed/checkpoint/", "", "", FrameKind::kCheckpointLoad},
    {"", "", "load_state_dict(", FrameKind::kCheckpointLoad},
    {"", "", "load_checkpoint(", FrameKind::kCheckpointLoad},

    {"argparse.py", "", "", FrameKind::kConfig},
    {"transformers/hf_argparser.py", "", "", FrameKind::kConfig},
    {"transformers/training_args", "", "", FrameKind::kConfig},
    {"transformers/integrations/", "get_reporting_integration_callbacks", "", FrameKind::kConfig},
    {"omegaconf/", "", "", FrameKind::kConfig},
    {"hydra/_internal/config", "", "", FrameKind::kConfig},
    {"hydra/_internal/instantiate", "", "", FrameKind::kConfig},
    {"/yaml/", "", "", FrameKind::kConfig},
    {"pydantic", "", "", FrameKind::kConfig},
    {"configparser.py", "", "", FrameKind::kConfig},
    {"jsonargparse/", "", "", FrameKind::kConfig},
    {"peft/", "", "", FrameKind::kConfig},
    {"bitsandbytes/", "", "", FrameKind::kConfig},
    {"", "parse_args", "", FrameKind::kConfig},
    {"", "validate_args", "", FrameKind::kConfig},
    {"", "load_config", "", FrameKind::kConfig},
    {"", "get_config", "", FrameKind::kConfig},
    {"", "__post_init__", "", FrameKind::kConfig},

    {"site-packages/datasets/", "", "", FrameKind::kDataset},
    {"dist-packages/datasets/", "", "", FrameKind::kDataset},
    {"pyarrow/", "", "", FrameKind::kDataset},
    {"pandas/", "", "", FrameKind::kDataset},
    {"PIL/", "", "", FrameKind::kDataset},
    {"torchvision/datasets/", "", "", FrameKind::kDataset},
    {"torchaudio/datasets/", "", "", FrameKind::kDataset},
    {"webdataset/", "", "", FrameKind::kDataset},
    {"torch/utils/data/_utils/collate.py", "", "", FrameKind::kDataset},
    {"torch/utils/data/dataset.py", "", "", FrameKind::kDataset},
    {"transformers/data/data_collator.py", "", "", FrameKind::kDataset},
    {"", "load_dataset", "", FrameKind::kDataset},
    {"", "load_from_disk", "", FrameKind::kDataset},
    {"", "collate_fn", "", FrameKind::kDataset},
    {"", "tokenize_function", "", FrameKind::kDataset},
    {"", "_prepare_dataset", "", FrameKind::kDataset},
    {"torch/utils/data/sampler.py", "", "", FrameKind::kConfig},
    {"torch/utils/data/", "", "", FrameKind::kDataLoader},
    {"multiprocessing/queues.py", "", "", FrameKind::kDataLoader},
    {"multiprocessing/connection.py", "", "", FrameKind::kDataLoader},

    {"torch/autograd/", "", "", FrameKind::kTrainStep},
    {"", "backward", "", FrameKind::kTrainStep},
    {"torch/optim/", "step", "", FrameKind::kTrainStep},
    {"", "training_step", "", FrameKind::kTrainStep},
    {"", "train_step", "", FrameKind::kTrainStep},
    {"", "validation_step", "", FrameKind::kTrainStep},
    {"", "prediction_step", "", FrameKind::kTrainStep},
    {"", "forward", "", FrameKind::kTrainStep},
    {"", "compute_loss", "", FrameKind::kTrainStep},
    {"torch/nn/modules/", "", "", FrameKind::kTrainStep},
    {"torch/nn/functional.py", "", "", FrameKind::kTrainStep},
    {"", "_inner_training_loop", "", FrameKind::kTrainStep},
    {"", "train_one_epoch", "", FrameKind::kTrainStep},
    {"", "train_epoch", "", FrameKind::kTrainStep},
    {"", "update_actor", "", FrameKind::kTrainStep},
};

// Names a user's own code gives to the places above: substrings of the function or the file's last
// component.
struct HintRow {
  std::string_view part;
  bool in_function;
  FrameKind kind;
};

constexpr HintRow kHints[] = {
    {"checkpoint", true, FrameKind::kCheckpointLoad},
    {"resume", true, FrameKind::kCheckpointLoad},
    {"collate", true, FrameKind::kDataset},
    {"dataset", true, FrameKind::kDataset},
    {"dataloader", true, FrameKind::kDataset},
    {"load_data", true, FrameKind::kDataset},
    {"read_data", true, FrameKind::kDataset},
    {"tokeniz", true, FrameKind::kDataset},
    {"preprocess", true, FrameKind::kDataset},
    {"config", true, FrameKind::kConfig},
    {"argument", true, FrameKind::kConfig},
    {"load_model", true, FrameKind::kAssetLoad},
    {"dataset", false, FrameKind::kDataset},
    {"dataloader", false, FrameKind::kDataset},
    {"preprocess", false, FrameKind::kDataset},
    {"data_utils", false, FrameKind::kDataset},
    {"/data/", false, FrameKind::kDataset},
    {"datamodule", false, FrameKind::kDataset},
    {"config", false, FrameKind::kConfig},
    {"arguments", false, FrameKind::kConfig},
};

constexpr std::string_view kLibraryPaths[] = {"site-packages", "dist-packages", "lib/python",
                                              "<frozen", "python/ray/"};

bool BeginsImport(std::string_view code) {
  return code.starts_with("import ") || (code.starts_with("from ") && Contains(code, " import "));
}

// "/data/" is a package of the program's where it holds the file itself; a disk of that name holds
// everybody's home.
bool InDataPackage(std::string_view file) {
  const size_t slash = file.rfind('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view folder = file.substr(0, slash + 1);
  return folder.size() > 6 && folder.ends_with("/data/");
}

FrameKind HintedKind(const Frame& frame) {
  if (frame.function == "__getitem__") return FrameKind::kDataset;
  for (const HintRow& row : kHints) {
    const bool fits = row.part == "/data/"
                          ? InDataPackage(frame.file)
                          : Contains(row.in_function ? frame.function : frame.file, row.part);
    if (fits) {
      const bool saves = row.kind == FrameKind::kCheckpointLoad && Contains(frame.function, "save");
      return saves ? FrameKind::kCheckpointSave : row.kind;
    }
  }
  return FrameKind::kUnknown;
}

struct MessageRow {
  std::string_view text;
  FrameKind kind;
};

constexpr MessageRow kMessages[] = {
    {"Error(s) in loading state_dict for ", FrameKind::kCheckpointLoad},
    {"size mismatch for ", FrameKind::kCheckpointLoad},
    {"Missing key(s) in state_dict", FrameKind::kCheckpointLoad},
    {"Unexpected key(s) in state_dict", FrameKind::kCheckpointLoad},
    {"PytorchStreamReader failed", FrameKind::kCheckpointLoad},
    {"invalid header or archive is corrupted", FrameKind::kCheckpointLoad},
    {"find a valid checkpoint at", FrameKind::kCheckpointLoad},
    {"No valid checkpoint", FrameKind::kCheckpointLoad},
    {"checkpointvalue",
     FrameKind::kCheckpointLoad},  // Megatron's scheduler compares settings with the checkpoint's
    {"PytorchStreamWriter failed", FrameKind::kCheckpointSave},
    {"Error while serializing: ", FrameKind::kCheckpointSave},  // safetensors
    {"unexpected keyword argument", FrameKind::kConfig},
    {"does not appear to have a file named", FrameKind::kAssetLoad},
    {"is not a valid model identifier", FrameKind::kAssetLoad},
    {"Repository Not Found", FrameKind::kAssetLoad},
    {"gated repo", FrameKind::kAssetLoad},
    {"num_samples should be a positive integer", FrameKind::kDataset},
};

// A library's own training loop on the stack: its dialect is known, so steps that it made would
// have been printed.
struct TrainerRow {
  std::string_view path;
  std::string_view framework;
};
constexpr TrainerRow kTrainers[] = {
    {"/transformers/trainer.py", "hf_trainer"},   {"/pytorch_lightning/trainer/", "lightning"},
    {"/lightning/pytorch/trainer/", "lightning"}, {"/keras/src/trainers/", "keras"},
    {"/keras/engine/training.py", "keras"},       {"/megatron/training", "megatron"},
    {"/torchtitan/train.py", "torchtitan"},
};

using Rows = std::bitset<std::size(kTelling)>;

constexpr size_t kRows = std::size(kTelling);

// What a frame's path holds of the tables' words, found in one pass.
struct PathWords {
  Rows rows;         // of kTelling whose path fits
  int trainer = -1;  // row of kTrainers
  bool library = false;
};

class WordTables {
 public:
  WordTables()
      : files_(FileLiterals(), Scanner::Case::kSensitive),
        codes_(CodeLiterals(), Scanner::Case::kSensitive) {
    for (size_t row = 0; row < kRows; ++row) {
      any_file_[row] = kTelling[row].file.empty();
      any_code_[row] = kTelling[row].code.empty();
      if (kTelling[row].function.empty()) {
        any_function_.set(row);
      } else {
        functions_[kTelling[row].function].set(row);
      }
    }
  }

  PathWords ReadPath(std::string_view file) const {
    PathWords words;
    files_.Scan(file, [&words](uint32_t row, size_t) {
      if (row < kTrainer) {
        words.rows.set(row);
      } else if (row < kLibrary) {
        words.trainer = static_cast<int>(row - kTrainer);
      } else {
        words.library = true;
      }
      return true;
    });
    words.library = words.library || file.starts_with("<");
    return words;
  }

  // Rows of kTelling whose source line fits.
  Rows ReadCode(std::string_view code) const {
    Rows rows;
    codes_.Scan(code, [&rows](uint32_t row, size_t) {
      rows.set(row);
      return true;
    });
    return rows;
  }

  // Rows of kTelling that fit the frame in all that they name.
  Rows Fitting(const Frame& frame, const PathWords& path) const {
    Rows rows = any_function_;
    if (const auto named = functions_.find(LastComponent(frame.function));
        named != functions_.end())
      rows |= named->second;
    rows &= any_file_ | path.rows;
    return rows.none() ? rows : rows & (any_code_ | ReadCode(frame.code));
  }

 private:
  static constexpr uint32_t kTrainer = kRows;
  static constexpr uint32_t kLibrary = kTrainer + std::size(kTrainers);

  static std::vector<Scanner::Literal> FileLiterals() {
    std::vector<Scanner::Literal> literals;
    for (uint32_t row = 0; row < kRows; ++row) {
      if (!kTelling[row].file.empty()) literals.push_back({kTelling[row].file, row});
    }
    for (uint32_t row = 0; row < std::size(kTrainers); ++row)
      literals.push_back({kTrainers[row].path, kTrainer + row});
    for (const std::string_view path : kLibraryPaths) literals.push_back({path, kLibrary});
    return literals;
  }
  static std::vector<Scanner::Literal> CodeLiterals() {
    std::vector<Scanner::Literal> literals;
    for (uint32_t row = 0; row < kRows; ++row) {
      if (!kTelling[row].code.empty()) literals.push_back({kTelling[row].code, row});
    }
    return literals;
  }

  Scanner files_;
  Scanner codes_;
  Rows any_file_;  // rows that name no path
  Rows any_code_;
  Rows any_function_;
  std::unordered_map<std::string_view, Rows> functions_;
};

const WordTables& SharedTables() {
  static const WordTables tables;
  return tables;
}

FrameKind TellingKind(const Frame& frame, const PathWords& path) {
  if (BeginsImport(frame.code)) return FrameKind::kImport;
  const Rows rows = SharedTables().Fitting(frame, path);
  return rows.any() ? kTelling[rows._Find_first()].kind : FrameKind::kUnknown;  // libstdc++'s
}

}  // namespace

FrameKind FrameKindOfMessage(std::string_view type, std::string_view message) {
  const std::string_view last = LastComponent(type);
  if (last == "ModuleNotFoundError" || last == "ImportError") return FrameKind::kImport;
  for (const MessageRow& row : kMessages) {
    if (Contains(message, row.text)) return row.kind;
  }
  return FrameKind::kUnknown;
}

void PlaceFrames(std::span<const Frame* const> frames, Incident& incident) {
  if (frames.empty()) return;
  const WordTables& tables = SharedTables();
  const Frame* own = nullptr;        // the innermost frame of the program's own
  int trainer = -1;                  // of the outermost frame that is in one
  const Frame* outermost = nullptr;  // of the program's own
  bool modules = true;               // the program was still being loaded
  PathWords words;
  for (size_t i = frames.size(); i-- > 0;) {
    const Frame& frame = *frames[i];
    // A stack goes through the same few files many times.
    const auto* const before = i + 1 < frames.size() ? frames[i + 1] : nullptr;
    if (before == nullptr || before->file != frame.file) words = tables.ReadPath(frame.file);
    if (words.trainer >= 0) trainer = words.trainer;
    if (incident.frame == FrameKind::kUnknown) incident.frame = TellingKind(frame, words);
    if (incident.frame == FrameKind::kUnknown && !words.library) incident.frame = HintedKind(frame);
    if (own == nullptr && !words.library) own = &frame;
    if (!words.library && !frame.file.starts_with("<frozen")) {
      outermost = &frame;
      modules = modules && frame.function == "<module>";
    }
  }
  if (trainer >= 0) AddField(incident, "trainer", kTrainers[trainer].framework);
  NoteUncaught(frames.front()->function, incident);
  // A program imports at its top what it needs, before it does anything else.
  constexpr int32_t kTop = 40;  // lines
  if (modules && outermost != nullptr && incident.frame == FrameKind::kImport &&
      outermost->line <= kTop && BeginsImport(outermost->code))
    AddField(incident, "at_top", std::to_string(outermost->line));
  const Frame& innermost = *frames.back();
  const Frame& named = own != nullptr ? *own : innermost;
  incident.file = named.file + ":" + std::to_string(named.line);
  incident.function = named.function;
  // The library's line only where the exception has no words of its own.
  AddQuote(incident, QuoteRole::kFrame, named.code_line, named.code_offset);
  if (&innermost != &named && incident.message.empty())
    AddQuote(incident, QuoteRole::kFrame, innermost.code_line, innermost.code_offset);
  // A constructor that refuses its arguments.
  if (incident.frame == FrameKind::kUnknown && innermost.function == "__init__")
    incident.frame = FrameKind::kConfig;
}

}  // namespace rankscope::logs
