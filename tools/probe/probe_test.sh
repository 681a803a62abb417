#!/usr/bin/env bash
# Runs the script that the program prints, alone and as two processes, and has the program read what it writes. Without PyTorch: 77, skipped.
#   tools/probe/probe_test.sh PROGRAM
set -euo pipefail
program=$(realpath -- "${1:?usage: probe_test.sh PROGRAM}")
repository=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
python=
for each in python3 /usr/bin/python3; do
  if "$each" -c 'import torch' 2>/dev/null; then python=$each; break; fi
done
if [[ -z $python ]]; then echo "no PyTorch: left out"; exit 77; fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export WINDTUNNEL_DATA=$repository OMP_NUM_THREADS=1
export CUDA_VISIBLE_DEVICES=  # the reduced form, wherever this runs
"$program" probe --script >probe.py

# Codecs: what is lossless is, and the rest loses no more than its bits.
"$python" - <<'END'
import torch, probe
torch.manual_seed(0)
x = torch.randn(4096) * torch.exp(torch.randn(4096))
assert torch.equal(probe.mpc_decode(probe.mpc_encode(x)).view(torch.int32), x.view(torch.int32))
words = torch.randint(-2**31, 2**31 - 1, (8, 32)).to(torch.int32)
transposed = probe.transpose_bits(words)
assert all(((int(transposed[0, i]) >> j) & 1) == ((int(words[0, j]) >> i) & 1) for i in range(32) for j in range(32))
for bits, error in ((8, 0.5), (16, 2e-3), (24, 1e-5)):
    loss = (x - probe.zfp_decode(probe.zfp_encode(x, bits), bits)).view(-1, 4).abs().amax(1) / x.view(-1, 4).abs().amax(1)
    assert loss.max() < error, (bits, loss.max())
assert (x - probe.int8_decode(probe.int8_encode(x))).abs().max() <= x.abs().max() / 127 / 2 * 1.001
largest = probe.topk_decode(probe.topk_encode(x, 40), 4096)
assert int((largest != 0).sum()) == 40 and largest.abs().max() == x.abs().max()
matrix = torch.randn(64, 4) @ torch.randn(4, 48)
p, q = probe.powersgd_encode(matrix, torch.randn(48, 4))
assert (p @ q.T - matrix).abs().max() < 1e-3
END

# reads_all FILE: nothing is wrong with the file but that there was no GPU.
reads_all() {
  local code=0
  "$program" import probe "$1" --base selene-a100 -o made.json >stdout 2>stderr || code=$?
  [[ $code = 2 && $(grep -c 'error: ' stderr) = 1 ]] && grep -q 'the script found no GPU' stderr && return
  cat stderr
  echo "FAILED: import of $1 exits with $code"
  exit 1
}
"$python" probe.py --seconds 60 -o one.json 2>stderr
grep -q 'finds no GPU' stderr
reads_all one.json
for kind in gemm copy launch norm optimizer codec; do grep -q "\"kind\": \"$kind\"" one.json; done
for codec in powersgd topk int8 mpc_like zfp_like; do grep -q "\"codec\": \"$codec\"" one.json; done
# What torchrun sets for each of two processes; that of Debian 12 does not run with its own Python.
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port WORLD_SIZE=2 LOCAL_WORLD_SIZE=2
RANK=1 LOCAL_RANK=1 "$python" probe.py --seconds 100 -o other.json 2>log.1 &
RANK=0 LOCAL_RANK=0 "$python" probe.py --seconds 100 -o two.json 2>log.0 || { cat log.0; exit 1; }
wait $! || { cat log.1; exit 1; }
unset WORLD_SIZE LOCAL_WORLD_SIZE
[[ ! -e other.json ]]
reads_all two.json
grep -q '"kind": "collective", "name": "all_reduce", "ranks": 2' two.json

# What does not fit into the time is left out, and named.
"$python" probe.py --seconds 0.001 -o none.json 2>stderr
grep -q 'gemm: the rest, out of time' none.json
echo "the script runs alone and as two processes, and its files are read"
