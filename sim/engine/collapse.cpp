#include "engine/collapse.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <boost/functional/hash.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "engine/link_flows.hpp"

namespace windtunnel {
namespace {

using Numbers = DeviceClasses::Numbers;
using Lists = std::vector<std::vector<std::uint32_t>>;

/// The properties that distinguish things, as a list of words: equal lists mean the same class.
using Words = std::vector<std::uint64_t>;

/// Gives equal lists equal numbers: from 0, in order of first appearance.
class Numbering {
 public:
  std::uint32_t of(const Words& words) {
    return numbers_.try_emplace(words, static_cast<std::uint32_t>(count())).first->second;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  std::unordered_map<Words, std::uint32_t, boost::hash<Words>> numbers_;
};

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

/// Sorts the words from `first` on, whose order does not matter.
void sort_from(std::size_t first, Words& words) {
  std::sort(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
}

/// Number of each device's role: its program and its durations of work.
Numbers roles_of(const ProgramSet& set) {
  std::vector<std::size_t> num_rows;  // of work, by program
  for (const StageProgram& program : set.programs) {
    std::size_t rows = 0;
    for (const std::vector<Op>& stream : program.streams)
      for (const Op& op : stream)
        if (op.kind == OpKind::compute) rows = std::max<std::size_t>(rows, op.work + 1);
    num_rows.push_back(rows);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  Numbering roles;
  Numbers role_of_device;
  for (const ProgramDevice& device : set.devices) {
    const auto [role, is_new] = known.try_emplace({device.program, device.work_base});
    if (is_new) {
      Words words{device.program};
      for (std::size_t row = 0; row < num_rows[device.program]; ++row) {
        const Work& work = set.work[device.work_base + row];
        words.push_back(bits(work.duration.value()));
        for (const Seconds part : work.parts) words.push_back(bits(part.value()));
        words.push_back(bits(work.floor.launch.value()));
        words.push_back(bits(work.floor.sharpness));
        const std::vector<std::uint32_t>& drawn =
            set.drawn_rows.first;  // as good as what stands there
        if (device.work_base + row < drawn.size()) words.push_back(drawn[device.work_base + row]);
      }
      role->second = roles.of(words);
    }
    role_of_device.push_back(role->second);
  }
  return role_of_device;
}

/// Splits classes until nothing splits.
class ClassFinder {
 public:
  ClassFinder(const ProgramSet& set, const Network& network,
              const std::vector<std::vector<LinkId>>& paths)
      : set_(set), paths_(paths), incoming_(set.devices.size()), crossing_(network.links().size()) {
    for (std::size_t i = 0; i < set.channels.size(); ++i) {
      const Channel& channel = set.channels[i];
      incoming_[channel.to.index()].push_back(static_cast<std::uint32_t>(i));
      if (!channel.in_node) add_uses(i, false, channel.up, channel.down);
    }
    for (std::size_t i = 0; i < set.collectives.size(); ++i)
      for (const CollectiveFlow& flow : set.collectives[i].flows) {
        add_uses(flows_.size(), true, flow.up, flow.down);
        flows_.emplace_back(&flow, i);
      }
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
  void add_uses(std::size_t user, bool is_flow, PathId up, PathId down) {
    for (const bool is_down : {false, true})
      for (const LinkId link : paths_[(is_down ? down : up).index()])
        crossing_[link.index()].push_back(static_cast<std::uint32_t>(user) << 2 |
                                          static_cast<std::uint32_t>(is_flow) << 1 |
                                          static_cast<std::uint32_t>(is_down));
  }

  /// The index of each channel on its device, and of each collective on its members.
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
    of_path_.resize(paths_.size());
    const auto [peers, slots] = places();
    number(set_.channels.size(), classes_.of_channel, channel_kind_,
           [&, &peers = peers](std::size_t i, Words& words) {
             const Channel& channel = set_.channels[i];
             add(words,
                 {peers[i], channel.in_node, bits(channel.in_node ? channel.bandwidth.value() : 0),
                  bits(channel.latency.value())});
           });
    number(set_.collectives.size(), classes_.of_collective, collective_kind_,
           [&, &slots = slots](std::size_t i, Words& words) {
             const Collective& collective = set_.collectives[i];
             add(words, {slots[i], bits(collective.fixed.value()), bits(collective.latency.value()),
                         bits(collective.varying.value()), collective.draws});
           });
    number(flows_.size(), classes_.of_flow, flow_kind_, [&](std::size_t i, Words& words) {
      words.push_back(bits(flows_[i].first->bytes.value()));
    });
    number(network.links().size(), classes_.of_link, link_kind_, [&](std::size_t i, Words& words) {
      words.push_back(bits(network.links()[i].bandwidth.value()));
    });
  }

  /// The things of one kind.
  struct Kind {
    std::size_t count = 0;  ///< of classes
    /// Number of classes of other kinds when they were last split.
    std::size_t seen_classes = std::numeric_limits<std::size_t>::max();
  };

  static void add(Words& words, std::initializer_list<std::uint64_t> more) {
    words.insert(words.end(), more);
  }

  /// Splits the classes of a kind by what `add_words` says of each thing. Each keeps what told it apart before, so classes only split.
  template <class AddWords>
  static void number(std::size_t num_things, Numbers& classes, Kind& kind,
                     const AddWords& add_words) {
    classes.resize(num_things);
    Numbering numbering;
    Words words;
    for (std::size_t i = 0; i < num_things; ++i) {
      words.assign(1, classes[i]);
      add_words(i, words);
      classes[i] = numbering.of(words);
    }
    kind.count = numbering.count();
  }

  std::size_t num_classes() const {
    return device_kind_.count + channel_kind_.count + collective_kind_.count + flow_kind_.count +
           link_kind_.count;
  }

  /// One round. Where a kind has as many classes as before they are the same ones, and what differs by them alone need not be split
  /// again.
  void split() {
    if (has_changed(path_kind_, link_kind_.count)) split_paths();
    if (has_changed(channel_kind_, device_kind_.count + path_kind_.count)) split_channels();
    if (has_changed(collective_kind_, device_kind_.count + flow_kind_.count)) split_collectives();
    if (has_changed(flow_kind_, collective_kind_.count + path_kind_.count)) split_flows();
    if (has_changed(device_kind_, channel_kind_.count + collective_kind_.count)) split_devices();
    if (has_changed(link_kind_, channel_kind_.count + flow_kind_.count)) split_links();
  }
  /// True if the classes of other kinds that this one depends on have split since the last call.
  static bool has_changed(Kind& kind, std::size_t num_other_classes) {
    return std::exchange(kind.seen_classes, num_other_classes) != num_other_classes;
  }

  void split_paths() {
    number(paths_.size(), of_path_, path_kind_, [&](std::size_t i, Words& words) {
      for (const LinkId link : paths_[i]) words.push_back(classes_.of_link[link.index()]);
    });
  }

  void split_channels() {
    number(set_.channels.size(), classes_.of_channel, channel_kind_,
           [&](std::size_t i, Words& words) {
             const Channel& channel = set_.channels[i];
             for (const DeviceId end : {channel.from, channel.to})
               words.push_back(classes_.of_device[end.index()]);
             if (!channel.in_node)
               add(words, {of_path_[channel.up.index()], of_path_[channel.down.index()]});
           });
  }

  void split_collectives() {
    std::size_t flow = 0;
    number(set_.collectives.size(), classes_.of_collective, collective_kind_,
           [&](std::size_t i, Words& words) {
             const Collective& collective = set_.collectives[i];
             words.push_back(collective.members.size());
             const std::size_t members = words.size();
             for (const DeviceId member : collective.members)
               words.push_back(classes_.of_device[member.index()]);
             sort_from(members, words);
             const std::size_t flows = words.size();
             for (std::size_t f = 0; f < collective.flows.size(); ++f)
               words.push_back(classes_.of_flow[flow++]);
             sort_from(flows, words);
           });
  }

  void split_flows() {
    number(flows_.size(), classes_.of_flow, flow_kind_, [&](std::size_t i, Words& words) {
      const auto& [flow, collective] = flows_[i];
      add(words, {classes_.of_collective[collective], of_path_[flow->up.index()],
                  of_path_[flow->down.index()]});
    });
  }

  void split_devices() {
    number(set_.devices.size(), classes_.of_device, device_kind_, [&](std::size_t i, Words& words) {
      const ProgramDevice& device = set_.devices[i];
      for (const ChannelId channel : device.channels)
        words.push_back(classes_.of_channel[channel.index()]);
      for (const std::optional<CollectiveId> collective : device.collectives)
        words.push_back(collective ? classes_.of_collective[collective->index()] : none);
      const std::size_t incoming = words.size();
      for (const std::uint32_t channel : incoming_[i])
        words.push_back(classes_.of_channel[channel]);
      sort_from(incoming, words);
    });
  }

  std::uint64_t class_of(std::uint32_t use) const {
    const Numbers& numbers = (use >> 1 & 1) != 0 ? classes_.of_flow : classes_.of_channel;
    return static_cast<std::uint64_t>(numbers[use >> 2]) << 2 | (use & 3);
  }

  void split_links() {
    number(crossing_.size(), classes_.of_link, link_kind_, [&](std::size_t i, Words& words) {
      for (const std::uint32_t use : crossing_[i]) words.push_back(class_of(use));
      sort_from(1, words);
    });
  }

  /// True if no link is crossed by two channels or flows of one class, and no device has two incoming channels of one class.
  bool is_one_for_all() const {
    const auto has_no_twins = [](const std::vector<std::uint32_t>& things, const auto& class_of) {
      Words seen;
      for (const std::uint32_t thing : things) seen.push_back(class_of(thing));
      sort_from(0, seen);
      return std::ranges::adjacent_find(seen) == seen.end();
    };
    return std::ranges::all_of(crossing_,
                               [&](const auto& uses) {
                                 return has_no_twins(uses, [this](std::uint32_t use) {
                                   return class_of(use) >> 1;
                                 });
                               }) &&
           std::ranges::all_of(incoming_, [&](const auto& channels) {
             return has_no_twins(channels, [this](std::uint32_t channel) {
               return std::uint64_t{classes_.of_channel[channel]};
             });
           });
  }

  static constexpr std::uint64_t none = 0xFFFFFFFF;
  const ProgramSet& set_;
  const std::vector<std::vector<LinkId>>& paths_;
  std::vector<std::pair<const CollectiveFlow*, std::size_t>> flows_;  ///< with their collectives
  Lists incoming_;                                                    ///< channels, by device
  Lists crossing_;                                                    ///< uses, by link
  DeviceClasses classes_;
  Numbers of_path_;
  Kind device_kind_, channel_kind_, collective_kind_, flow_kind_, link_kind_, path_kind_;
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

namespace {

/// Makes the programs of one device of each class.
class Collapser {
 public:
  Collapser(const ProgramSet& whole, const Network& network,
            const std::vector<std::vector<LinkId>>& paths, const DeviceClasses& classes)
      : whole_(whole),
        network_(network),
        paths_(paths),
        classes_(classes),
        device_(classes.num_devices),
        collective_(DeviceClasses::count_of(classes.of_collective)),
        link_(DeviceClasses::count_of(classes.of_link)),
        path_(paths.size()) {
    for (std::size_t i = 0, flow = 0; i < whole.collectives.size(); ++i) {
      first_flow_.push_back(flow);
      flow += whole.collectives[i].flows.size();
    }
  }

  CollapsedPrograms collapse() {
    set().programs = whole_.programs;
    set().work = whole_.work;
    set().message_bytes = whole_.message_bytes;
    set().drawn_rows = whole_.drawn_rows;
    set().fullness = whole_.fullness;
    number_devices();
    for (const DeviceId device : result_.stands_for) add_device(whole_.devices[device.index()]);
    return std::move(result_);
  }

 private:
  ProgramSet& set() { return result_.programs; }

  void number_devices() {
    for (std::size_t i = 0; i < whole_.devices.size(); ++i) {
      std::optional<DeviceId>& chosen = device_[classes_.of_device[i]];
      if (!chosen) {
        chosen.emplace(result_.stands_for.size());
        result_.stands_for.emplace_back(i);
      }
      result_.simulated_as.push_back(*chosen);
    }
  }

  void add_device(const ProgramDevice& original) {
    ProgramDevice device;
    device.program = original.program;
    device.work_base = original.work_base;
    for (const ChannelId channel : original.channels)
      device.channels.push_back(add_channel(whole_.channels[channel.index()]));
    for (const std::optional<CollectiveId> collective : original.collectives) {
      device.collectives.emplace_back();
      if (collective) device.collectives.back() = collective_of(*collective);
    }
    set().devices.push_back(std::move(device));
  }

  ChannelId add_channel(const Channel& original) {
    Channel channel = original;
    channel.from = result_.simulated_as[original.from.index()];
    channel.to = result_.simulated_as[original.to.index()];
    if (!channel.in_node) {
      channel.up = path_of(original.up);
      channel.down = path_of(original.down);
    }
    set().channels.push_back(channel);
    return ChannelId{set().channels.size() - 1};
  }

  CollectiveId collective_of(CollectiveId original) {
    std::optional<CollectiveId>& chosen = collective_[classes_.of_collective[original.index()]];
    if (!chosen) {
      chosen.emplace(set().collectives.size());
      set().collectives.push_back(one_of_each(original));
    }
    return *chosen;
  }

  /// The collective with one member and one flow of each class.
  Collective one_of_each(CollectiveId id) {
    const Collective& original = whole_.collectives[id.index()];
    Collective collective;
    collective.fixed = original.fixed;
    collective.latency = original.latency;
    collective.traffic_bytes = original.traffic_bytes;
    collective.varying = original.varying;
    collective.draws = original.draws;
    for (const DeviceId member : original.members)
      collective.members.push_back(result_.simulated_as[member.index()]);
    std::sort(collective.members.begin(), collective.members.end());
    collective.members.erase(std::unique(collective.members.begin(), collective.members.end()),
                             collective.members.end());
    std::vector<std::uint32_t> seen;
    for (std::size_t i = 0; i < original.flows.size(); ++i) {
      const std::uint32_t number = classes_.of_flow[first_flow_[id.index()] + i];
      if (std::find(seen.begin(), seen.end(), number) != seen.end()) continue;
      seen.push_back(number);
      const CollectiveFlow& flow = original.flows[i];
      collective.flows.push_back({path_of(flow.up), path_of(flow.down), flow.bytes});
    }
    return collective;
  }

  /// The path over the first link of each class: once, where it has several of a class, since they carry the same.
  PathId path_of(PathId original) {
    std::optional<PathId>& chosen = path_[original.index()];
    if (!chosen) {
      std::vector<LinkId> links;
      for (const LinkId original_link : paths_[original.index()]) {
        const LinkId link = link_of(original_link);
        if (std::find(links.begin(), links.end(), link) == links.end()) links.push_back(link);
      }
      const auto [made, is_new] = made_.try_emplace(links, PathId{made_.size()});
      if (is_new) result_.network.add_path(std::move(links));
      chosen = made->second;
    }
    return *chosen;
  }

  LinkId link_of(LinkId original) {
    std::optional<LinkId>& chosen = link_[classes_.of_link[original.index()]];
    if (!chosen) {
      const Link& link = network_.links()[original.index()];
      chosen = result_.network.add_link(link.bandwidth, link.name);
    }
    return *chosen;
  }

  const ProgramSet& whole_;
  const Network& network_;
  const std::vector<std::vector<LinkId>>& paths_;
  const DeviceClasses& classes_;
  CollapsedPrograms result_;
  // Index in the collapsed programs, by class of the whole; nothing: not made yet.
  std::vector<std::optional<DeviceId>> device_;
  std::vector<std::optional<CollectiveId>> collective_;
  std::vector<std::optional<LinkId>> link_;
  std::vector<std::optional<PathId>> path_;  ///< by path of the whole
  std::map<std::vector<LinkId>, PathId> made_;
  std::vector<std::size_t> first_flow_;  ///< by collective of the whole
};

/// Activities and messages of one device's program: everything but flows depends on the program alone.
struct ProgramCounts {
  std::uint64_t activities = 0;  ///< collectives left out
  std::array<std::uint64_t, std::numeric_limits<std::uint8_t>::max() + 1>
      sends{};                         ///< by peer, of some bytes
  std::vector<std::uint64_t> entries;  ///< of collectives, by slot
};

ProgramCounts counts_of(const ProgramSet& set, const StageProgram& program) {
  ProgramCounts counts;
  for (const std::vector<Op>& stream : program.streams) {
    for (const Op& op : stream) {
      if (op.kind == OpKind::compute || op.kind == OpKind::send) ++counts.activities;
      if (op.kind == OpKind::send && set.message_bytes[op.work] > Bytes{0}) ++counts.sends[op.peer];
      if (op.kind != OpKind::collective) continue;
      if (op.slot >= counts.entries.size()) counts.entries.resize(op.slot + 1);
      ++counts.entries[op.slot];
    }
  }
  return counts;
}

/// Adds up what simulating every device would.
void count_whole(const ProgramSet& set, CollapsedPrograms& collapsed) {
  std::vector<ProgramCounts> counts;
  for (const StageProgram& program : set.programs) counts.push_back(counts_of(set, program));
  for (std::size_t i = 0; i < set.devices.size(); ++i) {
    const ProgramDevice& device = set.devices[i];
    const ProgramCounts& of = counts[device.program];
    collapsed.activities += of.activities;
    for (std::size_t peer = 0; peer < device.channels.size(); ++peer)
      if (!set.channels[device.channels[peer].index()].in_node) collapsed.flows += of.sends[peer];
    for (std::size_t slot = 0; slot < of.entries.size(); ++slot) {
      if (of.entries[slot] == 0) continue;
      const Collective& collective =
          set.collectives[device.entered(static_cast<std::uint32_t>(slot)).index()];
      if (collective.members.front() != DeviceId{i}) continue;  // once for all members
      collapsed.activities += of.entries[slot];
      collapsed.flows += of.entries[slot] * collective.flows.size();
    }
  }
}

}  // namespace

std::optional<CollapsedPrograms> collapse(const ProgramSet& programs, const Network& network) {
  const std::vector<std::vector<LinkId>> paths = binding_links(network);
  const std::optional<DeviceClasses> classes = find_device_classes(programs, network, paths);
  if (!classes) return std::nullopt;
  CollapsedPrograms collapsed = Collapser(programs, network, paths, *classes).collapse();
  count_whole(programs, collapsed);
  return collapsed;
}

EngineResult simulate_programs(const CollapsedPrograms& collapsed, Engine& engine,
                               SimulationListener* listener) {
  const EngineResult result = simulate_programs(collapsed.programs, engine, listener);
  EngineResult whole;
  whole.end = result.end;
  whole.engine = result.engine;
  whole.activities = collapsed.activities;
  whole.flows = collapsed.flows;
  for (const DeviceId device : collapsed.simulated_as)
    whole.device_end.push_back(result.device_end[device.index()]);
  // Among devices that end last, the class of the lowest comes first among the devices simulated.
  whole.last_device = collapsed.stands_for[result.last_device.index()];
  return whole;
}

}  // namespace windtunnel
