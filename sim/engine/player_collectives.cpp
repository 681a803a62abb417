#include "core/contracts.hpp"
#include "core/work_note.hpp"
#include "engine/program_player.hpp"

namespace windtunnel::detail {

CollectiveId ProgramPlayer::collective_of(std::uint32_t stream) const {
  return set_.devices[device_of(stream).index()].entered(state_.streams[stream].next->slot);
}

void ProgramPlayer::enter_collective(std::uint32_t index) {
  const CollectiveId id = collective_of(index);
  CollectiveState& collective = state_.collectives[id.index()];
  StreamState& stream = state_.streams[index];
  stream.begin = now_;
  ++stream.pending;
  add_waiter(collective.waiters, index);
  WT_EXPECT(collective.parts_left == 0);  // one stream of a device enters a collective
  if (++collective.entered == set_.collectives[id.index()].members.size()) begin_collective(id);
}

void ProgramPlayer::begin_collective(CollectiveId id) {
  const Collective& collective = set_.collectives[id.index()];
  CollectiveState& state = state_.collectives[id.index()];
  state.begin = now_;
  state.entered = 0;
  ++num_instances_;
  for (std::uint32_t waiter = state.waiters.first; waiter != none;
       waiter = state_.streams[waiter].next_waiter) {
    std::uint64_t& last = last_instance_[device_of(waiter).index()];
    WT_EXPECT(last != num_instances_);  // every member has entered, not one of them twice
    last = num_instances_;
  }
  state.parts_left = 2;
  state.fullness = set_.fullness_of(collective, *state_.streams[state.waiters.first].next);
  const Seconds fixed = collective.fixed + collective.varying * (state.fullness - 1);
  engine_.after(fixed, token(Happening::collective_part, id.index()));
  const Seconds latency = latency_from(collective.members.front(), collective.latency);
  engine_.after(latency, token(Happening::collective_launched, id.index()));
}

void ProgramPlayer::launch_collective(CollectiveId id) {
  const Collective& collective = set_.collectives[id.index()];
  CollectiveState& state = state_.collectives[id.index()];
  state.parts_left += static_cast<std::uint32_t>(collective.flows.size());
  for (const CollectiveFlow& flow : collective.flows) {
    ++played_.flows;
    engine_.start_flow(flow.up, flow.down, flow.bytes * state.fullness,
                       token(Happening::collective_part, id.index()));
  }
  end_collective_part(id);  // the latency
}

void ProgramPlayer::end_collective_part(CollectiveId id) {
  if (--state_.collectives[id.index()].parts_left == 0) end_collective(id);
}

void ProgramPlayer::end_collective(CollectiveId id) {
  CollectiveState& state = state_.collectives[id.index()];
  count_done(++played_.activities);
  if (listener_ != nullptr) {
    listener_->on_collective(id, *state_.streams[state.waiters.first].next, state.begin, now_);
  }
  const WaiterList waiters = state.waiters;
  state.waiters = {};
  for (std::uint32_t waiter = waiters.first; waiter != none;
       waiter = state_.streams[waiter].next_waiter) {
    if (listener_ != nullptr) {
      entered_[waiter] = state_.streams[waiter].begin;
      const PeerWait wait{entered_[waiter], state.begin};
      if (wait.duration() >= longest_peer_wait(waiter).duration()) peer_waits_[waiter] = wait;
    }
    note_arrival(waiter, *state_.streams[waiter].next, state.begin);
  }
}

}  // namespace windtunnel::detail
