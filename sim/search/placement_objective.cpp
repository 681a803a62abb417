#include "search/placement_objective.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

constexpr BytesPerSecond no_limit{std::numeric_limits<double>::infinity()};

std::vector<int> own_slots(const Scenario& scenario) {
  std::vector<int> slots(scenario.plan.devices.size());
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

}  // namespace

PlacementObjective::PlacementObjective(const Scenario& scenario)
    : PlacementObjective(scenario, own_slots(scenario)) {}

PlacementObjective::PlacementObjective(const Scenario& scenario, std::vector<int> slots)
    : tables_(std::make_shared<PlacementTables>(scenario)) {
  const Parallel& parallel = scenario.plan.parallel;
  pipeline_ = parallel.pipeline;
  data_ = parallel.replicas();
  parts_ = scenario.plan.nodes_per_tensor_group;
  const bool reduces = gradient_reduction(scenario.plan) != GradientReduction::none;
  has_buckets_ = reduces_by_chunk(scenario.plan);
  has_rings_ = reduces && !has_buckets_;
  has_gather_ = reduces && parallel.zero_stage > 0;
  ties_embeddings_ = synchronises_embedding(scenario.model, scenario.plan);
  const ChunkMap map = scenario.plan.chunk_map();
  embedding_stage_ = static_cast<int>(map.first().stage.index());
  head_stage_ = static_cast<int>(map.last().stage.index());
  const auto replicas = static_cast<std::size_t>(data_);
  durations_.assign(
      replicas, std::vector<Seconds>(tables_->layout().size(static_cast<std::size_t>(pipeline_))));
  ends_.assign(replicas, std::vector<Seconds>(static_cast<std::size_t>(pipeline_)));
  dirty_.assign(replicas, 0);
  add_messages();
  add_rings();
  slot_of_ = slots;
  place(slots);
}

void PlacementObjective::place(const std::vector<int>& slots) {
  WT_EXPECT(slots.size() == slot_of_.size());
  std::vector<std::pair<int, int>> changes;
  for (int unit = 0; unit < num_units(); ++unit)
    changes.emplace_back(unit, slots[static_cast<std::size_t>(unit)]);
  move(changes);
}

void PlacementObjective::move(const std::vector<std::pair<int, int>>& changes) {
  undo_.slots.clear();
  undo_.ends.clear();
  undo_.durations.clear();
  undo_.rings.clear();
  undo_.messages.clear();
  undo_.embedding = embedding_;
  undo_.value = value_;
  std::vector<char> stages(static_cast<std::size_t>(pipeline_), 0);
  for (const auto& [unit, slot] : changes) {
    undo_.slots.emplace_back(unit, slot_of(unit));
    slot_of_[static_cast<std::size_t>(unit)] = slot;
    stages[static_cast<std::size_t>(unit / parts_ % pipeline_)] = 1;
  }
  refresh(stages, changes);
}

void PlacementObjective::undo() {
  for (const auto& [unit, slot] : undo_.slots) slot_of_[static_cast<std::size_t>(unit)] = slot;
  // Backwards: a duration that changed twice is the first one again.
  for (auto old = undo_.durations.rbegin(); old != undo_.durations.rend(); ++old)
    durations_[old->replica][old->index] = old->time;
  for (auto& [replica, ends] : undo_.ends) ends_[replica] = std::move(ends);
  for (const std::size_t ring : undo_.rings) rings_[ring].undo();
  for (const std::size_t messages : undo_.messages) messages_[messages].undo();
  embedding_ = undo_.embedding;
  value_ = undo_.value;
  undo_ = Undo{};
  undo_.embedding = embedding_;
  undo_.value = value_;
}

/// Works out again what the moved units touch: their works, the messages of the stages around theirs, their stages' rings.
void PlacementObjective::refresh(const std::vector<char>& stages,
                                 const std::vector<std::pair<int, int>>& units) {
  for (const auto& [unit, slot] : units) {
    const int replica = unit / parts_ / pipeline_, stage = unit / parts_ % pipeline_;
    set_works(replica, stage);
    set_operation_collectives(replica, stage);
  }
  for (int stage = 0; stage < pipeline_; ++stage) {
    for (int channel = 0; channel < num_channels(stage); ++channel)
      if (stages[static_cast<std::size_t>(stage)] != 0 ||
          stages[static_cast<std::size_t>(target(stage, channel))] != 0)
        set_messages(stage, channel);
    if (stages[static_cast<std::size_t>(stage)] == 0) continue;
    for (const AfterPasses which :
         {AfterPasses::gradients, AfterPasses::second_gradients, AfterPasses::parameters})
      follow(ring_of(which, stage));
    if (has_buckets_) set_buckets(stage);
  }
  if (ties_embeddings_ && follow(rings_.size() - 1)) embedding_ = rings_.back().cost().alone();
  refresh_ends();
  value_ = total();
}

/// Of the pipelines whose durations have changed.
void PlacementObjective::refresh_ends() {
  std::vector<std::size_t> replicas;
  std::vector<const std::vector<Seconds>*> pipelines;
  for (std::size_t replica = 0; replica < ends_.size(); ++replica) {
    if (std::exchange(dirty_[replica], 0) == 0) continue;
    replicas.push_back(replica);
    pipelines.push_back(&durations_[replica]);
  }
  std::vector<std::vector<Seconds>> ends = tables_->ends(pipelines);
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    undo_.ends.emplace_back(replicas[i], std::move(ends_[replicas[i]]));
    ends_[replicas[i]] = std::move(ends[i]);
  }
}

void PlacementObjective::set_duration(int replica, std::uint32_t index, Seconds time) {
  const auto r = static_cast<std::size_t>(replica);
  Seconds& duration = durations_[r][index];
  if (duration == time) return;
  undo_.durations.push_back({r, index, duration});
  duration = time;
  dirty_[r] = 1;
}

/// The ranks of a tensor group wait for each other: the slowest part's time.
void PlacementObjective::set_works(int replica, int stage) {
  const auto s = static_cast<std::size_t>(stage);
  for (std::uint32_t row = 0; row < tables_->layout().rows; ++row) {
    Seconds slowest{};
    for (int part = 0; part < parts_; ++part)
      slowest =
          std::max(slowest, tables_->works(s, slot_of(unit(replica, stage, part)))[row].duration);
    set_duration(replica, tables_->layout().work(s, row), slowest);
  }
}

int PlacementObjective::num_channels(int stage) const {
  return static_cast<int>(
      tables_->programs().programs[static_cast<std::size_t>(stage)].targets.size());
}

int PlacementObjective::target(int stage, int channel) const {
  return static_cast<int>(tables_->programs()
                              .programs[static_cast<std::size_t>(stage)]
                              .targets[static_cast<std::size_t>(channel)]
                              .index());
}

/// By stage and channel, each pipeline's parts beside each other.
void PlacementObjective::add_messages() {
  for (int stage = 0; stage < pipeline_; ++stage) {
    first_messages_.push_back(messages_.size());
    for (int channel = 0; channel < num_channels(stage); ++channel) {
      PlacedMessages& messages = messages_.emplace_back();
      for (int replica = 0; replica < data_; ++replica)
        for (int part = 0; part < parts_; ++part)
          messages.add(unit(replica, stage, part), unit(replica, target(stage, channel), part));
    }
  }
}

/// A message takes as long as its slowest part.
void PlacementObjective::set_messages(int stage, int channel) {
  const std::size_t index =
      first_messages_[static_cast<std::size_t>(stage)] + static_cast<std::size_t>(channel);
  if (!messages_[index].follow(*tables_, slot_of_, scratch_)) return;
  undo_.messages.push_back(index);
  const auto flow_of = [&](int replica) {
    return messages_[index].flows().begin() + replica * parts_;
  };
  for (int replica = 0; replica < data_; ++replica) {
    const auto first = flow_of(replica), last = flow_of(replica + 1);
    if (std::none_of(first, last, [](const auto& flow) { return flow.has_changed; })) continue;
    for (std::uint32_t row = 0; row < tables_->layout().messages; ++row) {
      const Bytes bytes = tables_->programs().message_bytes[row];
      Seconds slowest{};
      for (auto flow = first; flow != last; ++flow)
        slowest = std::max(slowest, flow->route.latency + bytes / flow->share);
      set_duration(replica,
                   tables_->layout().message(static_cast<std::size_t>(stage),
                                             static_cast<std::uint32_t>(channel), row),
                   slowest);
    }
  }
}

/// Of passes that are their operations. Of a tensor group across nodes: a ring through its parts, each on its own node; what others take
/// stays as it is in the plan's own placement.
void PlacementObjective::set_operation_collectives(int replica, int stage) {
  const DurationLayout& layout = tables_->layout();
  const auto set = [&](std::uint32_t number, Seconds time) {
    set_duration(replica, layout.collective(static_cast<std::size_t>(stage), number), time);
  };
  const int first = unit(replica, stage, 0);
  for (std::uint32_t number = num_collective_slots(layout.chunks); number < layout.collectives;
       ++number) {
    const Collective* like = tables_->collective(first, number);
    if (like == nullptr) continue;
    const bool is_tensor_ring =
        parts_ > 1 && like->members.size() == static_cast<std::size_t>(parts_) &&
        like->members.back().index() == like->members.front().index() + like->members.size() - 1;
    if (!is_tensor_ring) {
      set(number, tables_->time_alone(*like));
      continue;
    }
    Seconds time = like->fixed;
    for (int part = 0; part < parts_; ++part) {
      const auto route = tables_->route(slot_of(unit(replica, stage, part)),
                                        slot_of(unit(replica, stage, (part + 1) % parts_)));
      BytesPerSecond rate = route.in_node ? route.bandwidth : no_limit;
      for (const auto& link : tables_->links(route)) rate = std::min(rate, link.bandwidth);
      time =
          std::max(time, like->latency + like->flows[static_cast<std::size_t>(part)].bytes / rate);
    }
    set(number, time);
  }
}

/// What the rings of a stage's gradients do: a codec in two parts all-reduces both, sharded or not.
RingWork PlacementObjective::ring_work(int stage) const {
  const int first = unit(0, stage, 0);
  const std::uint32_t second = has_buckets_
                                   ? windtunnel::slot_of(ChunkCollective::bucket_second, 0)
                                   : windtunnel::slot_of(CollectiveSlot::gradient_reduce_second);
  const bool scatters =
      tables_->plan().parallel.zero_stage > 0 && tables_->collective(first, second) == nullptr;
  return scatters ? RingWork::scatter_or_gather : RingWork::all_reduce;
}

/// Through all replicas, one for each part.
PlacedRings PlacementObjective::rings_of_stage(int stage, std::uint32_t number,
                                               RingWork work) const {
  PlacedRings rings;
  for (int part = 0; part < parts_; ++part) {
    std::vector<int> members;
    for (int replica = 0; replica < data_; ++replica) members.push_back(unit(replica, stage, part));
    const Collective* like = tables_->collective(members.front(), number);
    if (like == nullptr) continue;
    rings.add(std::move(members), *like,
              {work, collective_algorithm(tables_->plan().parallel.gradient_ring).steps});
  }
  return rings;
}

/// All pipelines synchronise their first with their last stage at the same time: each for itself, or fused into one ring.
PlacedRings PlacementObjective::embedding_rings() const {
  PlacedRings all;
  for (int part = 0; part < parts_; ++part) {
    std::vector<int> members;
    for (int replica = 0; replica < data_; ++replica) {
      members.push_back(unit(replica, embedding_stage_, part));
      members.push_back(unit(replica, head_stage_, part));
      const Collective* like =
          tables_->collective(members.front(), windtunnel::slot_of(CollectiveSlot::embedding_sync));
      WT_EXPECT(like != nullptr);
      if (members.size() < like->members.size()) continue;
      all.add(std::exchange(members, {}), *like, {RingWork::all_reduce, flat_ring});
    }
  }
  return all;
}

std::size_t PlacementObjective::ring_of(AfterPasses which, int stage) const {
  return static_cast<std::size_t>(which) * static_cast<std::size_t>(pipeline_) +
         static_cast<std::size_t>(stage);
}

std::size_t PlacementObjective::bucket_ring(int stage, int chunk, ChunkCollective which) const {
  const int half = which == ChunkCollective::bucket ? 0 : 1;
  return num_after_passes * static_cast<std::size_t>(pipeline_) +
         static_cast<std::size_t>((stage * tables_->layout().chunks + chunk) * 2 + half);
}

/// In the order of ring_of() and bucket_ring().
void PlacementObjective::add_rings() {
  const auto add = [&](bool exists, int stage, std::uint32_t number, RingWork work) {
    rings_.push_back(exists ? rings_of_stage(stage, number, work) : PlacedRings{});
  };
  using windtunnel::slot_of;
  for (int stage = 0; stage < pipeline_; ++stage)
    add(has_rings_, stage, slot_of(CollectiveSlot::gradient_reduce), ring_work(stage));
  for (int stage = 0; stage < pipeline_; ++stage)
    add(has_rings_, stage, slot_of(CollectiveSlot::gradient_reduce_second), ring_work(stage));
  for (int stage = 0; stage < pipeline_; ++stage)
    add(has_gather_, stage, slot_of(CollectiveSlot::parameter_gather), RingWork::scatter_or_gather);
  for (int stage = 0; stage < pipeline_; ++stage)
    for (int chunk = 0; chunk < tables_->layout().chunks; ++chunk)
      for (const ChunkCollective which : {ChunkCollective::bucket, ChunkCollective::bucket_second})
        add(has_buckets_, stage, slot_of(which, chunk), ring_work(stage));
  rings_.push_back(ties_embeddings_ ? embedding_rings() : PlacedRings{});
}

bool PlacementObjective::follow(std::size_t ring) {
  if (!rings_[ring].follow(*tables_, slot_of_, scratch_)) return false;
  undo_.rings.push_back(ring);
  return true;
}

/// Gradients that are reduced chunk by chunk, bucket after bucket.
void PlacementObjective::set_buckets(int stage) {
  for (int chunk = 0; chunk < tables_->layout().chunks; ++chunk) {
    for (const ChunkCollective which : {ChunkCollective::bucket, ChunkCollective::bucket_second}) {
      const std::size_t ring = bucket_ring(stage, chunk, which);
      if (!follow(ring)) continue;
      for (int replica = 0; replica < data_; ++replica)
        set_duration(replica,
                     tables_->layout().collective(static_cast<std::size_t>(stage),
                                                  windtunnel::slot_of(which, chunk)),
                     rings_[ring].cost().alone());
    }
  }
}

/// When each stage's ring is done, entered at `ends`.
void PlacementObjective::serve(AfterPasses which, std::vector<Seconds>& ends) {
  const auto cost = [&](std::size_t stage) -> const RingCost& {
    return rings_[ring_of(which, static_cast<int>(stage))].cost();
  };
  std::vector<Seconds>& link_time = scratch_.link_time;
  if (link_time.size() < tables_->num_links()) link_time.resize(tables_->num_links());
  std::vector<std::size_t> order(ends.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ends[a] < ends[b]; });
  for (const std::size_t stage : order) {
    const RingCost& ring = cost(stage);
    const Seconds begin = ends[stage] + ring.latency;
    ends[stage] = std::max(ends[stage] + ring.fixed, begin);
    for (const auto& [link, time] : ring.busy) {
      Seconds& free = link_time[link.index()];
      free = std::max(free, begin) + time;
      ends[stage] = std::max(ends[stage], free);
    }
  }
  for (std::size_t stage = 0; stage < ends.size(); ++stage)
    for (const auto& [link, time] : cost(stage).busy) link_time[link.index()] = Seconds{0};
}

Seconds PlacementObjective::total() {
  const auto stages = static_cast<std::size_t>(pipeline_);
  std::vector<Seconds> ends(stages);
  for (const std::vector<Seconds>& of_replica : ends_)
    for (std::size_t s = 0; s < stages; ++s) ends[s] = std::max(ends[s], of_replica[s]);
  const int chunks = tables_->layout().chunks;
  const bool codecs = has_codec_work(tables_->plan().compression);
  const auto codec = [&](CodecRow row) {
    if (codecs) add_slowest(row_of(row, chunks), ends);
  };
  if (has_rings_) {
    codec(CodecRow::encode_reduced);
    serve(AfterPasses::gradients, ends);
    codec(CodecRow::encode_reduced_second);
    serve(AfterPasses::second_gradients, ends);
    codec(CodecRow::decode_reduced);
  }
  if (ties_embeddings_) {
    Seconds& first = ends[static_cast<std::size_t>(embedding_stage_)];
    Seconds& last = ends[static_cast<std::size_t>(head_stage_)];
    first = last = std::max(first, last) + embedding_;
  }
  add_slowest(row_of(DeviceRow::optimizer, chunks), ends);
  if (has_gather_) {
    codec(CodecRow::encode_gathered);
    serve(AfterPasses::parameters, ends);
    codec(CodecRow::decode_gathered);
  }
  add_slowest(row_of(DeviceRow::overhead, chunks), ends);
  return *std::max_element(ends.begin(), ends.end()) * (1.0 + num_misfits());
}

/// What every replica of a stage does once; the ring behind it waits for the slowest.
void PlacementObjective::add_slowest(std::uint16_t row, std::vector<Seconds>& ends) const {
  for (std::size_t s = 0; s < ends.size(); ++s) {
    Seconds slowest{};
    for (const std::vector<Seconds>& durations : durations_)
      slowest = std::max(slowest, durations[tables_->layout().work(s, row)]);
    ends[s] += slowest;
  }
}

/// Units on GPUs whose memory their stage does not fit in, and tensor groups with two of their parts on one node.
int PlacementObjective::num_misfits() const {
  int misfits = 0;
  for (int unit = 0; parts_ > 1 && unit < num_units(); ++unit)
    for (int other = unit + 1; other < unit - unit % parts_ + parts_; ++other)
      if (node_of(slot_of(unit)) == node_of(slot_of(other))) ++misfits;
  if (!tables_->memory_matters()) return misfits;
  for (int unit = 0; unit < num_units(); ++unit) {
    const auto stage = static_cast<std::size_t>(unit / parts_ % pipeline_);
    if (!tables_->fits(stage, slot_of(unit))) ++misfits;
  }
  return misfits;
}

std::vector<PlacementTerm> PlacementObjective::terms() const {
  using Kind = PlacementTerm::Kind;
  std::vector<PlacementTerm> terms;
  for (int stage = 0; stage < pipeline_; ++stage) {
    terms.push_back({Kind::passes, stage, 0});
    for (int channel = 0; channel < num_channels(stage); ++channel)
      terms.push_back({Kind::messages, stage, channel});
    if (has_rings_ || has_buckets_) terms.push_back({Kind::ring, stage, 0});
  }
  if (ties_embeddings_) terms.push_back({Kind::embedding, embedding_stage_, 0});
  return terms;
}

/// Where the term's durations stand in a pipeline's list.
std::vector<std::uint32_t> PlacementObjective::durations_of(const PlacementTerm& term) const {
  const auto stage = static_cast<std::size_t>(term.stage);
  const DurationLayout& layout = tables_->layout();
  std::vector<std::uint32_t> indices;
  if (term.kind == PlacementTerm::Kind::passes) {
    for (std::uint32_t row = 0; row < layout.rows; ++row)
      indices.push_back(layout.work(stage, row));
    for (std::uint32_t slot = num_device_collectives; parts_ > 1 && slot < layout.collectives;
         ++slot)
      indices.push_back(layout.collective(stage, slot));
  } else if (term.kind == PlacementTerm::Kind::messages) {
    for (std::uint32_t row = 0; row < layout.messages; ++row)
      indices.push_back(layout.message(stage, static_cast<std::uint32_t>(term.channel), row));
  } else if (term.kind == PlacementTerm::Kind::ring && has_buckets_) {
    for (int chunk = 0; chunk < layout.chunks; ++chunk)
      for (const ChunkCollective which : {ChunkCollective::bucket, ChunkCollective::bucket_second})
        indices.push_back(layout.collective(stage, windtunnel::slot_of(which, chunk)));
  }
  return indices;
}

Seconds PlacementObjective::value_with(const PlacementTerm& term,
                                       const PlacementObjective& other) const {
  PlacementObjective mixed = *this;
  if (term.kind == PlacementTerm::Kind::embedding) mixed.embedding_ = other.embedding_;
  if (term.kind == PlacementTerm::Kind::ring) {
    for (const AfterPasses which :
         {AfterPasses::gradients, AfterPasses::second_gradients, AfterPasses::parameters})
      mixed.rings_[ring_of(which, term.stage)] = other.rings_[ring_of(which, term.stage)];
  }
  const std::vector<std::uint32_t> indices = durations_of(term);
  for (std::size_t replica = 0; replica < durations_.size() && !indices.empty(); ++replica) {
    for (const std::uint32_t index : indices)
      mixed.durations_[replica][index] = other.durations_[replica][index];
    mixed.dirty_[replica] = 1;
  }
  mixed.refresh_ends();
  return mixed.total();
}

Seconds PlacementObjective::time_of(const PlacementTerm& term) const {
  if (term.kind == PlacementTerm::Kind::embedding) return embedding_;
  if (term.kind == PlacementTerm::Kind::ring && has_rings_) {
    return rings_[ring_of(AfterPasses::gradients, term.stage)].cost().alone() +
           rings_[ring_of(AfterPasses::second_gradients, term.stage)].cost().alone();
  }
  Seconds slowest{};
  for (const std::vector<Seconds>& durations : durations_) {
    Seconds time{};
    if (term.kind == PlacementTerm::Kind::passes) {
      for (int chunk = 0; chunk < tables_->plan().parallel.virtual_pipeline; ++chunk)
        for (const ChunkRow row : {ChunkRow::forward, ChunkRow::backward})
          time += durations[tables_->layout().work(static_cast<std::size_t>(term.stage),
                                                   row_of(row, chunk))];
    } else {
      for (const std::uint32_t index : durations_of(term)) time = std::max(time, durations[index]);
    }
    slowest = std::max(slowest, time);
  }
  return slowest;
}

/// From and to which units the term's bytes go.
std::vector<std::pair<int, int>> PlacementObjective::flows_of(const PlacementTerm& term) const {
  std::vector<std::pair<int, int>> flows;
  for (int part = 0; part < parts_; ++part) {
    std::vector<NodeId> nodes;
    for (int replica = 0; replica < data_; ++replica) {
      const int here = unit(replica, term.stage, part);
      nodes.push_back(tables_->slot(slot_of(here)).node);
      if (term.kind == PlacementTerm::Kind::messages)
        flows.emplace_back(here, unit(replica, target(term.stage, term.channel), part));
      if (term.kind == PlacementTerm::Kind::embedding) {
        const int there = unit(replica, head_stage_, part);
        flows.emplace_back(here, there);
        flows.emplace_back(there, here);
      }
    }
    if (term.kind != PlacementTerm::Kind::ring) continue;
    for (const RingEdge& edge : ring_layout(nodes).edges)
      flows.emplace_back(unit(static_cast<int>(edge.from), term.stage, part),
                         unit(static_cast<int>(edge.to), term.stage, part));
  }
  return flows;
}

PlacementObjective::Slowest PlacementObjective::slowest_link(const PlacementTerm& term) const {
  Slowest slowest{{}, no_limit};
  for (const auto& [from, to] : flows_of(term)) {
    const auto route = tables_->route(slot_of(from), slot_of(to));
    for (const auto& on_way : tables_->links(route)) {
      const Link& link = tables_->link(on_way.id);
      if (link.bandwidth < slowest.bandwidth) slowest = {link.name, link.bandwidth};
    }
  }
  return slowest;
}

}  // namespace windtunnel
