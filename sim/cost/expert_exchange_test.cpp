#include "cost/expert_exchange.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/file_io.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

using enum ExpertDispatch;

Transformer::Experts experts(int count, int top_k) {
  Transformer::Experts moe;
  moe.experts = count;
  moe.top_k = top_k;
  return moe;
}

/// Two GPUs and two NICs of 50 GB/s, 100 GB/s for each GPU inside, floor 10 us.
NodeType two_gpus() {
  NodeType node;
  node.gpus = node.nics = 2;
  node.nic_rate = BytesPerSecond{50e9};
  node.interconnect.floor_base = Seconds{10e-6};
  node.interconnect.all_to_all = BytesPerSecond{100e9};
  return node;
}

TEST_CASE("a token's experts are on as many GPUs and nodes as chance has it") {
  // 4 experts on 4 GPUs of 2 nodes, top 2. GPUs: one expert each, so 2. Nodes: both experts on one node in 4 of 12 ordered draws
  // (2/4 * 1/3 = 1/6 that a node has neither), 2 (1 - 1/6) = 5/3.
  const TokenCopies copies = token_copies(experts(4, 2), {4, 2, 2, 2}, one_copy_per_node);
  CHECK(copies.gpus == doctest::Approx(2).epsilon(1e-12));
  CHECK(copies.nodes == doctest::Approx(5.0 / 3).epsilon(1e-12));
}

TEST_CASE("DeepEP counts 5.28 copies of a token among 8 GPUs") {
  // 256 experts, 8 GPUs, top 8: 8 (1 - C(224,8)/C(256,8)) = 5.303. Its README has 320 GB/s over 500 us for 4,096 tokens of 7,392 bytes:
  // 5.28 copies.
  const TokenCopies copies = token_copies(experts(256, 8), {8, 1, 8, 8}, one_copy_per_node);
  CHECK(copies.gpus == doctest::Approx(5.28).epsilon(0.005));
  CHECK(copies.nodes == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("a token that takes experts in a row reaches the places that the row lies in") {
  Transformer::Experts moe = experts(6, 4);
  moe.balance.consecutive = true;
  // 6 experts, 4 a token: rows 0-3, 4-1 (4, 5, 0, 1), 2-5. Of 3 GPUs with two each: 2, 2, 2. Of 2 nodes with three each: 2, 2, 2.
  CHECK(token_copies(moe, {3, 2, 2, 1}, one_copy_per_node).gpus == 2);
  CHECK(token_copies(moe, {3, 2, 2, 1}, one_copy_per_node).nodes == 2);
  // 3 a token: 0-2 and 3-5. GPUs: 0-2 on two, 3-5 on two; nodes: one each.
  moe.top_k = 3;
  CHECK(token_copies(moe, {3, 2, 2, 1}, one_copy_per_node).gpus == 2);
  CHECK(token_copies(moe, {3, 2, 2, 1}, one_copy_per_node).nodes == 1);
  // All 6 a token, from expert 0 on.
  moe.top_k = 6;
  CHECK(token_copies(moe, {3, 2, 2, 1}, one_copy_per_node).gpus == 3);
  // Compared with the places of each expert of each token, written out.
  for (const auto& [all, k, places] :
       {std::array{128, 8, 8}, {128, 8, 32}, {12, 5, 4}, {10, 7, 2}, {64, 6, 16}}) {
    Transformer::Experts any = experts(all, k);
    any.balance.consecutive = true;
    double sum = 0;
    for (int token = 0; token < all; ++token) {
      std::set<int> reached;
      for (int i = 0; i < k; ++i) reached.insert((token * k + i) % all / (all / places));
      sum += static_cast<double>(reached.size());
    }
    CHECK(token_copies(any, {places, 1, places, places}, one_copy_per_node).gpus ==
          doctest::Approx(sum / all).epsilon(1e-12));
  }
}

TEST_CASE("a limit on nodes keeps copies on fewer of them") {
  Transformer::Experts moe = experts(256, 8);
  const ExpertGroup group{64, 8, 8, 8};
  const double free = token_copies(moe, group, one_copy_per_node).nodes;
  moe.node_limit = 4;
  const double limited = token_copies(moe, group, one_copy_per_node).nodes;
  CHECK(free > 5);
  CHECK(limited < 4);
  CHECK(limited > 3);
}

TEST_CASE("sending a copy for every expert, a token leaves as often as it has experts") {
  const TokenCopies copies = token_copies(experts(256, 8), {64, 8, 8, 8}, all_to_all);
  CHECK(copies.gpus == 8);
  CHECK(copies.nodes == 8);
}

TEST_CASE("an all-gather takes every token through the ring of each NIC: 4 GPUs, 2 nodes") {
  // 3,000 tokens of 100 bytes, four copies each. A rank hands on three ranks' tokens, half of them in either of two rings, of which one leaves
  // the node after it.
  const ExpertGroup group{4, 2, 2, 2};
  const TokenCopies copies = token_copies(experts(4, 2), group, all_gather);
  CHECK(copies.gpus == 4);
  const ExchangeBytes bytes = exchange_bytes(Bytes{1'200'000}, copies, group, all_gather);
  CHECK(bytes.sent.value() == doctest::Approx(900'000).epsilon(1e-12));
  CHECK(bytes.between_nodes.value() == doctest::Approx(450'000).epsilon(1e-12));
  CHECK(bytes.in_node.value() == doctest::Approx(450'000).epsilon(1e-12));
  CHECK(exchange_bytes(Bytes{1'200'000}, copies, {4, 1, 4, 4}, all_gather).between_nodes ==
        Bytes{0});
}

TEST_CASE("bytes in nodes and between them: 4 GPUs, 2 nodes, 4 experts, top 2") {
  // A rank with 3,000 tokens of 100 bytes, two copies each: 600,000 bytes. A copy goes to each of its GPUs with probability 1/2.
  const ExpertGroup group{4, 2, 2, 2};
  const Bytes payload{600'000};
  // Every copy from GPU to GPU: 1/4 stays, 1/4 goes to the neighbour, 1/2 to the other node.
  const ExchangeBytes plain =
      exchange_bytes(payload, token_copies(experts(4, 2), group, all_to_all), group, all_to_all);
  CHECK(plain.in_node.value() == doctest::Approx(150'000).epsilon(1e-12));
  CHECK(plain.between_nodes.value() == doctest::Approx(300'000).epsilon(1e-12));
  // One copy a node: 5/6 of 3,000 tokens have an expert on the other node, 250,000 bytes. In the node: 150,000 of its own to the
  // neighbour, and as many forwarded for the other node.
  const TokenCopies copies = token_copies(experts(4, 2), group, one_copy_per_node);
  const ExchangeBytes merged = exchange_bytes(payload, copies, group, one_copy_per_node);
  CHECK(merged.in_node.value() == doctest::Approx(300'000).epsilon(1e-12));
  CHECK(merged.between_nodes.value() == doctest::Approx(250'000).epsilon(1e-12));
}

/// Copies of tokens that each of four GPUs on two nodes sends, an expert on each, when every GPU has a token for each pair of experts.
struct CountedCopies {
  std::array<int, 4> in_node{}, between_nodes{}, received{};
  int kept = 0;
};

void send(int from, int to, CountedCopies& copies) {
  const bool is_near = from / 2 == to / 2;
  ++(is_near ? copies.in_node : copies.between_nodes)[static_cast<std::size_t>(from)];
  ++copies.received[static_cast<std::size_t>(to)];
}

CountedCopies count_copies(ExpertDispatch dispatch) {
  CountedCopies copies;
  for (int gpu = 0; gpu < 4; ++gpu)
    for (int one = 0; one < 4; ++one)
      for (int two = one + 1; two < 4; ++two) {
        if (one == gpu || two == gpu) ++copies.kept;
        const int counterpart = (gpu + 2) % 4, other_node = counterpart / 2;
        const bool crosses = one / 2 == other_node || two / 2 == other_node;
        if (dispatch == one_copy_per_node && crosses) send(gpu, counterpart, copies);
        for (const int expert : {one, two}) {
          const bool is_near = expert / 2 == gpu / 2;
          if (dispatch == all_to_all || is_near) {
            if (expert != gpu) send(gpu, expert, copies);
          } else if (expert != counterpart) {
            send(counterpart, expert, copies);  // forwarded
          }
        }
      }
  return copies;
}

TEST_CASE("bytes that each rank sends for a given routing, counted copy by copy") {
  // Six tokens a GPU, one for each pair of four experts, 100 bytes each: 1,200 bytes of copies.
  //   all-to-all: each expert is in 3 pairs. 300 bytes stay, 300 go to the neighbour, 2 * 300 to the other node
  //   one copy a node: 5 pairs have an expert on the other node, 500 bytes; in the node 300 of its own and 300 forwarded
  const ExpertGroup group{4, 2, 2, 2};
  for (const ExpertDispatch dispatch : {all_to_all, one_copy_per_node}) {
    const CountedCopies counted = count_copies(dispatch);
    const ExchangeBytes bytes =
        exchange_bytes(Bytes{1200}, token_copies(experts(4, 2), group, dispatch), group, dispatch);
    int sent = 0, received = 0;
    for (std::size_t gpu = 0; gpu < 4; ++gpu) {
      CHECK(bytes.in_node.value() == doctest::Approx(100 * counted.in_node[gpu]).epsilon(1e-12));
      CHECK(bytes.between_nodes.value() ==
            doctest::Approx(100 * counted.between_nodes[gpu]).epsilon(1e-12));
      sent += counted.in_node[gpu] + counted.between_nodes[gpu];
      received += counted.received[gpu];
    }
    CHECK(sent == received);
    // 24 tokens go to two experts each. Where copies are forwarded, those that arrive for the neighbour alone are sent twice.
    CHECK(counted.kept == 12);
    CHECK(sent == (dispatch == all_to_all ? 48 - 12 : 24 + 20));
  }
}

TEST_CASE("4 GPUs, 2 nodes, 4 experts, top 2, on paper to the microsecond") {
  // As above with 3,000,000 tokens' worth: 300 MB in the node, 250 MB between nodes.
  //   in the node: 10 us + 300 MB / 100 GB/s = 3,010 us;  between: 20 us + 250 MB / 50 GB/s = 5,020 us
  const ExpertGroup group{4, 2, 2, 2};
  Fabric fabric;
  fabric.latency = Seconds{15e-6};
  fabric.collective_latency = Seconds{5e-6};
  const TokenCopies copies = token_copies(experts(4, 2), group, one_copy_per_node);
  const ExchangeBytes bytes = exchange_bytes(Bytes{600e6}, copies, group, one_copy_per_node);
  const ExchangeTime time = exchange_time(bytes, group, two_gpus(), fabric);
  CHECK(time.fixed.value() == doctest::Approx(3010e-6).epsilon(1e-9));
  CHECK(time.total().value() == doctest::Approx(5020e-6).epsilon(1e-9));
}

TEST_CASE("balanced experts load all ranks alike, skewed ones load one more") {
  Transformer::Experts moe = experts(64, 2);
  CHECK(expert_load(moe, 8).slowest == 1);
  moe.balance.zipf = 0.5;
  const ExpertLoad half = expert_load(moe, 8);
  CHECK(half.slowest > 1.1);
  CHECK(half.fullest > half.slowest);
  moe.balance.zipf = 1;
  CHECK(expert_load(moe, 8).slowest > half.slowest);
  CHECK(expert_load(moe, 1).slowest == doctest::Approx(1).epsilon(1e-12));  // one rank has them all
}

TEST_CASE("measured shares decide, and capacity bounds them") {
  Transformer::Experts moe = experts(4, 1);
  moe.balance.shares = {3, 1, 0, 0};
  // One expert a rank: the busiest has 3/4 of all tokens, three times its even share.
  CHECK(expert_load(moe, 4).slowest == doctest::Approx(3).epsilon(1e-12));
  moe.capacity = 1.25;
  CHECK(expert_load(moe, 4).slowest == doctest::Approx(1.25).epsilon(1e-12));
}

TEST_CASE("capacity below an even share drops tokens however they are spread") {
  Transformer::Experts moe = experts(4, 1);
  moe.capacity = 0.5;
  CHECK(expert_load(moe, 4).slowest == 0.5);
  CHECK(expert_load(moe, 4).fullest == 0.5);
  CHECK(kept_share(moe) == 0.5);
  moe.balance.shares = {1.0001, 1, 1, 1};  // all experts are over their capacity
  CHECK(expert_load(moe, 4).slowest == doctest::Approx(0.5).epsilon(1e-12));
  moe.balance.shares.clear();
  moe.capacity = 1.25;
  CHECK(expert_load(moe, 4).slowest == 1);
  CHECK(kept_share(moe) == 1);
  moe.balance.shares = {3, 1, 0, 0};  // of 3/4 the first takes 1.25/4
  CHECK(kept_share(moe) == doctest::Approx(1.25 / 4 + 1.0 / 4).epsilon(1e-12));
}

TEST_CASE("experts that get nothing stay empty where the others are full") {
  Transformer::Experts moe = experts(4, 2);
  moe.balance.shares = {1, 1, 0, 0};
  // Every token goes to both: half of all copies each, on one rank of two at worst.
  CHECK(expert_load(moe, 2).fullest == doctest::Approx(2).epsilon(1e-12));
  CHECK(expert_load(moe, 4).slowest == doctest::Approx(2).epsilon(1e-12));
}

TEST_CASE("no expert gets a token twice") {
  Transformer::Experts moe = experts(4, 2);
  moe.balance.shares = {100, 1, 1, 1};
  // Half of all copies at most: 4 ranks of one expert, 2 times the mean.
  CHECK(expert_load(moe, 4).slowest == doctest::Approx(2).epsilon(1e-12));
}

/// One row of validation/exchanges/deepep.csv: what was measured, and what is predicted for it.
struct Exchange {
  std::string cluster;
  int ranks = 0;
  Seconds measured{}, predicted{};
  double error() const { return std::abs(predicted / measured - 1); }
};

/// GB/s that a GPU sends in its node: fitted on the cluster's rows of 8 GPUs.
double in_node_rate(const std::string& cluster) {
  if (cluster == "h800-ib") return 134;
  if (cluster == "b200-ib-v2") return 580;
  if (cluster == "p6-efa") return 372;
  return cluster.starts_with("mi300x") ? 260 : 290;
}

Exchange exchange_of(const std::vector<std::string>& cells) {
  const auto number = [&cells](std::size_t i) { return std::strtod(cells[i].c_str(), nullptr); };
  const int ranks = static_cast<int>(number(2)), nodes = std::max(1, ranks / 8);
  const ExpertGroup group{ranks, nodes, 8, 8};
  Transformer::Experts moe = experts(256, 8);
  moe.node_limit = 4;
  const TokenCopies copies = token_copies(moe, group, one_copy_per_node);
  const double token = number(4) * (cells[6] == "fp8" ? 1 + 4.0 / 128 : 2), tokens = number(3);
  const double counted = cells[7] == "nvlink" ? copies.gpus : copies.nodes;
  NodeType node;
  node.gpus = node.nics = 8;
  node.nic_rate = BytesPerSecond{50e9};
  node.nic_efficiency = 0.9;
  node.interconnect.floor_base = Seconds{24e-6};
  node.interconnect.all_to_all = BytesPerSecond{in_node_rate(cells[0]) * 1e9};
  Fabric fabric;
  fabric.latency = Seconds{15e-6};
  fabric.collective_latency = Seconds{8e-6};
  const ExchangeBytes bytes =
      exchange_bytes(Bytes{tokens * token * copies.gpus}, copies, group, one_copy_per_node);
  const Seconds measured{cells[8].empty() ? tokens * token * counted / (number(9) * 1e9)
                                          : number(8) * 1e-6};
  return {cells[0], ranks, measured, exchange_time(bytes, group, node, fabric).total()};
}

std::vector<Exchange> measured_exchanges() {
  std::istringstream in(read_source(source_dir() / "validation/exchanges/deepep.csv")->text);
  std::vector<Exchange> exchanges;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    exchanges.push_back(exchange_of(cells));
  }
  return exchanges;
}

TEST_CASE(
    "exchanges between nodes, on which nothing was fitted, are predicted to 8 %; those over EFA "
    "are slower") {
  std::vector<double> all, infiniband;
  for (const Exchange& each : measured_exchanges()) {
    if (each.ranks == 8) continue;  // fitted on
    all.push_back(each.error());
    if (each.cluster.find("-ib") != std::string::npos) infiniband.push_back(each.error());
  }
  const auto median = [](std::vector<double>& errors) {
    std::sort(errors.begin(), errors.end());
    return errors[errors.size() / 2];
  };
  CHECK(all.size() == 48);
  CHECK(median(all) < 0.08);
  CHECK(infiniband.size() == 21);
  CHECK(median(infiniband) < 0.05);
  CHECK(infiniband.back() < 0.16);
}

}  // namespace
}  // namespace windtunnel
