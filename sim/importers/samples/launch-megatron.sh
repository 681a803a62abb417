#!/bin/bash
#SBATCH --nodes=16
#SBATCH --gpus-per-node=8
# A launch script as people write them: variables with defaults, arrays, branches.
TP=${TP:-4}
PP=2
SIZE=${1:-8B}
case $SIZE in
  8B)
    LAYERS=32; HIDDEN=4096; HEADS=32 ;;
  70B|72B)
    LAYERS=80; HIDDEN=8192; HEADS=64 ;;
esac
NODES=$SLURM_NNODES
if [ "$PP" -gt 1 ] && [ "$LAYERS" -ge 32 ]; then
  PIPELINE="--num-layers-per-virtual-pipeline-stage $((LAYERS / PP / 4))"
else
  PIPELINE=
fi
MODEL=(
  --num-layers $LAYERS --hidden-size $HIDDEN
  --num-attention-heads $HEADS --group-query-attention --num-query-groups 8
  --ffn-hidden-size 14336 --seq-length 8192   # of Llama 3 8B
  --swiglu --normalization RMSNorm --position-embedding-type rope
  --untie-embeddings-and-output-weights
)
[ -n "$WANDB_API_KEY" ] && MODEL+=(--wandb-project x)
TRAINING="\
  --micro-batch-size 1 \
  --global-batch-size $((TP * 128)) \
  --lr 3e-4 --bf16 --use-distributed-optimizer --overlap-grad-reduce"
srun torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py \
  ${MODEL[@]} $TRAINING $PIPELINE \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \
  --sequence-parallel --moe-strange-thing 3 2>&1 | tee train.log
