#include "cost/expert_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "cost/collective_cost.hpp"

namespace windtunnel {
namespace {

/// Probability that at least one of `chosen` experts, drawn from `pool`, is one of the `here` experts of this rank or node.
double visits(double pool, double here, int chosen) {
  double none = 1;
  for (int i = 0; i < chosen; ++i) none *= std::max(0.0, pool - here - i) / std::max(1.0, pool - i);
  return 1 - none;
}

/// Places of E/`places` experts each that a token's k experts are in, where it takes k in a row from i k on: the mean over all i, of which
/// E / gcd(E, k) differ.
double places_of_row(const Transformer::Experts& moe, std::int64_t places) {
  const std::int64_t all = moe.experts, chosen = moe.top_k;
  const std::int64_t tokens = all / std::gcd(all, chosen);
  std::int64_t reached = 0;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t first = token * chosen % all, last = first + chosen - 1;
    // The row that runs over the end may come back to the place that it began in.
    reached += std::min(places, last * places / all - first * places / all + 1);
  }
  return static_cast<double>(reached) / static_cast<double>(tokens);
}

/// Shares of tokens by expert, the busiest first where they are drawn by Zipf's law. None is more than 1 / top_k, since a token goes to
/// an expert once at most.
std::vector<double> shares_of(const Transformer::Experts& moe) {
  std::vector<double> shares = moe.balance.shares;
  for (int i = 1; static_cast<int>(shares.size()) < moe.experts; ++i)
    shares.push_back(std::pow(i, -moe.balance.zipf));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  const double most = 1.0 / moe.top_k;
  for (bool over = true; over;) {
    double full = 0, rest = 0;
    for (const double share : shares) (share >= most ? full : rest) += std::min(share, most);
    over = false;
    for (double& share : shares) {
      share = share >= most ? most : share * (rest > 0 ? (1 - full) / rest : 0);
      over = over || share > most;
    }
  }
  return shares;
}

/// The same without the tokens beyond an expert's capacity, which are dropped.
std::vector<double> kept_shares(const Transformer::Experts& moe) {
  std::vector<double> shares = shares_of(moe);
  if (moe.capacity > 0)
    for (double& share : shares) share = std::min(share, moe.capacity / moe.experts);
  return shares;
}

/// The tokens of the fullest of `ranks` ranks, over the mean.
double fullest_rank(const std::vector<double>& shares, int ranks) {
  const std::size_t each = shares.size() / static_cast<std::size_t>(ranks);
  double most = 0;
  for (std::size_t first = 0; first < shares.size(); first += each) {
    const auto begin = shares.begin() + static_cast<std::ptrdiff_t>(first);
    most = std::max(most, std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(each), 0.0));
  }
  return most * ranks;
}

/// The same on every platform, as std::shuffle is not.
void shuffle(std::vector<double>& values, std::mt19937_64& random) {
  for (std::size_t left = values.size(); left > 1; --left)
    std::swap(values[left - 1], values[random() % left]);
}

}  // namespace

TokenCopies token_copies(const Transformer::Experts& moe, const ExpertGroup& group,
                         ExpertDispatch dispatch) {
  const double k = moe.top_k;
  if (dispatch == ExpertDispatch::all_to_all) return {k, k};
  if (dispatch == ExpertDispatch::all_gather) return {1.0 * group.ranks, 1.0 * group.ranks};
  if (moe.balance.consecutive)
    return {places_of_row(moe, group.ranks), places_of_row(moe, group.nodes)};
  const double all = moe.experts, nodes = group.nodes;
  const double open = moe.node_limit > 0 ? std::min<double>(moe.node_limit, nodes) : nodes;
  const double pool = std::max(k, all * open / nodes), reached = open / nodes;
  return {group.ranks * reached * visits(pool, all / group.ranks, moe.top_k),
          nodes * reached * visits(pool, all / nodes, moe.top_k)};
}

ExchangeBytes exchange_bytes(Bytes payload, const TokenCopies& copies, const ExpertGroup& group,
                             ExpertDispatch dispatch) {
  const double n = group.ranks, r = group.most_in_node;
  const double away = 1 - group.fewest_in_node / n;
  if (dispatch == ExpertDispatch::all_to_all)
    return {payload * ((r - 1) / n), payload * away, payload * ((n - 1) / n)};
  if (dispatch == ExpertDispatch::all_gather) {
    const Bytes sent = payload * ((n - 1) / n);
    const Bytes between_nodes = group.nodes > 1 ? sent / r : Bytes{0};
    return {sent - between_nodes, between_nodes, sent, true};
  }
  const Bytes in_node = payload * ((r - 1) / r),
              between_nodes = payload * (copies.nodes / copies.gpus * away);
  return {in_node, between_nodes, in_node + between_nodes};
}

Seconds ExchangeTime::total() const { return std::max(fixed, latency + nics); }

ExchangeTime exchange_time(const ExchangeBytes& bytes, const ExpertGroup& group,
                           const NodeType& node, const Fabric& fabric) {
  ExchangeTime time;
  const Interconnect& wires = node.interconnect;
  if (bytes.in_node > Bytes{0}) {
    std::vector<int> gpus(static_cast<std::size_t>(std::min(group.most_in_node, node.gpus)));
    std::iota(gpus.begin(), gpus.end(), 0);
    const BytesPerSecond rate = wires.all_to_all > BytesPerSecond{0} && !bytes.in_ring
                                    ? wires.all_to_all
                                    : saturated_bus_bandwidth(wires, gpus);
    time.fixed = wires.floor_base + wires.floor_per_gpu * group.most_in_node + bytes.in_node / rate;
  }
  if (group.nodes == 1) return time;
  time.latency = fabric.latency + fabric.collective_latency;
  time.nics = bytes.between_nodes * static_cast<double>(node.gpus) /
              (node.effective_nic_rate() * static_cast<double>(node.nics));
  return time;
}

std::vector<double> expert_loads(const Transformer::Experts& moe, int ranks) {
  if (moe.balance.is_even())
    return moe.capacity > 0 && moe.capacity < 1 ? std::vector{moe.capacity} : std::vector<double>{};
  constexpr int draws = 256;
  constexpr std::uint64_t seed = 17;
  const std::vector<double> shares = kept_shares(moe);
  // One simulation asks many times: for its memory, its operations and their times.
  struct Answer {
    int ranks = 0;
    std::vector<double> shares, loads;
  };
  thread_local Answer last;
  if (ranks == last.ranks && shares == last.shares) return last.loads;
  Answer answer{ranks, shares, {}};
  std::vector<double> drawn = shares;
  std::mt19937_64 random(seed);
  for (int draw = 0; draw < draws; ++draw) {
    shuffle(drawn, random);
    answer.loads.push_back(fullest_rank(drawn, ranks));
  }
  last = std::move(answer);
  return last.loads;
}

double exchanged_load(ExpertDispatch dispatch, double load) {
  return dispatch == ExpertDispatch::all_gather ? 1 : load;
}

double kept_share(const Transformer::Experts& moe) {
  if (moe.capacity == 0) return 1;
  const std::vector<double> shares = kept_shares(moe);
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

ExpertLoad expert_load(const Transformer::Experts& moe, int ranks) {
  const std::vector<double> loads = expert_loads(moe, ranks);
  if (loads.empty()) return {};
  ExpertLoad load{0, 0};
  for (const double each : loads) {
    load.slowest += each / static_cast<double>(loads.size());
    load.fullest = std::max(load.fullest, each);
  }
  return load;
}

}  // namespace windtunnel
