// Reads a process's rank from the environment that its launcher sets.
#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "unidle/base/error.h"
#include "unidle/base/log.h"
#include "unidle/base/numbers.h"
#include "unidle/train/ranks/ranks.h"

namespace unidle::train {

namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

int number_of(const char* name, int least, int most) {
  const std::optional<std::string> text = variable(name);
  const auto value = text ? parse_number<int>(*text) : std::nullopt;
  if (!value || *value < least || *value > most) {
    throw Error(ErrorCode::kUsage, name,
                fmt::format("expected a whole number from {} to {}, found '{}'", least, most, text.value_or("")),
                "torchrun and srun set it; unset RANK and WORLD_SIZE to train alone");
  }
  return *value;
}

constexpr int kMostRanks = 1 << 20;

RankPlace from_torchrun() {
  RankPlace place;
  place.world = number_of("WORLD_SIZE", 1, kMostRanks);
  place.rank = number_of("RANK", 0, place.world - 1);
  place.local_world = variable("LOCAL_WORLD_SIZE") ? number_of("LOCAL_WORLD_SIZE", 1, place.world) : 1;
  place.local_rank = variable("LOCAL_RANK") ? number_of("LOCAL_RANK", 0, place.local_world - 1) : 0;
  place.port = static_cast<std::uint16_t>(number_of("MASTER_PORT", 1, std::numeric_limits<std::uint16_t>::max()));
  place.address = variable("MASTER_ADDR").value_or("");
  if (place.address.empty()) {
    throw Error(ErrorCode::kUsage, "MASTER_ADDR", "expected the address of the first process, found nothing",
                "torchrun sets it");
  }
  // The same test as in torch.distributed.rendezvous.
  place.store_exists = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.prefix = place.store_exists
                     ? fmt::format("/worker/attempt_{}", variable("TORCHELASTIC_RESTART_COUNT").value_or("0"))
                     : "/unidle";
  return place;
}

RankPlace from_slurm() {
  constexpr int kFirstPort = 20000;
  constexpr std::int64_t kPorts = 20000;
  RankPlace place;
  place.world = number_of("SLURM_STEP_NUM_TASKS", 1, kMostRanks);
  place.rank = number_of("SLURM_PROCID", 0, place.world - 1);
  place.local_rank = variable("SLURM_LOCALID") ? number_of("SLURM_LOCALID", 0, place.world - 1) : 0;
  // "2(x3),1": tasks per node; which entry is this node's is unknown, so the largest counts.
  const auto per_node =
      parse_number<int>(variable("SLURM_STEP_TASKS_PER_NODE")
                            .value_or("1")
                            .substr(0, variable("SLURM_STEP_TASKS_PER_NODE").value_or("1").find_first_of("(,")));
  place.local_world = std::max(per_node.value_or(1), place.local_rank + 1);
  place.address = variable("MASTER_ADDR").value_or(first_host(variable("SLURM_STEP_NODELIST").value_or("localhost")));
  const auto job = parse_number<std::int64_t>(variable("SLURM_JOB_ID").value_or("0")).value_or(0);
  const auto port = static_cast<std::uint16_t>(kFirstPort + job % kPorts);
  place.port = variable("MASTER_PORT")
                   ? static_cast<std::uint16_t>(number_of("MASTER_PORT", 1, std::numeric_limits<std::uint16_t>::max()))
                   : port;
  place.prefix = fmt::format("/unidle/step_{}", variable("SLURM_STEP_ID").value_or("0"));
  return place;
}

}  // namespace

std::optional<RankPlace> RankPlace::from_environment() {
  std::optional<RankPlace> place;
  if (variable("RANK") && variable("WORLD_SIZE")) {
    place = from_torchrun();
  } else if (variable("SLURM_STEP_NUM_TASKS") && variable("SLURM_PROCID")) {
    place = from_slurm();
  } else if (variable("RANK") || variable("WORLD_SIZE").value_or("1") != "1") {
    spdlog::warn("{} is set without {}: this process trains alone", variable("RANK") ? "RANK" : "WORLD_SIZE",
                 variable("RANK") ? "WORLD_SIZE" : "RANK");
  }
  return place && place->world > 1 ? place : std::nullopt;
}

std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of("[,");
  if (end == std::string::npos || list[end] == ',') {
    return list.substr(0, end);
  }
  const std::size_t number_end = list.find_first_of("-,]", end + 1);
  return list.substr(0, end) + list.substr(end + 1, number_end == std::string::npos ? 0 : number_end - end - 1);
}

}  // namespace unidle::train
