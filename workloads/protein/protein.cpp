#include "workloads/protein/protein.h"

#include <fmt/format.h>

#include <cmath>

#include "unidle/base/error.h"
#include "unidle/base/files.h"
#include "unidle/data/random.h"
#include "workloads/common/package_files.h"
#include "workloads/common/whole_folder.h"
#include "workloads/protein/model.h"
#include "workloads/protein/peptides.h"
#include "workloads/protein/structure.h"

namespace unidle::workloads::protein {

namespace {

constexpr double kHeldOut = 0.1;
constexpr int kMostHeldOut = 128;  // without a cache every validation predicts their structures too
constexpr std::int64_t kGenerated = 4000;
constexpr std::int64_t kValidationStep = 250;  // of the diffusion: half of the signal remains
constexpr const char* kPackageFiles[] = {"AMPvsUniProt.csv", "ACP_CancPPD_vs_Random.csv", "ACP_CancPPD_vs_TM.csv",
                                         "AMPvsTMset.csv"};

std::vector<std::string> read_peptides(const train::Config& config, const char* name) {
  const std::filesystem::path path = train::data_folder(config) / name;
  if (!std::filesystem::is_regular_file(path)) {
    throw Error(ErrorCode::kMissing, path.string(), "there are no peptides yet",
                "make them: " + config.prepare_command());
  }
  return peptides_of(read_file(path));
}

class Peptides final : public train::Workload {
 public:
  Peptides(const train::Config& config, at::Device device)
      : structures_(config),
        train_(read_peptides(config, "train.txt"), structures_, config.integer("data.group"), false,
               device.is_cuda() ? kLengthsOfGpu : 1),
        validation_(read_peptides(config, "validation.txt"), structures_, 1, true),
        model_(config.integer("model.width"), config.integer("model.depth"), config.flag("grad.checkpointing")) {
    check(config);
    model_.to(device);
  }

  const data::Source& source() const override { return train_; }
  std::vector<train::FieldUse> field_uses() const override { return {5, train::FieldUse::kRaw}; }
  torch::nn::Module& model() override { return model_; }

  at::Tensor loss(const std::vector<at::Tensor>& fields) override {
    const at::Tensor& length = fields[kLength];
    const at::Tensor step = at::randint(1, kSteps + 1, length.sizes(), length.options());
    const Model::Parts parts = denoise(fields, step, at::randn(noise_shape(fields), fields[kAngles].options()));
    return ((parts.error + parts.surprise) * parts.real).sum() / parts.real.sum();
  }

  const data::Source* held_out() const override { return &validation_; }
  /// Uses one step and the same noise at each position of a batch, so that validations are comparable.
  at::Tensor metric_sums(const std::vector<at::Tensor>& fields) override {
    const at::Tensor step = at::full_like(fields[kLength], kValidationStep);
    const auto shape = noise_shape(fields);
    const at::Tensor wave = at::arange(shape[1] * shape[2], fields[kAngles].options()) * 12.9898;
    const at::Tensor noise = (wave.sin() * 43758.5453).frac() * 3.4641;  // mean 0, deviation about 1
    const Model::Parts parts = denoise(fields, step, noise.view({1, shape[1], shape[2]}).expand(shape));
    return at::stack({(parts.error * parts.real).sum(), (parts.surprise * parts.real).sum(), parts.real.sum()});
  }
  std::map<std::string, double> metrics(const std::vector<double>& sums) const override {
    return {{"denoising_error", sums[0] / sums[2]}, {"token_surprise", sums[1] / sums[2]}};
  }

  train::Effective effective() const override {
    return {{"model.width", std::to_string(model_.width())},
            {"model.depth", std::to_string(model_.depth())},
            {"data.group", std::to_string(train_.samples_per_item())},
            {"cache.features", structures_.mode()},
            {"grad.checkpointing", model_.recomputes_layers() ? "true" : "false"}};
  }

 private:
  void check(const train::Config& config) const {
    if (config.integer("model.width") % (2 * kHeads) != 0) {
      throw Error(ErrorCode::kInput, config.location("model.width") + ": model.width",
                  fmt::format("expected a multiple of {}", 2 * kHeads));
    }
  }
  std::vector<std::int64_t> noise_shape(const std::vector<at::Tensor>& fields) const {
    return {fields[kTokens].size(0), fields[kTokens].size(1), model_.width()};
  }
  Model::Parts denoise(const std::vector<at::Tensor>& fields, const at::Tensor& step, const at::Tensor& noise) {
    return model_.denoise({fields[kTokens], fields[kLength], fields[kResidues], fields[kAngles], fields[kPairs]}, step,
                          noise);
  }

  Structures structures_;
  PeptideSource train_;
  PeptideSource validation_;
  Model model_;
};

/// Random letters; only the lengths are distributed as in real data.
std::vector<std::string> generate(std::int64_t count, std::uint64_t seed) {
  std::vector<std::string> peptides;
  for (std::int64_t i = 0; i < count; ++i) {
    data::CounterRandom random({seed, static_cast<std::uint64_t>(i)});
    std::string peptide(kShortest + random.below(kLongest - kShortest + 1), ' ');
    for (char& residue : peptide) {
      residue = kAminoAcids[random.below(static_cast<std::uint32_t>(kAminoAcids.size()))];
    }
    peptides.push_back(std::move(peptide));
  }
  return peptides;
}

struct Found {
  std::vector<std::string> peptides;
  std::string from;
  std::int64_t left_out = 0;  // lines of a source given by the user
};

Found find_peptides(const train::Config& config) {
  const std::string& source = config.text("prepare.source");
  const std::int64_t wanted = config.integer("prepare.samples");
  if (!source.empty() && source != "generated") {
    Found read = {{}, "from " + source};
    read.peptides = peptides_of(read_file(source), &read.left_out);
    return read;
  }
  const auto found = find_package_file(std::filesystem::path("modlamp/data") / kPackageFiles[0]);
  if (source == "generated" || !found) {
    return {generate(wanted > 0 ? wanted : kGenerated, static_cast<std::uint64_t>(config.integer("seed"))),
            "generated"};
  }
  std::string text;
  for (const char* name : kPackageFiles) {
    text += read_file(found->parent_path() / name) + "\n";
  }
  return {peptides_of(text), "from " + found->parent_path().string()};
}

bool is_held_out(const std::string& peptide) {
  std::uint64_t hash = 0;
  for (const char residue : peptide) {
    hash = data::hash_words({hash, static_cast<std::uint64_t>(residue)});
  }
  return static_cast<double>(hash >> 11) * 0x1p-53 < kHeldOut;
}

std::string prepare(const train::Config& config) {
  Found found = find_peptides(config);
  if (const std::int64_t most = config.integer("prepare.samples");
      most > 0 && static_cast<std::int64_t>(found.peptides.size()) > most) {
    found.peptides.resize(static_cast<std::size_t>(most));
  }
  std::string training;
  std::string validation;
  int held_out = 0;
  for (const std::string& peptide : found.peptides) {
    const bool held = held_out < kMostHeldOut && is_held_out(peptide);
    held_out += held ? 1 : 0;
    (held ? validation : training) += peptide + "\n";
  }
  if (training.empty() || validation.empty()) {
    throw Error(ErrorCode::kInput, found.from,
                fmt::format("holds {} peptides of {} to {} residues; expected more", found.peptides.size(), kShortest,
                            kLongest));
  }
  const std::filesystem::path folder = train::data_folder(config);
  make_whole_folder(folder, [&](const std::filesystem::path& made) {
    write_file_atomic(made / "train.txt", training);
    write_file_atomic(made / "validation.txt", validation);
  });
  Structures structures(config);
  const std::uint64_t computed = structures.compute_ahead(found.peptides);
  const std::string others = found.left_out > 0
                                 ? fmt::format(" ({} of its lines are no peptide of {} to {} residues, or come again)",
                                               found.left_out, kShortest, kLongest)
                                 : "";
  return fmt::format("{} peptides in {}, {}{}; features of {} computed", found.peptides.size(), folder.string(),
                     found.from, others, computed);
}

}  // namespace

const train::WorkloadKind& protein() {
  static const train::WorkloadKind kKind = {
      .traits = traits::the_workload("protein"),
      .open = [](const train::Config& config, at::Device device) -> std::unique_ptr<train::Workload> {
        return std::make_unique<Peptides>(config, device);
      },
      .prepare = prepare,
  };
  return kKind;
}

}  // namespace unidle::workloads::protein
