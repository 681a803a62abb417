#pragma once

#include <vector>

#include "platform/platform.hpp"
#include "platform/software_profile.hpp"
#include "units/quantity.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// The ranks that exchange the tokens of a layer, and the nodes they are on. NVLink domains count as nodes (in_domains).
struct ExpertGroup {
  int ranks = 1, nodes = 1;
  int most_in_node = 1, fewest_in_node = 1;
  bool operator==(const ExpertGroup&) const = default;
};

/// Copies of a token that are sent, its own GPU and node included.
struct TokenCopies {
  double gpus = 1;   ///< GPUs that get one
  double nodes = 1;  ///< copies that are sent to nodes
};
/// Expected, for tokens that choose their top_k of E experts, all alike:
///   copies = n (1 - C(E - E/n, k) / C(E, k))   to n places of E/n experts each
/// With a node limit of M among N nodes, the choice is among the experts of M nodes drawn first. Sending a copy for every expert, both
/// are k; all to all ranks, n. Where a token takes k experts in a row, the mean over the places where it begins; a limit on nodes says
/// nothing of them.
TokenCopies token_copies(const Transformer::Experts& moe, const ExpertGroup& group,
                         ExpertDispatch dispatch);

/// Bytes that one rank sends. Where nodes have unlike numbers of ranks, the first two are those of the ranks that send most.
struct ExchangeBytes {
  Bytes in_node{};        ///< over NVLink, what it forwards for other nodes included
  Bytes between_nodes{};  ///< through NICs
  Bytes sent{};           ///< both, of the mean rank
  bool in_ring = false;   ///< at the rate of collectives, not of an all-to-all
};
/// `payload` is what its tokens weigh, a copy for each GPU. Of r ranks a node and N nodes:
///   one_copy_per_node   in the node  payload (r-1)/r,   between  payload nodes/GPUs (1 - r/n)
///   all_to_all          in the node  payload (r-1)/n,   between  payload (1 - r/n),   sent  payload (n-1)/n
///   all_gather          sent  payload (n-1)/n, over several nodes 1/r of it between them: a ring through each NIC
/// Source: DeepEP's README of 2025, whose figures count the copies of a token so.
ExchangeBytes exchange_bytes(Bytes payload, const TokenCopies& copies, const ExpertGroup& group,
                             ExpertDispatch dispatch);

/// An exchange alone on the network: NVLink and NICs work at once.
///   t = max( T0(r) + in node / B,  latency + between / (share of the node's NICs) )
/// T0 floor of the node's collectives, B Interconnect::all_to_all.
struct ExchangeTime {
  Seconds fixed{};    ///< in the node
  Seconds latency{};  ///< between nodes, before the first byte
  Seconds nics{};
  Seconds total() const;
};
ExchangeTime exchange_time(const ExchangeBytes& bytes, const ExpertGroup& group,
                           const NodeType& node, const Fabric& fabric);

/// Tokens of the fullest of `ranks` ranks over those of the mean one, where they are not spread evenly: one value for each of 256 draws of
/// sharing out busy experts among ranks, drawn from a fixed seed. All ranks of a group wait for the fullest. Where tokens are spread evenly,
/// one value if experts drop some of them (`capacity` below 1), and none otherwise. The mean is of all tokens, before any is dropped.
std::vector<double> expert_loads(const Transformer::Experts& moe, int ranks);

/// The same of what an exchange moves: an all-gather sends all tokens to all ranks, however full these are.
double exchanged_load(ExpertDispatch dispatch, double load);

/// Share of the copies of tokens that experts take; a capacity drops the others.
double kept_share(const Transformer::Experts& moe);

/// The same in two numbers.
struct ExpertLoad {
  double slowest = 1;  ///< the mean of the draws
  double fullest = 1;  ///< the most of all
};
ExpertLoad expert_load(const Transformer::Experts& moe, int ranks);

}  // namespace windtunnel
