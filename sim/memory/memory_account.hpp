#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/id.hpp"
#include "memory/held_tensor.hpp"
#include "operations/operation.hpp"
#include "passes/pass.hpp"
#include "plan/plan.hpp"
#include "platform/device.hpp"
#include "platform/software_profile.hpp"
#include "units/quantity.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// The verdict of the capacity check, which knows how far its account may be off; the gravest of a plan's stages is the plan's.
enum class MemoryVerdict {
  fits,  ///< even if more is reserved than predicted, by as much as it is in one run of twenty of the stack (`reserved_scatter`)
  /// By less than that, or only when the allocator gives its cache back.
  at_risk,
  /// The counted memory fits, but more is held than is counted: ZeRO 3, for which no account was compared with readings (docs/memory.md).
  lower_bound,
  does_not_fit,  ///< StageMemory::required > usable
};
/// When the allocator's maxima are read.
enum class MemoryReading {
  steady_state,  ///< after several iterations: what decides whether a run fits
  first_step,    ///< in the first iteration, before the optimizer's moments exist (some logs print
                 ///< only this)
};

/// Memory of one rank of one stage, in bytes, added up from a list of tensors. What is allocated is the sum of those at the peak, the moment
/// at which they are the most; the first five figures are its lines.
struct StageMemory {
  StageId stage;
  double parameters = 0;            ///< per rank
  std::vector<HeldTensor> tensors;  ///< of all moments
  Moment peak = Moment::backward;
  Bytes weights{}, gradients{}, optimizer{}, activations{}, buffers{};
  /// The most ever in flight; `activations` counts those held at the peak. A model chunk of an interleaved schedule counts as its fraction of
  /// a microbatch.
  double microbatches_in_flight = 0;
  /// Memory of one more microbatch in flight, all chunks of the stage (the timeline's memory
  /// counter).
  Bytes activation_per_microbatch{};
  Bytes allocated{};  ///< torch.cuda.max_memory_allocated
  Bytes pool{};       ///< before slack
  Bytes reserved{};   ///< torch.cuda.max_memory_reserved
  /// The same since the backward passes: less where the allocator returned its cache before.
  Bytes reserved_in_step{};
  /// True if the allocator was simulated, which returns its cache before it reserves more than the device has: memory reserved beyond that
  /// is memory that the step cannot do without.
  bool is_simulated = false;
  Bytes context{};
  /// phi * allocated + context, or the simulated peak if that is too much: what the verdict compares with `usable`
  Bytes required{};
  Bytes total{};   ///< what nvidia-smi shows
  Bytes usable{};  ///< what the device has for the allocator and context
  MemoryVerdict verdict = MemoryVerdict::fits;
  bool is_tight = false;  ///< by its figures at_risk, also where the verdict is graver

  /// Tensors of this kind at the peak.
  Bytes at_peak(HeldKind kind) const;
  /// The largest first.
  std::vector<HeldTensor> tensors_at_peak() const;
};

/// The memory of every stage, and the verdict for the plan.
struct MemoryAccount {
  std::vector<StageMemory> stages;
  Bytes capacity{};     ///< as sold, of the worst stage's device
  Bytes usable{};       ///< of it: what verdicts, texts and pages set the use against
  Bytes max_total{};    ///< of all stages
  StageId worst_stage;  ///< the one with the least room, or that misses by the most
  bool fits = true;
  MemoryVerdict verdict = MemoryVerdict::fits;
  std::string advice;  ///< what would make it fit; empty when it does, or nobody asked
};

struct MemoryCorrection;

/// Inputs of the account. `in_flight` gives the largest number of microbatches of the whole
/// stage whose forward has started and whose backward has not ended, by stage, as
/// count_in_flight() counts them in the schedule's orders; `in_flight_with_gradients` the
/// same once the first backward has made gradients.
struct MemoryInputs {
  const Transformer* model = nullptr;
  const Plan* plan = nullptr;
  const SoftwareProfile* software = nullptr;
  std::vector<const Device*> device_of_stage;
  std::vector<double> in_flight;
  std::vector<double> in_flight_with_gradients;
  /// By stage: whether the GPU works off a microbatch's kernels faster than the host launches them. Empty: of none.
  std::vector<bool> is_launch_bound;
  MemoryReading reading = MemoryReading::steady_state;
  bool has_host =
      false;  ///< whether advice may ask for offloading: the platform says what the host takes
  /// Trained on the user's runs (memory/memory_correction.hpp); speaks where it was better on runs held out. Null: none.
  const MemoryCorrection* correction = nullptr;
  /// Work of the stages of a role, filled by account_stage(): stages that are alike share it. Of this plan alone.
  struct KnownRole {
    ChunkRole role;
    std::shared_ptr<const ChunkOperations> operations;
  };
  mutable std::vector<KnownRole> known_roles;
};

/// Bytes per rank of one stage. Formulas and their evidence: docs/memory.md.
StageMemory account_stage(const MemoryInputs& inputs, StageId stage);

/// Bytes per rank of every stage, and the verdict. Without advice, which takes longer to find (memory/memory_advice.hpp).
MemoryAccount account_memory(const MemoryInputs& inputs);

/// States of a rank that keeps them of so many parameters.
std::vector<HeldTensor> state_tensors(const Training& training, const SoftwareProfile& software,
                                      const ParameterCounts& parameters, MemoryReading reading);

}  // namespace windtunnel
