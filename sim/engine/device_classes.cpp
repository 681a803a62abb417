#include "engine/device_classes.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "engine/signatures.hpp"

namespace windtunnel {
namespace {

using detail::Lists;
using detail::Signatures;
using Numbers = DeviceClasses::Numbers;

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

/// Which program and which times of work each device has, as a number.
Numbers roles_of(const ProgramSet& set) {
  std::vector<std::size_t> num_rows;  // of work, by program
  for (const StageProgram& program : set.programs) {
    std::size_t rows = 0;
    for (const std::vector<Op>& stream : program.streams)
      for (const Op& op : stream)
        if (op.kind == OpKind::compute) rows = std::max<std::size_t>(rows, op.work + 1);
    num_rows.push_back(rows);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs;
  Numbers pair_of_device;
  Signatures signatures;
  for (const ProgramDevice& device : set.devices) {
    const auto [found, is_new] = pairs.try_emplace({device.program, device.work_base},
                                                   static_cast<std::uint32_t>(pairs.size()));
    pair_of_device.push_back(found->second);
    if (!is_new) continue;
    signatures.begin();
    signatures.add(device.program);
    for (std::size_t row = 0; row < num_rows[device.program]; ++row) {
      const Work& work = set.work[device.work_base + row];
      signatures.add(bits(work.duration.value()));
      for (const Seconds part : work.parts) signatures.add(bits(part.value()));
      signatures.add(bits(work.floor.launch.value()));
      signatures.add(bits(work.floor.sharpness));
      const std::vector<std::uint32_t>& drawn =
          set.drawn_rows.first;  // as good as what stands there
      if (device.work_base + row < drawn.size()) signatures.add(drawn[device.work_base + row]);
    }
  }
  const Numbers role_of_pair = signatures.numbered().numbers;
  for (std::uint32_t& number : pair_of_device) number = role_of_pair[number];
  return pair_of_device;
}

/// Splits classes until nothing splits.
class ClassFinder {
 public:
  ClassFinder(const ProgramSet& set, const Network& network,
              const std::vector<std::vector<LinkId>>& paths)
      : set_(set), paths_(paths), incoming_(set.devices.size()), crossing_(network.links().size()) {
    for (const Collective& collective : set.collectives)
      for (const CollectiveFlow& flow : collective.flows) flows_.push_back(&flow);
    list_incoming();
    list_crossing();
    begin_classes(network);
  }

  std::optional<DeviceClasses> find() {
    constexpr int most_rounds = 16;
    for (int round = 0; round < most_rounds; ++round) {
      const std::size_t before = num_classes();
      split();
      classes_.num_devices = device_kind_.count;
      if (classes_.num_devices == set_.devices.size()) return std::nullopt;
      if (num_classes() == before)
        return is_one_for_all() ? std::optional(std::move(classes_)) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  /// A use of a link: the channel's or flow's number, whether it is a flow, which of its paths.
  static constexpr std::uint32_t use(std::size_t user, bool is_flow, bool is_down) {
    return static_cast<std::uint32_t>(user) << 2 | static_cast<std::uint32_t>(is_flow) << 1 |
           static_cast<std::uint32_t>(is_down);
  }

  void list_incoming() {
    for (const Channel& channel : set_.channels) incoming_.count(channel.to.index());
    incoming_.end_count();
    for (std::size_t i = 0; i < set_.channels.size(); ++i)
      incoming_.add(set_.channels[i].to.index(), static_cast<std::uint32_t>(i));
  }

  template <class Visit>
  void visit_uses(Visit visit) const {
    const auto visit_paths = [&](std::size_t user, bool is_flow, PathId up, PathId down) {
      for (const LinkId link : paths_[up.index()]) visit(link.index(), use(user, is_flow, false));
      for (const LinkId link : paths_[down.index()]) visit(link.index(), use(user, is_flow, true));
    };
    for (std::size_t i = 0; i < set_.channels.size(); ++i)
      if (!set_.channels[i].in_node)
        visit_paths(i, false, set_.channels[i].up, set_.channels[i].down);
    for (std::size_t i = 0; i < flows_.size(); ++i)
      visit_paths(i, true, flows_[i]->up, flows_[i]->down);
  }
  void list_crossing() {
    visit_uses([this](std::size_t link, std::uint32_t) { crossing_.count(link); });
    crossing_.end_count();
    visit_uses([this](std::size_t link, std::uint32_t use) { crossing_.add(link, use); });
  }

  /// Where its device has each channel, and its members each collective.
  std::pair<Numbers, Numbers> places() const {
    Numbers peers(set_.channels.size()), slots(set_.collectives.size());
    for (const ProgramDevice& device : set_.devices) {
      for (std::size_t peer = 0; peer < device.channels.size(); ++peer)
        peers[device.channels[peer].index()] = static_cast<std::uint32_t>(peer);
      for (std::size_t slot = 0; slot < device.collectives.size(); ++slot)
        if (device.collectives[slot])
          slots[device.collectives[slot]->index()] = static_cast<std::uint32_t>(slot);
    }
    return {peers, slots};
  }

  void begin_classes(const Network& network) {
    classes_.of_device = roles_of(set_);
    device_kind_.count = DeviceClasses::count_of(classes_.of_device);
    const auto [peers, slots] = places();
    signatures_.clear();
    for (std::size_t i = 0; i < set_.channels.size(); ++i) {
      const Channel& channel = set_.channels[i];
      signatures_.begin();
      signatures_.add(peers[i]);
      signatures_.add(channel.in_node);
      signatures_.add(bits(channel.in_node ? channel.bandwidth.value() : 0));
      signatures_.add(bits(channel.latency.value()));
    }
    number(classes_.of_channel, channel_kind_);
    for (std::size_t i = 0; i < set_.collectives.size(); ++i) {
      const Collective& collective = set_.collectives[i];
      signatures_.begin();
      signatures_.add(slots[i]);
      signatures_.add(bits(collective.fixed.value()));
      signatures_.add(bits(collective.latency.value()));
      signatures_.add(bits(collective.varying.value()));
      signatures_.add(collective.draws);
    }
    number(classes_.of_collective, collective_kind_);
    for (const CollectiveFlow* flow : flows_) {
      signatures_.begin();
      signatures_.add(bits(flow->bytes.value()));
    }
    number(classes_.of_flow, flow_kind_);
    for (const Link& link : network.links()) {
      signatures_.begin();
      signatures_.add(bits(link.bandwidth.value()));
    }
    number(classes_.of_link, link_kind_);
  }

  /// The things of one kind.
  struct Kind {
    std::size_t count = 0;  ///< of classes
    std::size_t told_apart_by = std::numeric_limits<
        std::size_t>::max();  ///< classes of other kinds when they were last split
  };

  /// Makes classes of what has been written down since the last time.
  void number(Numbers& classes, Kind& kind) {
    auto numbered = signatures_.numbered();
    signatures_.clear();
    classes = std::move(numbered.numbers);
    kind.count = numbered.count;
  }

  std::size_t num_classes() const {
    return device_kind_.count + channel_kind_.count + collective_kind_.count + flow_kind_.count +
           link_kind_.count;
  }

  /// One round. Each thing keeps what told it apart before, so classes only split: as many of them as before are the same ones, and what
  /// only they tell apart need not be looked at again.
  void split() {
    if (has_news(path_kind_, link_kind_.count)) split_paths();
    if (has_news(channel_kind_, device_kind_.count + path_kind_.count)) split_channels();
    if (has_news(collective_kind_, device_kind_.count + flow_kind_.count)) split_collectives();
    if (has_news(flow_kind_, collective_kind_.count + path_kind_.count)) split_flows();
    if (has_news(device_kind_, channel_kind_.count + collective_kind_.count)) split_devices();
    if (has_news(link_kind_, channel_kind_.count + flow_kind_.count)) split_links();
  }
  /// Whether the classes of other kinds that tell this one apart have split since the last time.
  static bool has_news(Kind& kind, std::size_t num_other_classes) {
    return std::exchange(kind.told_apart_by, num_other_classes) != num_other_classes;
  }

  void split_paths() {
    for (const std::vector<LinkId>& path : paths_) {
      signatures_.begin();
      for (const LinkId link : path) signatures_.add(classes_.of_link[link.index()]);
    }
    number(of_path_, path_kind_);
  }

  void split_channels() {
    for (std::size_t i = 0; i < set_.channels.size(); ++i) {
      const Channel& channel = set_.channels[i];
      signatures_.begin();
      signatures_.add(classes_.of_channel[i]);
      signatures_.add(classes_.of_device[channel.from.index()]);
      signatures_.add(classes_.of_device[channel.to.index()]);
      if (channel.in_node) continue;
      signatures_.add(of_path_[channel.up.index()]);
      signatures_.add(of_path_[channel.down.index()]);
    }
    number(classes_.of_channel, channel_kind_);
  }

  void split_collectives() {
    std::size_t flow = 0;
    for (std::size_t i = 0; i < set_.collectives.size(); ++i) {
      const Collective& collective = set_.collectives[i];
      signatures_.begin();
      signatures_.add(classes_.of_collective[i]);
      signatures_.add(collective.members.size());
      for (const DeviceId member : collective.members)
        signatures_.add(classes_.of_device[member.index()]);
      signatures_.unordered(collective.members.size());
      for (std::size_t f = 0; f < collective.flows.size(); ++f)
        signatures_.add(classes_.of_flow[flow++]);
      signatures_.unordered(collective.flows.size());
    }
    number(classes_.of_collective, collective_kind_);
  }

  void split_flows() {
    std::size_t flow = 0;
    for (std::size_t i = 0; i < set_.collectives.size(); ++i) {
      for (const CollectiveFlow& each : set_.collectives[i].flows) {
        signatures_.begin();
        signatures_.add(classes_.of_flow[flow++]);
        signatures_.add(classes_.of_collective[i]);
        signatures_.add(of_path_[each.up.index()]);
        signatures_.add(of_path_[each.down.index()]);
      }
    }
    number(classes_.of_flow, flow_kind_);
  }

  void split_devices() {
    for (std::size_t i = 0; i < set_.devices.size(); ++i) {
      const ProgramDevice& device = set_.devices[i];
      signatures_.begin();
      signatures_.add(classes_.of_device[i]);
      for (const ChannelId channel : device.channels)
        signatures_.add(classes_.of_channel[channel.index()]);
      for (const std::optional<CollectiveId> collective : device.collectives)
        signatures_.add(collective ? classes_.of_collective[collective->index()] : none);
      std::size_t num_incoming = 0;
      for (const std::uint32_t* channel = incoming_.begin(i); channel != incoming_.end(i);
           ++channel, ++num_incoming)
        signatures_.add(classes_.of_channel[*channel]);
      signatures_.unordered(num_incoming);
    }
    number(classes_.of_device, device_kind_);
  }

  std::uint64_t class_of(std::uint32_t use) const {
    const Numbers& numbers = (use >> 1 & 1) != 0 ? classes_.of_flow : classes_.of_channel;
    return static_cast<std::uint64_t>(numbers[use >> 2]) << 2 | (use & 3);
  }

  void split_links() {
    for (std::size_t i = 0; i < classes_.of_link.size(); ++i) {
      signatures_.begin();
      signatures_.add(classes_.of_link[i]);
      std::size_t num_uses = 0;
      for (const std::uint32_t* use = crossing_.begin(i); use != crossing_.end(i);
           ++use, ++num_uses)
        signatures_.add(class_of(*use));
      signatures_.unordered(num_uses);
    }
    number(classes_.of_link, link_kind_);
  }

  /// Whether no link has two of a class over it, and no device two incoming channels of a class.
  bool is_one_for_all() {
    for (std::size_t i = 0; i < classes_.of_link.size(); ++i) {
      seen_.clear();
      for (const std::uint32_t* use = crossing_.begin(i); use != crossing_.end(i); ++use)
        seen_.push_back(class_of(*use) >> 1);
      if (has_twins()) return false;
    }
    for (std::size_t i = 0; i < set_.devices.size(); ++i) {
      seen_.clear();
      for (const std::uint32_t* channel = incoming_.begin(i); channel != incoming_.end(i);
           ++channel)
        seen_.push_back(classes_.of_channel[*channel]);
      if (has_twins()) return false;
    }
    return true;
  }
  bool has_twins() {
    std::sort(seen_.begin(), seen_.end());
    return std::adjacent_find(seen_.begin(), seen_.end()) != seen_.end();
  }

  static constexpr std::uint64_t none = 0xFFFFFFFF;
  const ProgramSet& set_;
  const std::vector<std::vector<LinkId>>& paths_;
  std::vector<const CollectiveFlow*> flows_;
  Lists incoming_, crossing_;
  DeviceClasses classes_;
  Numbers of_path_;
  Kind device_kind_, channel_kind_, collective_kind_, flow_kind_, link_kind_, path_kind_;
  Signatures signatures_;
  std::vector<std::uint64_t> seen_;
};

}  // namespace

std::size_t DeviceClasses::count_of(const Numbers& numbers) {
  return numbers.empty() ? 0 : 1 + *std::max_element(numbers.begin(), numbers.end());
}

std::optional<DeviceClasses> find_device_classes(const ProgramSet& programs, const Network& network,
                                                 const std::vector<std::vector<LinkId>>& paths) {
  if (programs.devices.size() <= programs.programs.size()) return std::nullopt;
  return ClassFinder(programs, network, paths).find();
}

}  // namespace windtunnel
