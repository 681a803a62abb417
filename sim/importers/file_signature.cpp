#include "importers/file_signature.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>
#include <vector>

namespace windtunnel {
namespace {

/// A signature: a file that holds all of these words near its beginning is of this kind.
struct Known {
  FileSignature signature;
  std::vector<std::string_view> words;
};

const std::vector<Known>& known_files() {
  static const std::vector<Known> files{
      {{"a map of an InfiniBand fabric, of ibnetdiscover", ""}, {"switchguid="}},
      {{"a map of an InfiniBand fabric, of ibnetdiscover", ""}, {"caguid="}},
      {{"a node's topology as NCCL writes it (NCCL_TOPO_DUMP_FILE)", ""},
       {"<system", "<cpu numaid="}},
      {{"a graph of NCCL's (NCCL_GRAPH_DUMP_FILE)", ""}, {"<graphs", "<graph id="}},
      {{"a topology of Slurm (topology.conf)", ""}, {"SwitchName="}},
      {{"a topology of Slurm (topology.conf)", ""}, {"BlockName="}},
      {{"output of nvbandwidth", ""}, {"nvbandwidth Version"}},
      {{"output of perftest (ib_write_bw and the like)", ""}, {"RDMA_Write"}},
      {{"output of nvidia-smi topo -m", "topo"}, {"GPU0", " X "}},
      {{"output of nccl-tests", "nccl-tests"}, {"algbw", "busbw"}},
      {{"a log of mpiGraph", "mpigraph"}, {"START mpiGraph"}},
      {{"a trace of PyTorch's profiler", "kineto"}, {"\"traceEvents\""}},
      {{"a model's configuration of HuggingFace", "hf-config"},
       {"\"model_type\"", "\"hidden_size\""}},
      {{"a configuration of GPT-NeoX", ""}, {"pipe_parallel_size"}},
      {{"a configuration of GPT-NeoX", ""}, {"pipe-parallel-size"}},
      {{"a launch script of Megatron-LM", ""}, {"#!", "--num-layers"}},
      {{"a shell script", ""}, {"#!/bin/"}},
      {{"a shell script", ""}, {"#!/usr/bin/env bash"}},
  };
  return files;
}

constexpr std::size_t looked_at = std::size_t{64} << 10;  ///< bytes

}  // namespace

const FileSignature* file_signature(const std::filesystem::path& file) {
  std::string text(looked_at, '\0');
  // A pipe gives its text once: opened again, it would wait for a writer for ever.
  std::error_code no_such_file;
  if (!std::filesystem::is_regular_file(file, no_such_file)) return {};
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  for (const Known& known : known_files())
    if (std::all_of(known.words.begin(), known.words.end(), [&](const std::string_view word) {
          return text.find(word) != std::string::npos;
        }))
      return &known.signature;
  return nullptr;
}

}  // namespace windtunnel
