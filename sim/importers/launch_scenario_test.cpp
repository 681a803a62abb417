#include "importers/launch_scenario.hpp"

#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

LaunchSettings script(const std::string& text, const std::string& arguments = {}) {
  return read_launch_script(SourceText{"run.sh", text, {}}, arguments);
}

/// "key=value; …" of what a script says of its program.
std::string said(const std::string& text, const std::string& arguments = {}) {
  std::string list;
  for (const LaunchSetting& setting : script(text, arguments).settings)
    list += (list.empty() ? "" : "; ") + setting.key + "=" + setting.value;
  return list;
}

ImportRun launch(const char* kind, const char* base = "dgx-h100") {
  ImportRun run(kind);
  run.request.options.base = base;
  return run;
}

/// What is said of a program of Megatron-LM with these options on 8 GPUs.
std::string messages_of(const std::string& options, const char* file = "run.sh") {
  ImportRun run = launch("megatron");
  run.request.options.gpus = 8;
  run.with(file, "python t.py " + options + "\n").run();
  return run.messages;
}

std::string json_at(const ImportRun& run, const char* pointer) {
  const JsonValue document = run.document();
  const JsonValue* const value = find_at(document, pointer);
  return value == nullptr ? "none" : canonical_text(*value);
}

}  // namespace

TEST_CASE("variables, defaults and sums of a launch script are followed") {
  CHECK(said("A=4\nB=${C:-$((A * 2))}\npython train.py --x $A --y=\"$B\" --z ${A}k\n") ==
        "x=4; y=8; z=4k");
  CHECK(said("ARGS=(--x 1\n  --y 2)  # two\nARGS+=(--z)\ntorchrun train.py ${ARGS[@]}\n") ==
        "x=1; y=2; z=");
  CHECK(said("A='--x 1'\nA+=' --y 2'\npython -u train.py $A \\\n  --z 3 >log 2>&1\n") ==
        "x=1; y=2; z=3");
}

TEST_CASE("branches of a launch script are taken as the shell would take them") {
  const std::string branch =
      "S=$1\nif [ $S = 7B ]; then L=32\nelif [[ $S == 13B ]]; then L=40; else L=80; fi\n"
      "python train.py --num-layers $L\n";
  CHECK(said(branch, "7B") == "num-layers=32");
  CHECK(said(branch, "13B") == "num-layers=40");
  CHECK(said(branch) == "num-layers=80");
  const std::string choice =
      "case $SIZE in\n  7B|8B) L=32 ;;\n  70*) L=80 ;;\n  *) L=1 ;;\nesac\n"
      "python train.py --num-layers $L\n";
  CHECK(said(choice, "SIZE=8B") == "num-layers=32");
  CHECK(said(choice, "SIZE=70B") == "num-layers=80");
  CHECK(said(choice) == "num-layers=1");
  const std::string sum = "if (( N * 8 > 64 )); then T=8; else T=4; fi\npython train.py --t $T\n";
  CHECK(said(sum, "N=16") == "t=8");
  CHECK(said(sum, "N=8") == "t=4");
  CHECK(said("[ -z \"$X\" ] && X=3\n[ -n \"$Y\" ] && X=4\npython train.py --x $X\n") == "x=3");
}

TEST_CASE("sums of a launch script compare and choose") {
  const auto sum = [](const std::string& text) {
    return said("A=$((" + text + "))\npython t.py --x ${A:-none}\n", "N=4");
  };
  CHECK(sum("(N > 1) ? 8 : 2") == "x=8");
  CHECK(sum("N < 4 ? 1 : N == 4 ? N * 2 : 3") == "x=8");
  CHECK(sum("1 + (N >= 4) + (N != 4)") == "x=2");
  CHECK(sum("N <= 3") == "x=0");
  CHECK(sum("N ? 1") == "x=$((4 ? 1))");
  std::string nested = "1";
  for (int i = 0; i < 20000; ++i) nested += " ? 1";
  CHECK(sum(nested).starts_with("x=$((1 ? 1 ? 1"));
  CHECK(sum("!0 + !N") == "x=1");
  CHECK(sum(std::string(1000000, '!')).starts_with("x=$((!!!"));
  CHECK(said("if (( N * 2 >= 8 )); then X=1; fi\npython t.py --x ${X:-0}\n", "N=4") == "x=1");
  CHECK(said("((M = N * 2))\n((M += 1))\nlet K=M-2 'L = K % 4'\n((K++))\n"
             "python t.py --m $M --k $K --l $L\n",
             "N=4") == "m=9; k=8; l=3");
  CHECK(said("((M = 2 ** N))\npython t.py --m $M\n", "N=4") == "m=$((2**N))");
}

TEST_CASE("a program in quotes, in a here document or in a loop is found") {
  CHECK(said("srun bash -c \"python train.py --x 1\"\n") == "x=1");
  CHECK(said("cat >job.sh <<EOF\ntorchrun train.py --x 1\nEOF\nsbatch job.sh\n") == "x=1");
  CHECK(said("CMD=\"torchrun train.py --x 1\"\neval $CMD\n") == "x=1");
  CHECK(said("CMD=\"cd /a;\npython t.py --x 1\"\nsbatch <<E\nsrun bash -c \"${CMD}\"\nE\n") ==
        "x=1");
  CHECK(said("for TP in 2 4; do\npython train.py --x $TP\ndone\n") == "x=2");
  CHECK(script("for TP in 2 4; do\npython train.py --x $TP\ndone\n").notes.size() == 1);
}

TEST_CASE("of several programs the one with the most options of its own is the training") {
  const std::string prepare =
      "srun -N 4 -n 32 --exclusive --mem 0 --time 10 --partition a python prepare.py --input x\n";
  const std::string train = "torchrun --nnodes 2 pretrain_gpt.py --a 1 --b 2 --c 3 --d 4\n";
  for (const std::string& text : {prepare + train, train + prepare}) {
    const LaunchSettings found = script(text);
    CHECK(found.program == "pretrain_gpt.py");
    CHECK(found.find("launcher-nodes") == nullptr);
  }
  // Among equals, the one that is launched on more than the machine itself.
  CHECK(script("python prepare.py --x 1\nsrun -N 4 python train.py --y 2\n").program == "train.py");
  CHECK(script("srun -N 4 python train.py\n").program == "train.py");
}

TEST_CASE(
    "tests of several terms, declarations and all arguments are read as the shell reads them") {
  CHECK(said("[[ $A == 1 && $B == 2 ]] && X=3\npython t.py --x ${X:-1}\n", "A=1") == "x=1");
  CHECK(said("[[ $A == 1 || $B == 2 ]] && X=3\npython t.py --x ${X:-1}\n", "A=1") == "x=3");
  CHECK(said("declare -a A=(--x 1)\nreadonly -r B=2\npython t.py ${A[@]} --y $B\n") == "x=1; y=2");
  CHECK(said("python t.py \"$@\"\n", "--x 1") == "x=1");
  CHECK(said("echo python t.py --a --b\npython t.py --x 1\n") == "x=1");
}

TEST_CASE("no command of a launch script is run") {
  TemporaryFolder folder;
  const std::string file = (folder.path() / "made").string();
  said("touch " + file + "\nA=$(touch " + file + ")`touch " + file + "`\npython train.py --x $A\n");
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a program whose name stands in a variable of a shell in single quotes is found") {
  CHECK(said("L='python -u'\nC='t.py --x 1'\nsrun bash -c '$L $C'\n") == "x=1");
}

TEST_CASE("fields and arguments are counted, and digits freed of underscores") {
  CHECK(said("A=(--x 1)\n[ ${#A[@]} -gt 1 ] && A+=(--y 2)\npython t.py ${A[@]+\"${A[@]}\"}\n") ==
        "x=1; y=2");
  CHECK(said("if [ $# -eq 2 ]; then X=$2; fi\npython t.py --x $X\n", "3 4") == "x=4");
  CHECK(said("T=1_000_000\npython t.py --x ${T//_} --y ${T:?unset}\n") == "x=1000000; y=1_000_000");
}

TEST_CASE("parts of a value are cut and replaced as the shell does it") {
  const auto value = [](const std::string& expansion) {
    return said("S=llama-7B.tar.gz\nN=S\npython t.py --x " + expansion + "\n", "2 4 8");
  };
  CHECK(value("${S%.*}") == "x=llama-7B.tar");
  CHECK(value("${S%%.*}") == "x=llama-7B");
  CHECK(value("${S#*.}") == "x=tar.gz");
  CHECK(value("${S##*.}") == "x=gz");
  CHECK(value("${S%x}") == "x=llama-7B.tar.gz");
  CHECK(value("${S%\"${S#*-}\"}") == "x=llama-");
  CHECK(value("${S/a/o}") == "x=lloma-7B.tar.gz");
  CHECK(value("${S//a/o}") == "x=llomo-7B.tor.gz");
  CHECK(value("${S//[a-z.]}") == "x=-7B");
  CHECK(value("${S:6:2}") == "x=7B");
  CHECK(value("${S: -2}") == "x=gz");
  CHECK(value("${S:6:-7}") == "x=7B");
  CHECK(value("${S:$(( 2 * 3 ))}") == "x=7B.tar.gz");
  CHECK(value("${S^^}") == "x=LLAMA-7B.TAR.GZ");
  CHECK(value("${S,,}") == "x=llama-7b.tar.gz");
  CHECK(value("${!N}") == "x=llama-7B.tar.gz");
  CHECK(value("${#S}") == "x=15");
  CHECK(value("${1:-3}-${9:-3}-${10:-5}") == "x=2-3-5");
  CHECK(value("$#") == "x=3");
  CHECK(value("${#}") == "x=3");
}

TEST_CASE(
    "loops over arguments are followed, and other loops up to the one that starts a program") {
  const std::string options =
      "TP=1\nwhile [[ $# -gt 0 ]]; do\n  case $1 in\n    --tp) TP=$2; shift 2 ;;\n"
      "    --pp=*) PP=${1#*=}; shift ;;\n    --) shift; break ;;\n    *) REST+=\" $1\"; shift ;;\n"
      "  esac\ndone\npython t.py --t $TP --p ${PP:-1} --r \"$REST\" --left \"$@\"\n";
  CHECK(said(options, "--tp 8 a --pp=4 b -- c") == "t=8; p=4; r= a b; left=c");
  CHECK(said(options) == "t=1; p=1; r=; left=");
  CHECK(said("for a in \"$@\"; do case $a in tp=*) T=${a#tp=} ;; esac; done\npython t.py --t $T\n",
             "-v tp=4 x") == "t=4");
  CHECK(said("for i in 1 2 3 4; do [ $i = 2 ] && continue\n[ $i = 4 ] && break\nL+=$i,\ndone\n"
             "python t.py --l $L\n") == "l=1,3,");
  CHECK(said("i=0\nuntil [ $i -ge 3 ]; do i=$((i+1)); done\npython t.py --i $i\n") == "i=3");
  CHECK(said("while true; do python t.py --x 1; sleep 1; done\n") == "x=1");
  CHECK(said("for ((i=0; i<2; i++)); do python t.py --x 1; done\n") == "x=1");
  CHECK(said("set -- --x 3\npython t.py \"$@\"\n") == "x=3");
  CHECK(said("f() {\n  local a=$1; shift; }\nfunction g { shift; }\npython t.py --x $1\n", "3") ==
        "x=3");
  const LaunchSettings endless = script("while [ 1 -eq 1 ]; do A+=x; done\npython t.py --x 1\n");
  CHECK(endless.notes.size() == 1);
  CHECK(endless.text("x") == "1");
}

TEST_CASE("a setting that depends on a value that cannot be known is refused, others are noted") {
  std::string messages;
  const auto problem = [&](const std::string& text, const std::string& arguments = {}) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    run.request.options.arguments = arguments;
    run.with("run.sh", "GPU=$(nvidia-smi -L | head -1)\n" + text + "python t.py --bf16 $A\n");
    const std::string found = run.problem();
    messages = run.messages;
    return found;
  };
  const std::string test =
      "if [[ $GPU == *H100* ]]; then\n  A=\"--tensor-model-parallel-size 8\"\nfi\n";
  const std::string refusal = problem(test);
  CHECK(contains(refusal,
                 "run.sh, line 2: tensor-model-parallel-size depends on whether "
                 "$(nvidia-smi) == *H100*, which cannot be known"));
  CHECK(contains(refusal, "give --args \"GPU=VALUE\""));
  CHECK(problem(test, "GPU=H100") == "");
  CHECK(problem(test, "GPU=A100") == "");
  CHECK(contains(problem("case $(uname -n) in a*) A=--fp16 ;; *) A= ;; esac\n"),
                 "line 2: fp16 depends on whether $(uname) == a*"));
  CHECK(problem("[ `hostname` = a ] && A=\"--save x\"\n") == "");
  CHECK(contains(messages,
                 "line 2: the test \"$(hostname) = a\" is taken as false; it decides save"));
  CHECK(contains(problem("if (( 2 ** 3 > 1 )); then A=\"--tensor-model-parallel-size 8\"; fi\n"),
                 "tensor-model-parallel-size depends on whether $((2**3>1))"));
  CHECK(contains(problem("A=\"--tensor-model-parallel-size $((2 ** 3))\"\n"), "$((2 ** 3))"));
  CHECK(problem("if (( 3 > 1 && !(2 > 3) )); then A=\"--tensor-model-parallel-size 8\"; fi\n") ==
        "");
  CHECK(problem("[[ small =~ big ]] && A=\"--tensor-model-parallel-size 8\"\n") == "");
  CHECK(contains(messages, "the test \"small =~ big\" is taken as false; it decides tensor"));
  CHECK(problem("[ -f /x ] && A=\"--tensor-model-parallel-size 8\"\n") == "");
  CHECK(contains(messages, "line 2: the test \"-f /x\" is taken as false; it decides tensor"));
  CHECK(problem("if grep -q H100 /x; then A=\"--tensor-model-parallel-size 8\"; fi\n") == "");
  CHECK(contains(messages, "the test \"grep -q H100 /x\" is taken as false; it decides tensor"));
  CHECK(problem("if cd /x; then A=\"--save x\"; fi\nif mkdir /y; then echo made; fi\n") == "");
  CHECK_FALSE(contains(messages, "is taken as false"));
  CHECK(problem("[ -f /x ] && A=\"--save x\"\n[ -z \"$GPU\" ] && B=1\n") == "");
  CHECK_FALSE(contains(messages, "is taken as false"));
}

TEST_CASE("a script that runs what a command prints says so where it starts no other program") {
  CHECK(contains(launch("megatron").with("run.sh", "A=1\neval \"$(python make.py)\"\n").problem(),
                 "line 2: what $(python) prints is run, and is not known"));
  CHECK(script("eval \"$(conda shell.bash hook)\"\npython t.py --x 1\n").notes.empty());
}

TEST_CASE("layers that do nothing are none of the model's, and their stages have fewer") {
  std::string messages;
  const auto model = [&](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 32;
    run.with("run.sh",
             "python t.py --num-layers 16 --hidden-size 512 --num-attention-heads 8 --seq-length "
             "1024 --vocab-size 50000 --micro-batch-size 1 --global-batch-size 128 --bf16 "
             "--pipeline-model-parallel-size 4 " +
                 options + "\n")
        .run();
    messages = run.messages;
    return json_at(run, pointer);
  };
  const char* const stages = "/parallel/stage_layers";
  CHECK(model("--noop-layers 0,14,15", "/model/layers") == "13");
  CHECK(model("--noop-layers 0,14,15", stages) == "\"Et*3|t*4|t*4|t*2,L\"");
  CHECK_FALSE(contains(messages, "not used"));
  // Two chunks of two layers on each stage.
  CHECK(model("--noop-layers 15 --num-layers-per-virtual-pipeline-stage 2", stages) ==
        "\"Et*2|t*2|t*2|t*2|t*2|t*2|t*2|t*1,L\"");
  // Parts of two layers in a V: the first stage has the first and the last.
  CHECK(model("--noop-layers 15 --schedules-method dualpipev", stages) ==
        "\"Et*2|t*2|t*2|t*2|t*2|t*2|t*2|t*1,L\"");
  CHECK(model("--enable-zbh1-pipeline", "/parallel/schedule") == "\"zero_bubble_h1\"");
  const std::string experts =
      "--tensor-model-parallel-size 2 --sequence-parallel --num-experts 8 --moe-router-topk 2 "
      "--expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall ";
  CHECK(model(experts + "--moe-tp-extend-ep", "/parallel/expert") == "4");
  CHECK(model(experts + "--moe-tp-extend-ep", "/parallel/expert_tensor") == "1");
  CHECK(model(experts + "--moe-tp-extend-ep --expert-tensor-parallel-size 2",
              "/parallel/expert_tensor") == "1");
  CHECK(contains(messages, "warning: expert-tensor-parallel-size 2 is not used"));
  CHECK(model(experts, "/parallel/expert") == "2");
  // Of three dense layers at the beginning, the first does nothing.
  CHECK(model(experts + "--first-k-dense-replace 3 --noop-layers 0,15",
              "/model/moe/dense_layers") == "2");
  const char* const adapters = "/training/lora_target_modules";
  CHECK(model("--lora-r 8 --lora-alpha 16 --lora-target-modules linear_qkv linear_fc1 router",
              adapters) == R"(["q_proj","k_proj","v_proj","up_proj"])");
  CHECK(contains(messages, "lora-target-modules router is not one of linear_qkv, linear_proj"));
  CHECK(model("--swiglu --lora-target-modules linear_proj linear_fc1 linear_fc2", adapters) ==
        R"(["o_proj","gate_proj","up_proj","down_proj"])");
  CHECK(model("--lora-target-modules linear_proj linear_proj", adapters) == R"(["o_proj"])");
  CHECK(model("--lora-target-modules linear_proj", "/training/lora_rank") == "16");
  CHECK(model("--lora-r 8", "/training/lora_rank") == "none");
  CHECK(model("--lora-target-modules linear_proj --lora-dropout 0.05", "/training/lora_dropout") ==
        "0.05");
  CHECK(model("--num-layer-list 3,5,5,3", stages) == "\"Et*3|t*5|t*5|t*3,L\"");
  CHECK(model("--geglu", "/model/gated_mlp") == "true");
  CHECK(model("--gelu-tanh", "/model/gated_mlp") == "true");
}

TEST_CASE("the vocabulary is that of the tokenizer that a script names") {
  std::string messages;
  const auto vocabulary = [&](const std::string& options, const char* file = "run.sh") {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.with(file,
             "python t.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
             "--group-query-attention --num-query-groups 8 --ffn-hidden-size 14336 --swiglu "
             "--normalization RMSNorm --seq-length 8192 --bf16 " +
                 options + "\n")
        .run();
    messages = run.messages;
    return json_at(run, "/model/vocab");
  };
  CHECK(vocabulary("") == "128256");  // of the layers of Llama 3
  CHECK(
      vocabulary("--tokenizer-type Llama2Tokenizer --tokenizer-model /m/Mistral-7B-v0.1/t.model") ==
      "32000");
  CHECK(contains(messages, "32000 tokens, is that of mistral: tokenizer-model /m/Mistral-7B-v0.1"));
  CHECK(vocabulary("--tokenizer-type Llama2Tokenizer") == "32000");
  CHECK(vocabulary("--tokenizer-name-or-path /m/Meta-Llama-3.1-8B") == "128256");
  CHECK(vocabulary("--tokenizer-name-or-path /m/DeepSeek-R1-Distill-Llama-8B") == "128256");
  CHECK(vocabulary("--tokenizer-model Qwen/Qwen2.5-7B") == "152064");
  CHECK(vocabulary("--tokenizer-model deepseek-ai/DeepSeek-V3") == "129280");
  CHECK(vocabulary("--tokenizer-model /m/gemma-2-9b") == "256000");
  CHECK(vocabulary("--vocab-file /m/gpt2-vocab.json") == "50257");
  CHECK(vocabulary("", "pretrain_mistral_7b.sh") == "32000");
  CHECK(vocabulary("--vocab-size 64000 --tokenizer-model /m/mistral") == "64000");
}

TEST_CASE("biases that a model of RMSNorm is simulated without are told") {
  const auto messages = [](const std::string& options) {
    return messages_of(
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16 --swiglu "
        "--vocab-size 32000 --seq-length 4096 " +
        options);
  };
  const std::string told = "is simulated without them";
  CHECK(contains(messages("--normalization RMSNorm"), told));
  CHECK_FALSE(contains(messages("--normalization RMSNorm --disable-bias-linear"), told));
  CHECK_FALSE(contains(messages("--normalization LayerNorm"), told));
}

TEST_CASE("a size of the vocabulary that no tokenizer's name says is called a guess") {
  const auto messages = [](const std::string& options, const std::string& ffn = "14336",
                           const char* file = "run.sh") {
    return messages_of(
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention "
        "--num-query-groups 8 --swiglu --normalization RMSNorm --seq-length 8192 --bf16 "
        "--ffn-hidden-size " +
            ffn + " " + options,
        file);
  };
  const std::string says = "; padded-vocab-size in the file, or /model/vocab in the scenario";
  const std::string kind = "--tokenizer-type Llama2Tokenizer";
  CHECK(contains(messages(kind),
                 "import: the size of the vocabulary, 32000 tokens, is a guess, that of llama2: "
                 "tokenizer-type Llama2Tokenizer" +
                     says));
  CHECK(contains(messages(kind + " --tokenizer-model /m/t.model"),
                 "warning: the size of the vocabulary, 32000 tokens, is a guess, that of llama2: "
                 "tokenizer-type Llama2Tokenizer (tokenizer-model /m/t.model is not known)" +
                     says));
  CHECK(contains(messages(kind + " --load /m/Meta-Llama-3-8B"),
                 "Llama2Tokenizer (load /m/Meta-Llama-3-8B is of llama3)" + says));
  CHECK(
      contains(messages("--load /m/qwen2.5 --tokenizer-model /m/t.model"),
               "warning: the size of the vocabulary, 152064 tokens, is a guess, that of qwen: load "
               "/m/qwen2.5 (tokenizer-model /m/t.model is not known)" +
                   says));
  CHECK(contains(messages("", "14336", "pretrain_mistral_7b.sh"),
                 "warning: the size of the vocabulary, 32000 tokens, is a guess"));
  CHECK(contains(messages(""),
                 "warning: the size of the vocabulary is a guess, that of llama3-8b, whose layers "
                 "have the same sizes" +
                     says));
  // Of no model with such layers.
  CHECK(
      contains(messages("--tokenizer-model /m/t.model", "11008"),
               "size of the vocabulary (tokenizer-model /m/t.model is not known); 32000 tokens are "
               "assumed: see /model/vocab"));
  CHECK_FALSE(contains(messages("--tokenizer-model /m/mistral"), "guess"));
  CHECK_FALSE(contains(messages(kind + " --vocab-size 40000"), "guess"));
}

TEST_CASE("tokens that Pai-Megatron-Patch adds are counted with those of its tokenizer") {
  std::string messages;
  const auto model = [&](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.with("run.sh",
             "python t.py --num-layers 28 --hidden-size 3584 --num-attention-heads 28 --seq-length "
             "4096 --bf16 --swiglu --patch-tokenizer-type " +
                 options + "\n")
        .run();
    messages = run.messages;
    return json_at(run, pointer);
  };
  CHECK(model("Qwen2Tokenizer --extra-vocab-size 421", "/model/vocab") ==
        "152064");  // 151643 + 421
  CHECK(model("Qwen2Tokenizer --extra-vocab-size 421", "/model/vocab_divisor") == "1");
  CHECK(model("LLama3Tokenizer --extra-vocab-size 256", "/model/vocab") == "128256");
  CHECK_FALSE(contains(messages, "not used"));
  CHECK(model("FalconTokenizer --extra-vocab-size 9", "/model/vocab") == "32000");
  CHECK(contains(messages, "warning: extra-vocab-size 9 is not used"));
}

TEST_CASE("parts of a launch script that are not followed are named with their line") {
  CHECK(script("A=1\nsource \"$D/common.sh\"\n. ~/.bashrc\n").notes ==
        std::vector<std::string>{
            "line 2: /common.sh is sourced and not read: copy its lines into the script"});
  CHECK(script("A=${A@Q}\nB=${!B*}\npython t.py --x 1\n").notes.empty());  // of nothing
  CHECK(script("B=1\nA=${B@Q}\npython t.py --x 1\n").notes ==
        std::vector<std::string>{"line 2: ${B@Q} is not followed: write its value"});
  const std::string loop = "while getopts n: o; do\nN=$OPTARG\ndone\npython t.py --x 1\n";
  CHECK(script(loop).notes.empty());
  CHECK(script(loop, "-n 4").notes ==
        std::vector<std::string>{
            "line 1: the loop is not followed: write what it sets into the script"});
  const auto problem = [](const std::string& option) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    return run.with("run.sh", "S=13B\npython t.py --bf16 " + option + "\n").problem();
  };
  const std::string unread = problem("--num-layers ${S@Q}");
  CHECK(contains(unread, "run.sh, line 2: num-layers ${S@Q} cannot be read"));
  CHECK(contains(unread, "write its value there"));
  CHECK(contains(problem("--num-layers $(cat layers)"), "num-layers $(cat) cannot be read"));
  CHECK(problem("--save ${S@Q}") == "");
  CHECK(contains(launch("megatron").with("run.sh", "source args.sh\n$RUN\n").problem(),
                 "line 1: args.sh is sourced and not read"));
}

TEST_CASE("options that commands decide are named at once, with the lines of their variables") {
  const auto problem = [](const std::string& text, const std::string& arguments = {}) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    run.request.options.arguments = arguments;
    return run.with("run.sh", text).problem();
  };
  const std::string text =
      "TP=$(cat tp)\nexport CP=$(cat cp)\nARGS=\"--tensor-model-parallel-size $TP\"\nSEQ=$((CP * "
      "4096))\npython t.py --bf16 $ARGS --seq-length $SEQ --context-parallel-size $CP\n";
  const std::string both = problem(text);
  CHECK(
      contains(both,
               "run.sh, line 5: tensor-model-parallel-size $(cat) cannot be read (line 1 sets TP); "
               "line 5: seq-length $(cat) cannot be read (line 2 sets CP); line 5: "
               "context-parallel-size $(cat) cannot be read (line 2 sets CP)"));
  CHECK(contains(both, "give --args \"TP=VALUE CP=VALUE\""));
  CHECK_FALSE(contains(problem(text, "CP=2"), "seq-length"));
  CHECK(problem(text, "CP=2 TP=2") == "");
  // Of a list of options there is no variable to give.
  const std::string list = problem("ARGS=\"--seq-length $(cat s)\"\npython t.py --bf16 $ARGS\n");
  CHECK(contains(list, "line 2: seq-length $(cat) cannot be read (line 1 sets ARGS)"));
  CHECK(contains(list, "write its value there"));
}

TEST_CASE("a number of nodes that a command decides is named with its line, unless it is known") {
  const auto problem = [](const std::string& launcher, int gpus = 0,
                          const std::string& arguments = {}) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = gpus;
    run.request.options.model = "llama2-7b";
    run.request.options.arguments = arguments;
    return run
        .with("run.sh", "NODES=$(scontrol show hostnames | wc -l)\n" + launcher +
                            " --nnodes $NODES t.py --bf16\n")
        .problem();
  };
  const std::string torchrun = "torchrun --nproc_per_node 8";
  const std::string unread = problem(torchrun);
  CHECK(contains(unread, "run.sh, line 2: nnodes $(scontrol) cannot be read (line 1 sets NODES)"));
  CHECK(contains(unread, "give --args \"NODES=VALUE\", or --gpus N"));
  CHECK(problem(torchrun, 64) == "");
  CHECK(problem(torchrun, 0, "NODES=2") == "");
  CHECK(problem("srun -N 4 " + torchrun) == "");
  CHECK(contains(problem("torchrun --nproc_per_node $(nproc)", 0, "NODES=2"),
                 "run.sh, line 2: nproc_per_node $(nproc) cannot be read"));
}

TEST_CASE("a number of nodes or GPUs that is no number is refused with its variable and value") {
  const auto problem = [](const std::string& launcher, const std::string& arguments = {},
                          int gpus = 0) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = gpus;
    run.request.options.model = "llama2-7b";
    run.request.options.arguments = arguments;
    return run.with("run.sh", "NNODES=${NNODES:-4}\n" + launcher + " t.py --bf16\n").problem();
  };
  const std::string nodes = "torchrun --nproc_per_node 8 --nnodes $NNODES";
  CHECK(problem(nodes) == "");
  CHECK(contains(problem(nodes, "NNODES=x"),
                 "run.sh, line 2: nnodes x is no whole number (NNODES=x of --args)"));
  CHECK(contains(problem(nodes, "NNODES=2.5"), "nnodes 2.5 is no whole number"));
  CHECK(problem(nodes, "NNODES=x", 32) == "");
  CHECK(contains(problem("torchrun --nproc_per_node ${G} --nnodes 2", "G=many"),
                 "nproc_per_node many is no whole number (G=many of --args)"));
  CHECK(problem("torchrun --nproc_per_node gpu --nnodes 1:2") == "");
  CHECK(contains(problem("srun --nodes=x torchrun --nproc_per_node 8"), "x is no whole number"));
}

TEST_CASE("GPUs that are no multiple of the degrees come with the guess that they follow from") {
  CHECK(contains(launch("megatron")
                     .with("run.sh",
                           "torchrun --nproc_per_node 8 --nnodes $NNODES t.py --bf16 "
                           "--tensor-model-parallel-size 16\n")
                     .problem(),
                 "run.sh: 8 GPUs are no multiple of 16, its tensor, pipeline and context degrees "
                 "(the file does not say how many nodes: 1 of 8 GPUs is assumed"));
}

TEST_CASE("messages have keys as the file writes them") {
  ImportRun run = launch("nemo");
  run.request.options.gpus = 8;
  run.request.options.model = "llama2-7b";
  run.with("run.yaml",
           "model:\n  tensor_model_parallel_size: 2\n  sequence_parallel: true\n"
           "  ub_tp_comm_overlap: true\n  some_new_key: 1\n  global_batch_size: 8\n")
      .run();
  CHECK(contains(run.messages, "ub_tp_comm_overlap is not used"));
  CHECK(contains(run.messages, "some_new_key 1"));
  ImportRun script = launch("megatron");
  script.request.options.gpus = 8;
  script.request.options.model = "llama2-7b";
  script.with("run.sh", "python t.py --bf16 --num_query_groups 8 --some-option 1\n").run();
  CHECK(contains(script.messages, "num_query_groups has no effect without group-query-attention"));
  CHECK(contains(script.messages, "some-option 1"));
}

TEST_CASE("what is wrong with a scenario names the option of the script that it follows from") {
  const auto problem = [](const std::string& options) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 16;
    return run
        .with("run.sh",
              "\npython t.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
              "--seq-length 4096 --vocab-size 32000 --bf16 --use-distributed-optimizer " +
                  options + "\n")
        .problem();
  };
  CHECK(contains(problem("--micro-batch-size 4 --global-batch-size 6"),
                 "run.sh, line 2, global-batch-size 6: global_batch 6 is no multiple of"));
  CHECK(contains(problem("--num-experts 8 --num-distributed-optimizer-instances 2"),
                 "run.sh, line 2, num-distributed-optimizer-instances 2: states of experts are"));
  // 33 layers do not divide, and no option of the file says how they are spread.
  CHECK(contains(
      problem("--pipeline-model-parallel-size 4 --context-parallel-size 4 --num-layers 33"),
      "run.sh, line 2, pipeline-model-parallel-size 4: "));
}

TEST_CASE("what is wrong with a scenario of torchtitan names the key that it follows from") {
  ImportRun run = launch("torchtitan");
  run.request.options.gpus = 8;
  CHECK(
      contains(run.with("run.toml",
                        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n"
                        "local_batch_size = 3\nglobal_batch_size = 10\n")
                   .problem(),
               "run.toml, line 6, training.global_batch_size 10: global_batch 10 is no multiple"));
}

TEST_CASE("an assignment behind arguments of the script is told to be none") {
  const auto run = [](const std::string& arguments) {
    ImportRun launched = launch("megatron");
    launched.request.options.model = "llama2-7b";
    launched.request.options.arguments = arguments;
    launched.with("run.sh",
                  "torchrun --nnodes $WORLD_SIZE --nproc_per_node ${GPUS:-8} t.py --bf16\n");
    const std::string problem = launched.problem();
    return problem + launched.messages;
  };
  const std::string hint =
      "WORLD_SIZE=2 of --args is an argument of the script, as it follows others";
  CHECK(contains(run("dlc 7B WORLD_SIZE=2"), hint));
  CHECK_FALSE(contains(run("WORLD_SIZE=2 dlc 7B"), hint));
  CHECK(contains(run("GPUS=0 dlc WORLD_SIZE=2"), "give --gpus N; " + hint));
}

TEST_CASE("variables in a YAML file of arguments have the values that --args gives") {
  const std::string file =
      "MODEL_ARGS:\n  --num-layers: 4\n  --hidden-size: 512\n  --num-attention-heads: 8\n"
      "  --seq-length: ${SEQ_LEN}\n  --bf16: true\n";
  ImportRun run = launch("megatron");
  run.request.options.gpus = 8;
  run.request.options.arguments = "TP=2 SEQ_LEN=4096";
  run.with("run.yaml", file).run();
  CHECK(json_at(run, "/model/sequence") == "4096");
  ImportRun without = launch("megatron");
  without.request.options.gpus = 8;
  CHECK(contains(without.with("run.yaml", file).problem(),
                 "line 5: seq-length ${SEQ_LEN} cannot be evaluated, and is left out"));
  ImportRun layers = launch("megatron");
  layers.request.options.gpus = 8;
  const std::string open = replaced(file, "--num-layers: 4", "--num-layers: ${LAYERS}");
  CHECK(contains(layers.with("run.yaml", open).problem(), "or --args \"LAYERS=VALUE\""));
  ImportRun nodes = launch("nemo");
  CHECK(contains(
      nodes.with("n.yaml", "trainer:\n  devices: ${GPUS}\nmodel:\n  num_layers: 2\n").problem(),
      "give --gpus N, or --args \"GPUS=VALUE\""));
  ImportRun tensor = launch("megatron");
  tensor.request.options.gpus = 8;
  tensor.request.options.arguments = "SEQ_LEN=512";
  tensor.with("run.yaml", file + "  --tensor-model-parallel-size: ${TP}\n").run();
  CHECK(contains(tensor.messages, "and is left out: --args \"TP=VALUE\" would say it"));
}

TEST_CASE("a launch script that grows or nests without end is read in time") {
  std::string text = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 80; ++i) text += "A=$A$A\n";
  CHECK(said(text + "python train.py --x 1\n") == "x=1");
  std::string nested = "A=";
  for (int i = 0; i < 20000; ++i) nested += "${B:-$((";
  CHECK(said("python train.py --x 1\n" + nested) == "x=1");
  for (const std::string opening : {"$((", "if ", "case x in a) ", "for i in a b; do ", "(("}) {
    std::string many = "python train.py --x 1\nA=";
    for (int i = 0; i < 20000; ++i) many += opening;
    CHECK(said(many) == "x=1");
  }
  CHECK(said("A=$((-9223372036854775808/-1))\npython t.py --x 1$A\n") ==
        "x=1$((-9223372036854775808/-1))");
  std::string doubled = "A=(x y)\n";
  for (int i = 0; i < 40; ++i) doubled += "A=(\"${A[@]}\" \"${A[@]}\" \"\")\n";
  CHECK(said(doubled + "python t.py --x 1\n") == "x=1");
}

TEST_CASE("a launch script of Megatron-LM becomes a scenario that says what was not used") {
  ImportRun run = launch("megatron");
  run.with(sample("launch-megatron.sh")).run();
  CHECK(json_at(run, "/nodes") == "16");
  CHECK(json_at(run, "/parallel/tensor") == "4");
  CHECK(json_at(run, "/parallel/pipeline") == "2");
  CHECK(json_at(run, "/parallel/virtual_pipeline") == "4");  // 32 layers / 2 stages / 4 layers
  CHECK(json_at(run, "/parallel/schedule") == "\"interleaved_1f1b\"");
  CHECK(json_at(run, "/parallel/zero_stage") == "1");
  CHECK(json_at(run, "/training/global_batch") == "512");
  CHECK(json_at(run, "/training/precision") == "\"bf16\"");
  CHECK(json_at(run, "/model/kv_heads") == "8");
  CHECK(json_at(run, "/model/vocab") == "128256");
  CHECK(contains(run.messages, "that of llama3-8b"));
  CHECK(contains(run.messages, "no key of a scenario says it: moe-strange-thing 3\n"));
}

TEST_CASE("arguments that a launch script is called with choose among its branches") {
  ImportRun run = launch("megatron");
  run.request.options.arguments = "TP=8 70B";
  run.with(sample("launch-megatron.sh")).run();
  CHECK(json_at(run, "/parallel/tensor") == "8");
  CHECK(json_at(run, "/model/layers") == "80");
}

TEST_CASE("latent attention without sizes has Megatron-LM's") {
  ImportRun run = launch("megatron");
  run.request.options.gpus = 8;
  run.with("run.sh",
           "python t.py --num-layers 4 --hidden-size 1024 --num-attention-heads 8 --seq-length 512 "
           "--micro-batch-size 1 --global-batch-size 8 --multi-latent-attention\n")
      .run();
  CHECK(json_at(run, "/model/mla") ==
        R"({"key_size":128,"key_value_rank":32,"rope_size":64,"value_size":128})");
  CHECK(json_at(run, "/training/precision") == "\"fp32\"");
  CHECK(json_at(run, "/training/attention") == "none");  // no flash attention in 32 bits
}

TEST_CASE("GPUs are counted as torchrun, srun, mpirun or sbatch count them, and a guess is said") {
  std::string messages;
  const auto nodes = [&](const std::string& before, const std::string& launcher,
                         const std::string& arguments = {}) {
    ImportRun run = launch("megatron");
    run.request.options.model = "llama2-7b";
    run.request.options.arguments = arguments;
    run.with("run.sh", before + launcher + " pretrain_gpt.py --bf16\n").run();
    messages = run.messages;
    CHECK(contains(messages, "does not say the microbatch: 1 sample is assumed"));
    return json_at(run, "/nodes");
  };
  const auto guesses = [&] { return contains(messages, "does not say how many nodes: 1 of"); };
  const std::string torchrun = "torchrun --nproc_per_node 8 --nnodes $NNODES";
  CHECK(nodes("", torchrun) == "1");
  CHECK(guesses());
  CHECK(contains(messages, "give --gpus N"));
  CHECK(nodes("", torchrun, "NNODES=4") == "4");
  CHECK_FALSE(guesses());
  CHECK(nodes("NNODES=1\n", torchrun) == "1");
  CHECK_FALSE(guesses());
  CHECK(nodes("", "srun -N 16 --ntasks-per-node=8 python -u") == "16");
  CHECK_FALSE(contains(messages, "not used"));
  CHECK(nodes("", "srun -l -N4 " + torchrun) == "4");  // one torchrun of a node
  CHECK(nodes("", "srun --nodes=4 -n 32 --exclusive python") == "4");
  CHECK(nodes("", "mpirun -np 64 -x PATH /usr/bin/python3") == "8");
  CHECK(contains(messages, "64, the ranks that srun or mpirun start"));
  CHECK(nodes("", "mpiexec -n 64 -ppn 8 bash -c 'python t.py --bf16' #") == "8");
  CHECK(nodes("#SBATCH -N 8 --ntasks-per-node 8\n", "srun python") == "8");
  CHECK(nodes("#SBATCH --nodes=8\n#SBATCH --gres=gpu:a100:8 --ntasks-per-node=1\n",
              "srun deepspeed") == "8");
  for (const char* gres : {"gpu:8,nvme:1", "nvme:1,gpu:a100:8", "gpu:8"}) {
    const LaunchSettings found =
        script(std::string("srun -N 4 --gres=") + gres + " python pretrain_gpt.py --bf16\n");
    CHECK_MESSAGE(found.text("launcher-gpus-per-node") == "8", gres);
  }
  const LaunchSettings disk = script("srun --gres=nvme:1 python pretrain_gpt.py --bf16\n");
  CHECK(disk.find("launcher-gpus-per-node") == nullptr);
  CHECK(nodes("#SBATCH --nodes=2 --gpus-per-node=8\n", "srun -N 4 python") == "4");
  CHECK(nodes("#SBATCH -N 8 --ntasks-per-node 8\n",
              "torchrun --nnodes $((SLURM_NTASKS / 8)) --nproc_per_node gpu") == "8");
}

TEST_CASE("a switch that a script of Megatron-LM does not give is off, whatever the profile has") {
  const auto megatron = [](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 16;
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "python t.py --tensor-model-parallel-size 8 " + options + "\n").run();
    CHECK_FALSE(contains(run.messages, "no key of a scenario"));
    return json_at(run, pointer);
  };
  CHECK(megatron("--bf16", "/parallel/sequence_parallel") == "false");
  CHECK(megatron("--bf16 --sequence-parallel", "/parallel/sequence_parallel") == "true");
  CHECK(megatron("--bf16", "/parallel/overlap_gradient_reduce") == "false");
  CHECK(megatron("--bf16 --overlap-grad-reduce", "/parallel/overlap_gradient_reduce") == "true");
  const char* const gradients = "/training/gradient_dtype";
  CHECK(megatron("--bf16", gradients) == "\"fp32\"");
  CHECK(megatron("--bf16 --grad-reduce-in-bf16", gradients) == "\"bf16\"");
  CHECK(megatron("--fp16", gradients) == "\"fp16\"");
  CHECK(megatron("--fp16 --accumulate-allreduce-grads-in-fp32", gradients) == "\"fp32\"");
  const char* const offload = "/training/optimizer_offload_fraction";
  CHECK(megatron("--bf16 --optimizer-cpu-offload", offload) == "1");
  CHECK(megatron("--bf16 --optimizer-offload-fraction 0.5", offload) == "none");
}

TEST_CASE("lists of layers with experts or windows are read, in quotes or not") {
  std::string messages;
  const auto moe = [&](const std::string& frequency, const char* pointer) {
    ImportRun run = launch("megatron");
    run.with("run.sh",
             "A=\"--num-experts 8 --moe-router-topk 2\"\ntorchrun --nproc-per-node 8 --nnodes 1 "
             "pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 "
             "--seq-length 4096 --micro-batch-size 1 --vocab-size 50000 " +
                 frequency + " --bf16 $A\n")
        .run();
    messages = run.messages;
    return json_at(run, pointer);
  };
  const char* const dense = "/model/moe/dense_layers";
  CHECK(moe("--moe-layer-freq ([0]*3+[1]*9)", dense) == "3");
  CHECK(moe("--moe-layer-freq '([0]*3+[1]*9)'", dense) == "3");
  CHECK(moe("--moe-layer-freq \\(\\[0\\]*3+\\[1\\]*9\\)", dense) == "3");
  CHECK(moe("--moe-layer-freq [0]+[1]*11", dense) == "1");
  CHECK(moe("--moe-layer-freq ([1]+[0]*1)*6", "/model/moe/every") == "2");
  CHECK(moe("--moe-layer-freq ([0,1]*6)", "/model/moe/every") == "2");
  CHECK(moe("--moe-layer-freq ([0,1]*6)", dense) == "1");
  CHECK_FALSE(contains(messages, "moe-layer-freq"));
  for (const char* other : {"[1]*6+[0]*6", "([0]*3+[1]*58)", "[0]*12", "[1", "[1]*12*99999999"}) {
    moe(std::string("--moe-layer-freq ") + other, dense);
    CHECK(contains(messages, "cannot be simulated: experts are in every layer here"));
  }
  // With the token itself; 3 of 4 layers are one of 4/3.
  CHECK(moe("--window-size 127,0", "/model/window") == R"({"size":128})");
  CHECK(moe("--window-size (127,0) --window-attn-skip-freq 2", "/model/window") ==
        R"({"every":2,"size":128})");
  CHECK(moe("--window-size 127,0 --window-attn-skip-freq [1,0]*6", "/model/window/every") == "2");
  CHECK(moe("--window-size -1,0", "/model/window") == "none");
}

TEST_CASE("states of the precision-aware optimizer have the formats that a script gives them") {
  std::string messages;
  const auto training = [&](const std::string& options, const char* key) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "python t.py --bf16 --use-distributed-optimizer " + options + "\n").run();
    messages = run.messages;
    return json_at(run, (std::string("/training/") + key).c_str());
  };
  const std::string aware = "--use-precision-aware-optimizer ";
  CHECK(training(aware, "main_params_dtype") == "\"fp32_remainder\"");
  CHECK(training(aware + "--main-params-dtype fp16", "main_params_dtype") == "\"fp16\"");
  CHECK(training(aware + "--exp-avg-dtype bf16", "exp_avg_dtype") == "\"bf16\"");
  CHECK(training(aware + "--exp-avg-sq-dtype fp8", "exp_avg_sq_dtype") == "\"fp8\"");
  CHECK(training(aware + "--main-grads-dtype bf16", "gradient_dtype") == "\"bf16\"");
  CHECK(training(aware + "--main-grads-dtype fp32", "gradient_dtype") == "\"fp32\"");
  CHECK_FALSE(contains(messages, "not used"));
  CHECK(training("--main-params-dtype fp32", "main_params_dtype") == "none");
  CHECK_FALSE(contains(messages, "no effect"));
  CHECK(training("--exp-avg-dtype bf16", "exp_avg_dtype") == "none");
  CHECK(contains(messages, "exp-avg-dtype has no effect without use-precision-aware-optimizer"));
}

TEST_CASE("what is no file of the importer is named, with the importer that reads it") {
  const auto problem = [](const char* kind, const std::string& file, const std::string& text) {
    ImportRun run = launch(kind);
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    return run.with(file, text).problem();
  };
  const std::string script = text_of(sample("launch-megatron.sh"));
  const std::string nemo = text_of(sample("launch-nemo.yaml"));
  CHECK(contains(problem("megatron", "n.yaml", nemo), "is a configuration of NeMo"));
  CHECK(contains(problem("megatron", "n.yaml", nemo), "windtunnel import nemo"));
  CHECK(contains(problem("nemo", "m.sh", script), "windtunnel import megatron"));
  CHECK(contains(problem("deepspeed", "neox.json", R"({"pipe-parallel-size": 1})"), "GPT-NeoX"));
  CHECK(contains(problem("nemo", "r.py", "from nemo.collections import llm\n"), "NeMo 2"));
  CHECK(problem("nemo", "n.sh",
                "#!/bin/bash\npython t.py model.global_batch_size=8 "
                "trainer.num_nodes=1 trainer.devices=8\n") == "");
  const std::string mamba =
      problem("megatron", "m.sh", "torchrun t.py --bf16 --hybrid-override-pattern M-M*-\n");
  CHECK(contains(mamba, "state-space (Mamba) layers (hybrid-override-pattern)"));
  CHECK(contains(mamba, "cannot be simulated"));
  CHECK(contains(problem("megatron", "b.sh", "torchrun a/pretrain_bert.py --bf16\n"),
                 "an encoder (pretrain_bert.py)"));
  CHECK(contains(problem("megatron", "p.sh", "torchrun t.py --num-experts 64 64 128\n"),
                 "layers that differ (num-experts 64 64 128)"));
}

TEST_CASE("a configuration of NeMo AutoModel is refused as such") {
  ImportRun run = launch("nemo");
  run.request.options.gpus = 8;
  run.request.options.model = "llama2-7b";
  CHECK(contains(run.with("a.yaml",
                          "step_scheduler:\n  global_batch_size: 64\nmodel:\n  _target_: "
                          "nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n"
                          "distributed:\n  tp_size: 2\n")
                     .problem(),
                 "a.yaml is a configuration of NeMo AutoModel, not a YAML configuration of NeMo"));
}

TEST_CASE("files of Primus, Megatron-Bridge, ms-swift and the Trainer are named as such") {
  const auto problem = [](const char* kind, const std::string& file, const std::string& text) {
    ImportRun run = launch(kind);
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    return run.with(file, text).problem();
  };
  for (const char* kind : {"megatron", "nemo"})
    CHECK(contains(problem(kind, "p.yaml",
                           "modules:\n  pre_trainer:\n    framework: megatron\n    model: a.yaml\n"
                           "    overrides:\n      seq_length: 8192\n"),
                   "AMD's Primus"));
  CHECK(contains(problem("nemo", "b.yaml",
                         "model:\n  seq_length: 1\ntrain:\n  train_iters: 1\nscheduler:\n  a: 1\n"
                         "checkpoint:\n  save: x\n"),
                 "Megatron-Bridge"));
  CHECK(
      contains(problem("megatron", "s.sh", "NPROC_PER_NODE=8 \\\nmegatron sft \\\n  --bf16 true\n"),
               "ms-swift"));
  CHECK(
      contains(problem("megatron", "h.sh",
                       "#!/bin/bash\ndeepspeed t.py --per_device_train_batch_size 4 --bf16 True\n"),
               "Hugging Face's Trainer"));
  CHECK(contains(problem("deepspeed", "a.yml", "base_model: x\ndatasets:\n  - path: y\n"),
                 "a configuration of axolotl, in YAML"));
  CHECK(contains(problem("deepspeed", "x.yml",
                         "{\"pipe-parallel-size\": 1, \"zero_optimization\": {\"stage\": 1}}"),
                 "GPT-NeoX"));
  // A script that writes its configuration of DeepSpeed is a script.
  CHECK(problem("megatron", "d.sh",
                "cat <<E > ds.json\n{\"zero_optimization\": {\"stage\": 0}}\nE\n"
                "deepspeed t.py --bf16 --deepspeed --zero-stage 1\n") == "");
}

TEST_CASE("what a configuration says and cannot be simulated is a warning, not passed over") {
  ImportRun run = launch("torchtitan");
  run.request.options.gpus = 8;
  run.with("run.toml",
           "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nenable_cpu_offload = true\n"
           "mixed_precision_reduce = \"bfloat16\"\n[optimizer]\nname = \"AdamW\"\n"
           "early_step_in_backward = false\n[compile]\nenable = true\ncomponents = [\"loss\"]\n"
           "[parallelism]\nexpert_tensor_parallel_degree = 1\n")
      .run();
  CHECK(json_at(run, "/training/compile") == "false");
  CHECK(contains(run.messages, "the model is not compiled"));
  CHECK_FALSE(contains(run.messages, "expert-tensor"));
  CHECK(contains(run.messages, "training.enable_cpu_offload true cannot be simulated"));
  CHECK_FALSE(contains(run.messages, "early-step"));
  CHECK(json_at(run, "/training/gradient_dtype") == "\"bf16\"");
  ImportRun half = launch("torchtitan");
  half.request.options.gpus = 8;
  half.with("run.toml",
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = "
            "[\"float8\"]\n[training]\ndtype "
            "= \"bfloat16\"\n[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n"
            "enable_fsdp_float8_all_gather = true\n")
      .run();
  CHECK(contains(half.messages,
                 "float8_all_gather has no effect with recipe_name: gathers stay in bf16"));
  CHECK(json_at(half, "/software/fp8_parameters") == "false");
  CHECK(json_at(half, "/training/main_params_dtype") == "\"none\"");
  CHECK(json_at(half, "/training/fp8_recipe") == "\"row\"");
  ImportRun other = launch("deepspeed");
  other.request.options.gpus = 8;
  other.request.options.model = "llama2-7b";
  other
      .with("ds.json",
            R"({"bf16": {"enabled": true}, "optimizer": {"type": "OneBitAdam", "params": {"lr": 1}},
                           "communication_data_type": "fp32", "data_types": {"grad_accum_dtype": "fp32"}})")
      .run();
  CHECK(contains(other.messages, "optimizer.type OneBitAdam cannot be simulated"));
  CHECK(contains(other.messages, "data_types.grad_accum_dtype fp32"));
  CHECK_FALSE(contains(other.messages, "params.lr"));
  CHECK(json_at(other, "/training/gradient_dtype") == "\"fp32\"");
  for (const auto& [type, optimizer] : {std::pair("adamw", "\"adam\""), {"muon", "\"muon\""}}) {
    ImportRun lower = launch("deepspeed");
    lower.request.options.gpus = 8;
    lower.request.options.model = "llama2-7b";
    lower.with("ds.json", std::string(R"({"optimizer": {"type": ")") + type + "\"}}").run();
    CHECK_FALSE(contains(lower.messages, "optimizer.type"));
    CHECK(json_at(lower, "/training/optimizer") == optimizer);
  }
}

TEST_CASE("a script of Megatron-LM has nothing of the recipes of its profile's releases") {
  ImportRun run = launch("megatron");
  const auto imported = [&](const std::string& options) {
    run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "python t.py --bf16 --use-distributed-optimizer " + options + "\n").run();
    return read_scenario(run.request.output, shipped_library());
  };
  const Scenario plain = imported("");
  CHECK(json_at(run, "/software/extends") == "\"megatron-core-2026@0\"");
  CHECK(plain.software.scales_gradients);
  CHECK(plain.software.cross_entropy_bytes == 30);
  CHECK(plain.software.launch.kernel == 8_us);
  CHECK(plain.plan.training.gradient_type == GradientType::fp32);
  CHECK(imported("--cuda-graph-impl local").software.launch.kernel == 3_us);
  CHECK(json_at(run, "/software") == "\"megatron-core-2026@0\"");
  const SoftwareProfile fp8 = imported("--fp8-format hybrid").software;
  CHECK_FALSE(fp8.current_scaling);
  CHECK_FALSE(fp8.fp8_parameters);
  const SoftwareProfile current =
      imported("--fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather").software;
  CHECK(current.current_scaling);
  CHECK(current.fp8_parameters);
}

TEST_CASE("attention in fp8 is named as not used") {
  ImportRun run = launch("megatron");
  run.request.options.gpus = 8;
  run.request.options.model = "llama2-7b";
  run.with("run.sh",
           "python t.py --bf16 --fp8-format hybrid --fp8-margin 0 --fp8-multi-head-attention\n")
      .run();
  CHECK(contains(run.messages, "no key of a scenario says it: fp8-multi-head-attention\n"));
}

TEST_CASE("sequence parallelism that a file does not ask for is said") {
  std::string messages;
  const auto sequence = [&](const std::string& options, const char* model) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = model;
    run.with("run.sh", "python t.py --bf16 --tensor-model-parallel-size 2 " + options + "\n").run();
    messages = run.messages;
    return read_scenario(run.request.output, shipped_library()).plan.parallel.sequence_parallel;
  };
  CHECK(sequence("", "mixtral-8x7b"));
  CHECK(contains(messages, "sequence_parallel is on, though the file does not say so"));
  CHECK(sequence("--sequence-parallel", "mixtral-8x7b"));
  CHECK_FALSE(contains(messages, "though the file"));
  CHECK_FALSE(sequence("", "llama2-7b"));
  CHECK_FALSE(contains(messages, "though the file"));
}

TEST_CASE("experts of Megatron-DeepSpeed have its options and its defaults") {
  const auto moe = [](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 64;
    run.with(
           "run.sh",
           "deepspeed pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 "
           "--seq-length 2048 --micro-batch-size 8 --global-batch-size 512 --fp16 --num-experts "
           "128 "
           "--moe-expert-parallel-size 64 --deepspeed --deepspeed_config ds.json " +
               options + "\n")
        .run();
    CHECK(contains(run.messages, "deepspeed_config ds.json is not read"));
    CHECK_FALSE(contains(run.messages, "not used"));
    return json_at(run, pointer);
  };
  CHECK(moe("", "/parallel/expert") == "64");
  CHECK(moe("", "/model/moe/top_k") == "1");
  CHECK(moe("", "/model/moe/every") == "2");
  CHECK(moe("", "/model/moe/capacity") == "1");
  CHECK(moe("--topk 2 --expert-interval 1", "/model/moe/top_k") == "2");
  CHECK(moe("--expert-interval 1", "/model/moe/every") == "1");
  CHECK(moe("--moe-train-capacity-factor 1.5", "/model/moe/capacity") == "1.5");
}

TEST_CASE("experts are cut as attention is where a script of Megatron-LM does not say") {
  std::string messages;
  const auto expert_tensor = [&](const std::string& options) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 16;
    run.request.options.model = "mixtral-8x7b";
    run.with("run.sh", "python t.py --bf16 --sequence-parallel --expert-model-parallel-size 4 " +
                           options + "\n")
        .run();
    messages = run.messages;
    return json_at(run, "/parallel/expert_tensor");
  };
  CHECK(expert_tensor("--tensor-model-parallel-size 2") == "2");
  CHECK(contains(messages, "expert-tensor-parallel-size is the tensor degree, 2"));
  CHECK(expert_tensor("--tensor-model-parallel-size 2 --expert-tensor-parallel-size 1") == "1");
  CHECK_FALSE(contains(messages, "expert-tensor-parallel-size is"));
  CHECK(expert_tensor("--tensor-model-parallel-size 1") == "none");
  CHECK(expert_tensor("--tensor-model-parallel-size 2 --deepspeed") == "none");
  CHECK(expert_tensor(
            "--tensor-model-parallel-size 2 --deepspeed --enable-expert-tensor-parallelism") ==
        "2");
}

TEST_CASE("a tensor degree of experts that a dense model has not is left out") {
  ImportRun run = launch("megatron");
  run.request.options.gpus = 16;
  run.request.options.model = "llama2-7b";
  run.with("run.sh", "python t.py --bf16 --expert-tensor-parallel-size 4\n").run();
  CHECK(json_at(run, "/parallel/expert_tensor") == "none");
  CHECK(contains(run.messages, "expert-tensor-parallel-size has no effect without experts"));
}

TEST_CASE("experts, gates and heads of forks are read under their own names") {
  std::string messages;
  const auto fork = [&](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.with("run.sh",
             "python t.py --num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length "
             "1024 --vocab-size 50000 --ffn-hidden-size 2048 --bf16 " +
                 options + "\n")
        .run();
    messages = run.messages;
    return json_at(run, pointer);
  };
  const std::string experts =
      "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 256 --n-shared-experts 2 ";
  CHECK(fork(experts + "--first-k-dense-replace 3", "/model/moe/dense_layers") == "3");
  CHECK(fork(experts, "/model/moe/shared_ffn_hidden") == "512");  // two of 256
  CHECK(fork(experts + "--first-k-dense-replace -1", "/model/moe/dense_layers") == "none");
  const std::string shared = "--context-parallel-size 2 --context-parallel-algo ";
  CHECK(fork(shared + "ulysses_cp_algo", "/parallel/context_method") == "\"all_to_all\"");
  CHECK(fork(shared + "megatron_cp_algo", "/parallel/context_method") == "\"ring\"");
  CHECK(fork("--attention-head-type multiquery", "/model/kv_heads") == "1");
  CHECK(fork("--attention-head-type multiquery --n-head-kv 2", "/model/kv_heads") == "2");
  CHECK(fork("--glu-activation swiglu", "/model/gated_mlp") == "true");
  CHECK_FALSE(contains(messages, "not used"));
}

TEST_CASE("aliases, gates, norms and windows of forks are read") {
  std::string messages;
  const auto fork = [&](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 16;
    run.with("run.sh",
             "python t.py --num-layers 16 --hidden-size 512 --num-attention-heads 8 --seq-length "
             "1024 --vocab-size 50000 --global-batch-size 256 --bf16 " +
                 options + "\n")
        .run();
    messages = run.messages;
    CHECK_FALSE(contains(messages, "not used"));
    return json_at(run, pointer);
  };
  const std::string experts = "--num-experts 8 --moe-router-topk 2 ";
  CHECK(fork(experts + "--moe-intermediate-size 256", "/model/moe/ffn_hidden") == "256");
  CHECK(fork(experts + "--intermediate-size 640 --n-shared-experts 2",
             "/model/moe/shared_ffn_hidden") == "1280");  // two as wide as the MLP
  CHECK(fork(experts + "--shared-expert-gate --n-shared-experts 1", "/model/moe/shared_gate") ==
        "true");
  CHECK(fork(experts + "--moe-shared-expert-gate --moe-shared-expert-intermediate-size 64",
             "/model/moe/shared_gate") == "true");
  CHECK(fork("--multi-head-latent-attention --qk-rope-head-dim 32", "/model/mla/rope_size") ==
        "32");
  CHECK(fork("--sliding-window 256", "/model/window") == R"({"size":256})");
  CHECK(fork("--sliding-window 4096", "/model/window") == "none");  // of samples of 1024
  const std::string v =
      experts + "--pipeline-model-parallel-size 4 --schedules-method dualpipev --moe-fb-overlap";
  CHECK(fork(v, "/parallel/schedule") == "\"dualpipe_v\"");
  CHECK(fork(v, "/parallel/virtual_pipeline") == "2");
  CHECK(fork(v, "/software/experts/overlap_exchanges") == "true");
  CHECK(fork("--schedules-method dualpipev", "/parallel/schedule") == "none");  // without stages
}

TEST_CASE("norms behind each half and windows of every second layer are those of two specs") {
  std::string messages;
  const auto model = [&](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.with("run.sh",
             "python t.py --num-layers 16 --hidden-size 512 --num-attention-heads 8 --seq-length "
             "1024 --vocab-size 50000 --bf16 --post-norm --interleave-sliding-window 256 " +
                 options + "\n")
        .run();
    messages = run.messages;
    return json_at(run, pointer);
  };
  const std::string spec = "--spec mindspeed_llm.tasks.models.spec.gemma2_spec layer_spec";
  CHECK(model(spec, "/model/norms") == "4");
  CHECK(model(spec, "/model/window") == R"({"every":2,"size":256})");
  CHECK_FALSE(contains(messages, "warning"));
  CHECK_FALSE(contains(messages, "not used"));
  CHECK(model("", "/model/norms") == "none");
  CHECK(model("", "/model/window") == "none");
  CHECK(contains(messages, "warning: post-norm is not used: of MindSpeed-LLM's layers only those"));
}

TEST_CASE("a model with sparse attention is refused, as import hf-config does it") {
  ImportRun run = launch("megatron");
  run.request.options.gpus = 8;
  const std::string problem =
      run.with("run.sh",
               "python t.py --num-layers 4 --enable-dsa-indexer --use-sparse-flash-attn --bf16\n")
          .problem();
  CHECK(contains(problem, "sparse attention (enable-dsa-indexer, use-sparse-flash-attn)"));
  CHECK(contains(problem, "take these options out to import the model with whole attention"));
}

TEST_CASE("overlaps that a script turns on or off are the stack's") {
  std::string messages;
  const auto overlap = [&](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 16;
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "python t.py --tensor-model-parallel-size 2 --bf16 " + options + "\n").run();
    messages = run.messages;
    CHECK_FALSE(contains(messages, "not used"));
    return json_at(run, pointer);
  };
  CHECK(overlap("--moe-shared-expert-overlap", "/software/experts/overlap_shared") == "true");
  const std::string synchronous = "--no-async-tensor-model-parallel-allreduce ";
  const char* const collectives = "/software/overlap_backward_tensor_collectives";
  CHECK(overlap(synchronous, collectives) == "false");
  CHECK(overlap(synchronous + "--sequence-parallel", collectives) == "none");
  CHECK(contains(messages, "allreduce has no effect with sequence-parallel"));
  CHECK(overlap("--no-scatter-gather-tensors-in-pipeline", "/software/scatter_pipeline_messages") ==
        "false");
  const std::string optimizer = "--overlapped-distributed-optimizer";
  CHECK(overlap(optimizer, "/parallel/zero_stage") == "2");
  CHECK(overlap(optimizer, "/parallel/overlap_gradient_reduce") == "true");
  CHECK(contains(messages, "overlapped-distributed-optimizer is zero_stage 2 here"));
}

TEST_CASE(
    "the key that is nearest to Transformer Engine's overlap of tensor collectives is named") {
  const auto messages = [](const std::string& options) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 16;
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "python t.py --bf16 --sequence-parallel " + options + "\n").run();
    return run.messages;
  };
  const std::string told = "set \"async_tensor_parallel\": true in /parallel";
  CHECK(contains(messages("--tensor-model-parallel-size 2 --tp-comm-overlap"), told));
  CHECK_FALSE(contains(messages("--tp-comm-overlap"), told));
}

TEST_CASE("activations and states that a script keeps on the host are there") {
  std::string messages;
  const auto training = [&](const std::string& options, const char* key) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.with("run.sh",
             "python t.py --num-layers 32 --hidden-size 512 --num-attention-heads 8 --seq-length "
             "1024 --vocab-size 50000 --bf16 " +
                 options + "\n")
        .run();
    messages = run.messages;
    return json_at(run, (std::string("/training/") + key).c_str());
  };
  const char* const activations = "activation_offload_fraction";
  CHECK(training("--cpu-offloading --cpu-offloading-num-layers 8", activations) == "0.25");
  CHECK(training("--cpu-offloading", activations) == "none");
  CHECK(contains(messages, "cpu-offloading has no effect without cpu-offloading-num-layers"));
  CHECK(training("--cpu-offloading=False --cpu-offloading-num-layers 8", activations) == "none");
  const char* const states = "optimizer_offload_fraction";
  const std::string hybrid = "--optimizer hybridadam --optimizer-offload-policy ";
  CHECK(training(hybrid + "static --optimizer-offload-fraction 0.5", states) == "0.5");
  CHECK_FALSE(contains(messages, "hybridadam"));
  CHECK(training(hybrid + "auto", states) == "none");
  CHECK(contains(messages, "warning: optimizer hybridadam chooses in the run"));
}

TEST_CASE("what is simulated otherwise than the script says is told") {
  const auto messages = [](const std::string& options) {
    return messages_of(
        "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
        "--vocab-size 50000 --bf16 " +
        options);
  };
  CHECK(
      contains(messages("--hidden-dropout 0 --attention-dropout 0.0"),
               "not used, as models of family gpt are simulated with dropout, its masks in memory "
               "and its time: hidden-dropout 0, attention-dropout 0.0\n"));
  CHECK_FALSE(contains(messages("--hidden-dropout 0.1"), "dropout"));
  CHECK_FALSE(contains(messages("--hidden-dropout 0.0 --swiglu"), "dropout"));
  CHECK(contains(messages("--hidden-dropout 0.1 --swiglu"), "simulated without dropout"));
  CHECK(contains(messages("--transformer-impl local"), "kernels are those of Transformer Engine"));
  CHECK(contains(messages("--reset-attention-mask"), "warning: reset-attention-mask is not used"));
  CHECK_FALSE(contains(messages("--reset-position-ids"), "not used"));
}

TEST_CASE("nodes of other sizes than the script's are told") {
  std::string messages;
  const auto nodes = [&](const std::string& launcher) {
    ImportRun run = launch("megatron");
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "torchrun " + launcher + " t.py --bf16\n").run();
    messages = run.messages;
    return json_at(run, "/nodes");
  };
  CHECK(nodes("--nnodes 4 --nproc_per_node 4") == "2");
  CHECK(
      contains(messages,
               "the file starts 4 GPUs per node, and a node of dgx-h100 has 8: 16 GPUs are 2 nodes "
               "here, not 4\n"));
  CHECK(nodes("--nnodes 2 --nproc_per_node 16") == "4");
  CHECK(contains(messages, "32 GPUs are 4 nodes here, not 2\n"));
  nodes("--nnodes 1 --nproc_per_node 4");  // one node in any case
  CHECK_FALSE(contains(messages, "the file starts"));
  nodes("--nnodes 2 --nproc_per_node 8");
  CHECK_FALSE(contains(messages, "the file starts"));
  ImportRun some = launch("megatron");
  some.request.options.model = "llama2-7b";
  CHECK(contains(
      some.with("run.sh", "torchrun --nnodes 3 --nproc_per_node 4 t.py --bf16\n").problem(),
      "has 8: 12 GPUs are no whole nodes here)"));
}

TEST_CASE("DeepSpeed's bf16 optimizer shards its states without ZeRO") {
  const auto stage = [](const std::string& options) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "deepspeed t.py --deepspeed --zero-stage " + options + "\n").run();
    return json_at(run, "/parallel/zero_stage");
  };
  CHECK(stage("0 --bf16") == "1");
  CHECK(stage("0 --fp16") == "0");
  CHECK(stage("2 --bf16") == "2");
}

TEST_CASE("layers of a virtual stage count embedding and loss where the pipeline split does") {
  const auto chunks = [](const std::string& layers, const std::string& options) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 32;
    run.with("run.sh",
             "python t.py --num-layers " + layers +
                 " --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --vocab-size 50000 "
                 "--micro-batch-size 1 --global-batch-size 128 --bf16 "
                 "--pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 3 " +
                 options + "\n")
        .run();
    return json_at(run, "/parallel/virtual_pipeline");
  };
  // (94 + 2) / 8 stages / 3 layers
  CHECK(chunks("94",
               "--account-for-embedding-in-pipeline-split "
               "--account-for-loss-in-pipeline-split") == "4");
  CHECK(chunks("96", "") == "4");
}

TEST_CASE("a plan that is none on the GPUs of the script says how many those are") {
  const auto problem = [](int gpus) {
    ImportRun run = launch("megatron");
    run.request.options.model = "mixtral-8x7b";
    run.request.options.gpus = gpus;
    return run
        .with("run.sh",
              "torchrun --nnodes ${SLURM_NNODES:-1} --nproc_per_node 8 pretrain_gpt.py --bf16 "
              "--pipeline-model-parallel-size 4 --expert-model-parallel-size 8\n")
        .problem();
  };
  CHECK(contains(problem(0), "on 8 GPUs, as the file is read; --gpus N gives another number"));
  CHECK_FALSE(contains(problem(16), "--gpus N"));
}

TEST_CASE("sizes of words, gates and exchanges are read from a launch script") {
  ImportRun run = launch("megatron");
  run.request.options.gpus = 64;
  run.with("run.sh",
           "python pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 "
           "--seq-length 2048 --num-experts 64 --moe-router-topk 4 --bf16 --quick-geglu "
           "--vocab-size 129000 --make-vocab-size-divisible-by 3232 --use-megatron-fsdp "
           "--moe-flex-dispatcher-backend deepep --megatron-fsdp-grad-comm-dtype bf16 "
           "--expert-model-parallel-size 8 --fsdp-double-buffer\n")
      .run();
  CHECK(json_at(run, "/model/gated_mlp") == "true");
  CHECK(json_at(run, "/model/vocab_divisor") == "3232");
  CHECK(json_at(run, "/software/experts/dispatch") == "\"one_copy_per_node\"");
  CHECK(json_at(run, "/training/gradient_dtype") == "\"bf16\"");
  CHECK(contains(run.messages, "not used, as no key of a scenario says it: fsdp-double-buffer"));
}

TEST_CASE("tokens go to their experts as the script says, or as Megatron-LM does by itself") {
  std::string messages;
  const auto dispatch = [&](const std::string& options) {
    ImportRun run = launch("megatron");
    run.request.options.model = "mixtral-8x7b";
    run.request.options.gpus = 16;
    run.with("run.sh", "python pretrain_gpt.py --bf16 " + options + "\n").run();
    messages = run.messages;
    return json_at(run, "/software/experts/dispatch");
  };
  const std::string shared = "--expert-model-parallel-size 8 ";
  CHECK(dispatch(shared) == "\"all_gather\"");
  CHECK(contains(messages, "moe-token-dispatcher-type is allgather where the file does not say"));
  CHECK(dispatch(shared + "--moe-token-dispatcher-type allgather") == "\"all_gather\"");
  CHECK_FALSE(contains(messages, "moe-token-dispatcher-type is"));
  CHECK(dispatch(shared + "--moe-token-dispatcher-type alltoall") ==
        "none");  // as the profile has it
  CHECK(dispatch(shared + "--deepspeed") == "none");
  CHECK(dispatch("") == "none");  // every rank has all experts
}

TEST_CASE("layers of Megatron's own keep the scores of attention") {
  const auto attention = [](const std::string& more) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "python t.py --tensor-model-parallel-size 8 --bf16 " + more + "\n").run();
    return json_at(run, "/training/attention");
  };
  CHECK(attention("--transformer-impl local") == "\"standard\"");
  CHECK(attention("--transformer-impl local --use-flash-attn") == "\"flash\"");
  CHECK(attention("") == "none");  // as the profile has it
}

TEST_CASE(
    "which layers are recomputed, the recipe of fp8 and a whole loss are read from a launch "
    "script") {
  const auto megatron = [](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.with("run.sh",
             "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 16 --hidden-size 1024 "
             "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
             "--micro-batch-size 1 --global-batch-size 8 --vocab-size 50000 --bf16 " +
                 options + "\n")
        .run();
    return json_at(run, pointer);
  };
  const std::string some =
      "--recompute-granularity full --recompute-method block --recompute-num-layers ";
  CHECK(megatron(some + "3", "/training/recompute_layers/first") == "3");
  CHECK(megatron(some + "3", "/training/recompute") == "\"full\"");
  CHECK(megatron("--checkpoint-activations --activations-checkpoint-method block "
                 "--activations-checkpoint-num-layers 4",
                 "/training/recompute_layers/first") == "4");
  CHECK(megatron("--fp8-format e4m3 --fp8-recipe blockwise", "/training/fp8_recipe") ==
        "\"block\"");
  const char* const loss = "/training/cross_entropy";
  CHECK(megatron("--cross-entropy-loss-fusion", loss) == "\"vocab_parallel_compiled\"");
  CHECK(megatron("--cross-entropy-loss-fusion --cross-entropy-fusion-impl native", loss) ==
        "\"vocab_parallel_compiled\"");
  CHECK(megatron("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te", loss) ==
        "\"in_place\"");
  CHECK(megatron("--cross-entropy-fusion-impl te", loss) == "\"vocab_parallel\"");  // no fusion
  ImportRun run = launch("torchtitan");
  run.request.options.gpus = 8;
  run.with("run.toml",
           "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[activation_checkpoint]\nmode = "
           "\"selective\"\nselective_ac_option = \"2\"\n[parallelism]\n"
           "tensor_parallel_degree = 2\ndisable_loss_parallel = true\n")
      .run();
  CHECK(json_at(run, "/training/recompute") == "\"full\"");
  CHECK(json_at(run, "/training/recompute_layers/every") == "2");
  CHECK(json_at(run, "/training/loss_parallel") == "false");
}

TEST_CASE("groups of uniformly recomputed layers are told not to be used") {
  const auto messages = [](const std::string& layers) {
    ImportRun run = launch("megatron");
    run.with("run.sh",
             "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 16 --hidden-size 1024 "
             "--num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024 "
             "--micro-batch-size 1 --global-batch-size 8 --vocab-size 50000 --bf16 "
             "--recompute-granularity full --recompute-method uniform --recompute-num-layers " +
                 layers + "\n")
        .run();
    CHECK(json_at(run, "/training/recompute") == "\"full\"");
    CHECK(json_at(run, "/training/recompute_layers") == "none");
    return run.messages;
  };
  CHECK(contains(messages("4"), "recompute-num-layers 4 of recompute-method uniform is not used"));
  CHECK_FALSE(contains(messages("1"), "is not used"));
}

TEST_CASE("modules are recomputed selectively alone, and a block of no layers not at all") {
  std::string messages;
  const auto training = [&](const std::string& options, const char* pointer) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.request.options.model = "llama2-7b";
    run.with("run.sh", "python t.py --bf16 --recompute-granularity " + options + "\n").run();
    messages = run.messages;
    return json_at(run, pointer);
  };
  const char* const modules = "/training/recompute_modules";
  CHECK(training("selective --recompute-modules mlp", modules) == "[\"mlp\"]");
  CHECK(training("full --recompute-method uniform --recompute-num-layers 1 --recompute-modules mlp",
                 modules) == "none");
  CHECK(contains(messages, "recompute-modules has no effect"));
  CHECK(training("full --recompute-method block --recompute-num-layers 0", "/training/recompute") ==
        "\"none\"");
}

TEST_CASE("sums and references of a NeMo configuration are evaluated, or named") {
  const auto value = [](const std::string& text) {
    const std::string file =
        "trainer:\n  num_nodes: 2\nmodel:\n  hidden_size: 64\n  a: {}\n  data:\n"
        "    b: 3\n    c: ${model.hidden_size}\n    x: " +
        text + "\n  y: 7\n";
    return read_yaml_settings(SourceText{"n.yaml", file, {}}).text("model.data.x");
  };
  CHECK(value("${multiply:4,${model.hidden_size}}") == "256");
  CHECK(value("${multiply:${..hidden_size}, ${.b}}") == "192");
  CHECK(value("${divide:${.c},${trainer.num_nodes}}") == "32");
  CHECK(value("${divide_ceil:${.b},2}") == "2");
  CHECK(value("${int_div:${.b},2}") == "1");
  CHECK(value("${add:1,2,${..y}}") == "10");
  CHECK(value("${div:${.b},2}") == "1.500000");
  CHECK(value("n${.b}-${..y}") == "n3-7");
  CHECK(value("${oc.env:NODES,5}") == "5");
  for (const char* text : {"${oc.env:NODES}", "${nowhere}", "${divide:1,0}", "${.x}",
                           "${strange:1}", "${multiply:a,2}", "${.x}${.x}", "${"})
    CHECK(value(text) == text);
  ImportRun run = launch("nemo");
  run.with("n.yaml",
           replaced(text_of(sample("launch-nemo.yaml")), "hidden_size: 2048",
                    "hidden_size: 2048\n  ffn_hidden_size: ${multiply:3,${.hidden_size}}\n"
                    "  kv_channels: ${strange:1}\n  tokenizer_name: ${strange:2}\n"))
      .run();
  CHECK(json_at(run, "/model/ffn_hidden") == "6144");
  CHECK(contains(run.messages, "kv_channels ${strange:1} cannot be evaluated, and is left out"));
  CHECK_FALSE(contains(run.messages, "strange:2"));  // changes nothing
}

TEST_CASE("a configuration of NeMo becomes a scenario") {
  ImportRun run = launch("nemo");
  run.with(sample("launch-nemo.yaml")).run();
  CHECK(json_at(run, "/nodes") == "4");
  CHECK(json_at(run, "/model/sequence") == "2048");
  CHECK(json_at(run, "/training/recompute") == "\"selective\"");
  CHECK(json_at(run, "/parallel/zero_stage") == "1");
  CHECK(json_at(run, "/parallel/virtual_pipeline") == "none");
  CHECK(contains(run.messages, "50257 tokens are assumed"));
}

TEST_CASE("gradients of weights in fp8 are NeMo's default, and said where they are not") {
  const auto messages = [](const std::string& option) {
    ImportRun run = launch("nemo");
    run.with("n.yaml", replaced(text_of(sample("launch-nemo.yaml")), "hidden_size: 2048",
                                "hidden_size: 2048\n  fp8_wgrad: " + option))
        .run();
    return run.messages;
  };
  CHECK_FALSE(contains(messages("True"), "fp8-wgrad"));
  CHECK(contains(messages("False"), "fp8_wgrad False cannot be simulated"));
}

TEST_CASE("use_flash_attention of NeMo means nothing to Transformer Engine") {
  const auto attention = [](const std::string& options) {
    ImportRun run = launch("nemo");
    run.with("n.yaml", replaced(text_of(sample("launch-nemo.yaml")), "hidden_size: 2048",
                                "hidden_size: 2048\n  qkv_bias: true\n" + options))
        .run();
    CHECK(json_at(run, "/model/qkv_bias") == "true");
    return json_at(run, "/training/attention");
  };
  const std::string off = "  use_flash_attention: False\n";
  CHECK(attention(off + "  transformer_engine: True\n") == "none");
  CHECK(attention(off + "  transformer_engine: False\n  mcore_gpt: False\n") == "\"standard\"");
}

TEST_CASE("the plan of a NeMo 2 configuration is read below its strategy, plugins and configs") {
  ImportRun run = launch("nemo");
  run.request.options.model = "llama3-8b";
  run.with("n.yaml",
           "trainer:\n  devices: 8\n  num_nodes: 2\n  plugins:\n    precision: bf16-mixed\n"
           "  strategy:\n    tensor_model_parallel_size: 2\n    context_parallel_size: 2\n"
           "    sequence_parallel: true\n    ddp:\n      overlap_grad_reduce: true\n"
           "model:\n  config:\n    seq_length: 8192\ndata:\n  micro_batch_size: 1\n"
           "  global_batch_size: 64\noptim:\n  config:\n    use_distributed_optimizer: true\n")
      .run();
  CHECK(json_at(run, "/nodes") == "2");
  CHECK(json_at(run, "/parallel/tensor") == "2");
  CHECK(json_at(run, "/parallel/context") == "2");
  CHECK(json_at(run, "/parallel/zero_stage") == "1");
  CHECK(json_at(run, "/parallel/overlap_gradient_reduce") == "true");
  CHECK(json_at(run, "/training/precision") == "\"bf16\"");
  CHECK(json_at(run, "/training/global_batch") == "64");
}

TEST_CASE("a configuration of torchtitan becomes a scenario of the shipped model") {
  ImportRun run = launch("torchtitan");
  run.request.options.gpus = 128;
  run.with(sample("launch-torchtitan.toml")).run();
  CHECK(json_at(run, "/model/layers") == "80");
  CHECK(json_at(run, "/model/sequence") == "4096");
  CHECK(json_at(run, "/training/precision") == "\"fp8\"");
  CHECK(json_at(run, "/training/global_batch") == "64");  // 4 of each of 16 replicas
  CHECK(json_at(run, "/parallel/zero_stage") == "3");
  CHECK(json_at(run, "/parallel/zero_group") == "8");
}

TEST_CASE("what a configuration of torchtitan leaves out is torchtitan's default") {
  ImportRun run = launch("torchtitan");
  run.request.options.gpus = 8;
  run.with("run.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n").run();
  CHECK(json_at(run, "/model/sequence") == "2048");
  CHECK(json_at(run, "/training/recompute") == "\"full\"");
  CHECK(json_at(run, "/training/recompute_layers/every") == "2");
  CHECK(json_at(run, "/training/global_batch") == "64");  // 8 of each GPU
  ImportRun longer = launch("torchtitan");
  longer.request.options.gpus = 8;
  longer.with("run.toml",
              "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8_192\n");
  longer.run();
  CHECK(json_at(longer, "/model") == "\"llama3-8b\"");
}

TEST_CASE("what is no TOML is refused with its line and column, and what is TOML is read") {
  const auto problem = [](const std::string& training) {
    ImportRun run = launch("torchtitan");
    run.request.options.gpus = 8;
    return run.with("run.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n" + training)
        .problem();
  };
  CHECK(contains(problem("[training]\nseq_len 8192\n"),
                 "run.toml:5:9: error: this is no TOML: \"=\""));
  CHECK(contains(problem("[training\nseq_len = 8192\n"), "run.toml:4:10: "));
  CHECK(contains(problem("[training]\nbatch_size = 1,\n"), "run.toml:5:15: "));
  CHECK(contains(problem("[training]\nseq_len =\n"), "run.toml:5:10: "));
  CHECK(contains(problem("[training]\nmode = selective\n"), "run.toml:5:8: "));
  CHECK(contains(problem("[training]\ndataset = \"c4\n"), "run.toml:5:11: "));
  CHECK(contains(problem("[training]\nsteps = [1, 2\nseq_len = 8\n"), "run.toml:6:1: "));
  for (const char* unfinished : {"a = \"x\\", "a = \"\"\"x\\", "a = \"\"\"\nx", "a = \"", "a = '"})
    CHECK(contains(problem(unfinished), "run.toml:4:5: error: this is no TOML: "));
  ImportRun run = launch("torchtitan");
  run.request.options.gpus = 8;
  run.with("run.toml",
           "\xEF\xBB\xBF# comment\r\n[ model ]#x\r\nname = 'llama3'\r\n\"flavor\" = \"8B\"\r\n"
           "converters = [\n  \"float8\",  # \"mx\"\n]\n[training]\nseq_len = 0x2000#\n"
           "lr = +3e-4\nday = 1979-05-27\nflag = 0xF\nnot = nan\n"
           "text = \"\"\"a\n\\\"\"\"b\"\"\"\ntable = {a.b = [1, [\"]\"]], c = ''}\n[[list]]\n")
      .run();
  CHECK(json_at(run, "/model") == "\"llama3-8b\"");
  CHECK(json_at(run, "/training/precision") == "\"fp8\"");
  CHECK(contains(run.messages, "torchtitan's defaults are taken: local_batch_size 8, "));
  CHECK_FALSE(contains(run.messages, "seq_len 2048"));
}

TEST_CASE("an option whose value is missing is refused, and one from the environment left out") {
  const auto run_of = [](const std::string& options) {
    ImportRun run = launch("megatron");
    run.request.options.gpus = 8;
    run.with("run.sh",
             "torchrun pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 "
             "--seq-length 1024 --micro-batch-size 1 --bf16 " +
                 options);
    return run;
  };
  CHECK(contains(run_of("--global-batch-size --tensor-model-parallel-size 4\n").problem(),
                 "run.sh, line 1: --global-batch-size has no value"));
  CHECK(contains(run_of("--global-batch-size \\\n  --swiglu --recompute-granularity\n").problem(),
                 "--global-batch-size has no value; line 1: --recompute-granularity has no value"));
  ImportRun run = run_of("--swiglu --global-batch-size $GBS \\\n# --global-batch-size --swiglu\n");
  CHECK(run.problem().empty());
  CHECK(contains(run.messages, "the value of global-batch-size comes from outside the file"));
}

TEST_CASE("a flavour of torchtitan that is not known is named with those that are") {
  ImportRun run = launch("torchtitan");
  run.request.options.gpus = 8;
  run.with("run.toml", "[model]\nname = \"llama3\"\nflavor = \"71B\"\n");
  CHECK(contains(run.problem(),
                 "run.toml, line 3: the flavor 71B of llama3 is not known (known are "));
  CHECK(contains(run.problem(), "70b"));
}

TEST_CASE("torchtitan compiles the loss where it compiles and the loss is one of the components") {
  const auto loss = [](const std::string& compile) {
    ImportRun run = launch("torchtitan");
    run.request.options.gpus = 8;
    run.with("run.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[compile]\n" + compile)
        .run();
    return json_at(run, "/training/cross_entropy");
  };
  CHECK(loss("enable = true\n") == "\"fused\"");
  CHECK(loss("enable = true\ncomponents = [\"loss\"]\n") == "\"fused\"");
  CHECK(loss("enable = true\ncomponents = [\"model\"]\n") == "none");
  CHECK(loss("enable = false\ncomponents = [\"model\", \"loss\"]\n") == "none");
}

TEST_CASE("schedules of several stages have torchtitan's two of a rank") {
  const auto chunks = [](const std::string& schedule) {
    ImportRun run = launch("torchtitan");
    run.request.options.gpus = 8;
    run.with("run.toml",
             "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n"
             "pipeline_parallel_degree = 4\npipeline_parallel_schedule = \"" +
                 schedule + "\"\n")
        .run();
    return json_at(run, "/parallel/virtual_pipeline");
  };
  CHECK(chunks("Interleaved1F1B") == "2");
  CHECK(chunks("ZBVZeroBubble") == "2");
  CHECK(chunks("1F1B") == "none");
}

TEST_CASE("torchtitan cut a batch into as many pieces as stages until 2024") {
  const auto microbatch = [](const std::string& parallelism) {
    ImportRun run = launch("torchtitan");
    run.request.options.gpus = 8;
    run.with("run.toml",
             "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nbatch_size = 16\n" +
                 parallelism)
        .run();
    return json_at(run, "/training/micro_batch");
  };
  const std::string old =
      "[experimental]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = \"1f1b\"\n";
  CHECK(microbatch(old) == "4");
  CHECK(microbatch(old + "pipeline_parallel_microbatches = 8\n") == "2");
  CHECK(microbatch("[parallelism]\npipeline_parallel_degree = 4\n") == "1");
}

TEST_CASE("a configuration of DeepSpeed needs a model, and says what it leaves open") {
  const std::string config =
      R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "overlap_comm": true,
          "offload_param": {"device": "cpu"}, "zero_hpz_partition_size": 8, "stage3_prefetch_bucket_size": 1,
          "stage3_typo": 1}, "train_micro_batch_size_per_gpu": 2,
          "gradient_accumulation_steps": 4, "train_batch_size": "auto"})";
  CHECK(contains(launch("deepspeed").with("ds.json", config).problem(), "give --model MODEL"));
  ImportRun run = launch("deepspeed");
  run.request.options.model = "llama2-7b";
  run.request.options.gpus = 16;
  run.with("ds.json", config).run();
  CHECK(json_at(run, "/training/global_batch") == "128");  // 2 * 4 * 16
  CHECK(json_at(run, "/parallel/zero_stage") == "3");
  CHECK(contains(run.messages, "zero_optimization.offload_param.device cpu"));
  CHECK(contains(run.messages, "zero_hpz_partition_size 8"));
  CHECK(contains(run.messages, "stage3_typo 1"));
  CHECK(contains(run.messages, "zero_optimization.stage3_prefetch_bucket_size 1"));
  CHECK(contains(run.messages, "calls DeepSpeed: train_batch_size 128 here; write others"));
  CHECK(contains(run.messages, "is that of llama2-7b, 4096 tokens: --sequence N gives another"));
  run.request.options.sequence = 1024;
  run.run();
  CHECK(json_at(run, "/model/sequence") == "1024");
  CHECK_FALSE(contains(run.messages, "4096 tokens"));
}

TEST_CASE("what is taken for auto in a configuration of DeepSpeed is said, with how to change it") {
  ImportRun run = launch("deepspeed");
  run.request.options.model = "llama2-7b";
  run.request.options.gpus = 16;
  run.with("ds.json", R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
      "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 3,
      "reduce_bucket_size": "auto"}, "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}})")
      .run();
  CHECK(contains(run.messages,
                 "train_batch_size 16, train_micro_batch_size_per_gpu 1, "
                 "gradient_accumulation_steps 1, bf16.enabled true, fp16.enabled false here"));
  CHECK(contains(run.messages, "--set /training/micro_batch=N"));
  CHECK(contains(run.messages, "zero_optimization.reduce_bucket_size left to the defaults here"));
  CHECK(json_at(run, "/training/precision") == "\"bf16\"");
}

TEST_CASE("a misspelt option is refused, with the one that is meant") {
  const auto problem = [](const char* kind, const char* file, const std::string& text) {
    ImportRun run = launch(kind);
    run.request.options.gpus = 8;
    if (std::string(kind) == "deepspeed") run.request.options.model = "llama2-7b";
    return run.with(file, text).problem();
  };
  const std::string script =
      "torchrun pretrain_gpt.py --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
      "--micro-batch-size 1 --global-batch-size 96 --bf16 --vocab-size 32000 ";
  CHECK(contains(
      problem("megatron", "a.sh", script + "--num-layers 32 --tensor-model-parallel-sz 2\n"),
      "line 1: tensor-model-parallel-sz is not known; did you mean "
      "--tensor-model-parallel-size?"));
  CHECK(contains(problem("megatron", "a.sh", script + "--num-layer 32\n"),
                 "did you mean --num-layers?"));
  CHECK(contains(problem("megatron", "a.sh", script + "--num_layer 32\n"),
                 "did you mean --num_layers?"));
  // Too far to be sure, and yet a size is missing.
  CHECK(contains(problem("megatron", "a.sh", script + "--n-layers 32\n"),
                 "did you mean --num-layers by n-layers 32 in line 1?"));
  CHECK(contains(problem("deepspeed", "ds.json", R"({"train_micro_batch_size_per_gpu": 2,
                         "bf16": {"enabled": true}, "zero_optimisation": {"stage": 3}})"),
                 "zero_optimisation.stage is not known; did you mean zero_optimization.stage?"));
  // An option of another version, one far from all, and one whose neighbour is given.
  const std::string messages = messages_of(
      "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 "
      "--micro-batch-size 1 --global-batch-size 96 --bf16 --vocab-size 32000 "
      "--use-flash-attn-v3 --fsdp-double-buffer --num-layerz 2");
  CHECK(contains(messages, "fsdp-double-buffer"));
  CHECK(contains(messages, "use-flash-attn-v3"));
  CHECK(contains(messages, "num-layerz 2"));
}

TEST_CASE("each key of DeepSpeed is used, changes nothing, or is named") {
  std::string messages;
  const auto value = [&](const std::string& settings, const char* pointer) {
    ImportRun run = launch("deepspeed");
    run.request.options.model = "llama2-7b";
    run.request.options.gpus = 16;
    run.with("ds.json", R"({"bf16": {"enabled": true}, "zero_optimization": {)" + settings + "}}")
        .run();
    messages = run.messages;
    return json_at(run, pointer);
  };
  const char* const bucket = "/software/gradient_bucket";
  CHECK(value(R"("stage": 2, "reduce_bucket_size": 2e8)", bucket) == "200000000");
  CHECK(value(R"("stage": 3, "reduce_bucket_size": 2e8)", bucket) == "none");
  CHECK(contains(messages, "zero_optimization.reduce_bucket_size 200000000 is not used: ZeRO 3"));
  value(R"("stage": 3, "overlap_comm": false)", bucket);
  CHECK(contains(messages, "zero_optimization.overlap_comm false is not used: ZeRO 3"));
  value(R"("stage": 3, "overlap_comm": true)", bucket);
  CHECK_FALSE(contains(messages, "overlap_comm"));
  const std::string live = R"("stage3_max_live_parameters": 1e8, "sub_group_size": 1e8)";
  CHECK(value(R"("stage": 3, )" + live, "/software/memory/live_parameters") == "100000000");
  CHECK(contains(messages, "zero_optimization.sub_group_size 100000000"));
  value(R"("stage": 2, "allgather_bucket_size": 1, )" + live, bucket);  // of stage 3 alone
  CHECK_FALSE(contains(messages, "sub_group_size"));
  CHECK(contains(messages, "zero_optimization.allgather_bucket_size 1"));
  value(R"("stage": 3, "offload_param": {"device": "none", "pin_memory": true})", bucket);
  CHECK_FALSE(contains(messages, "offload_param"));
  value(R"("stage": 2, "reduce_scatter": true, "contiguous_gradients": true)", bucket);
  CHECK_FALSE(contains(messages, "cannot be simulated"));
  value(R"("stage": 2, "reduce_scatter": false)", bucket);
  CHECK(contains(messages, "zero_optimization.reduce_scatter false cannot be simulated"));
}

TEST_CASE(
    "the number of GPUs follows from the batches of DeepSpeed, and recomputation from nothing") {
  ImportRun run = launch("deepspeed");
  run.request.options.model = "llama2-7b";
  run.with("ds.json", R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
                          "gradient_accumulation_steps": 4, "bf16": {"enabled": true}})")
      .run();
  CHECK(json_at(run, "/nodes") == "1");  // 64 / (2 * 4) GPUs
  CHECK(contains(run.messages, "write \"recompute\": \"full\" into /training"));
  ImportRun open = launch("deepspeed");
  open.request.options.model = "llama2-7b";
  CHECK(contains(open.with("ds.json", R"({"train_batch_size": 64})").problem(), "give --gpus N"));
}

TEST_CASE("offloading, MiCS and Ulysses are read from a configuration of DeepSpeed") {
  std::string messages;
  const auto value = [&](const std::string& settings, const char* pointer) {
    ImportRun run = launch("deepspeed");
    run.request.options.model = "llama2-7b";
    run.request.options.gpus = 16;
    run.with("ds.json", "{\"bf16\": {\"enabled\": true}, " + settings + "}").run();
    messages = run.messages;
    CHECK_FALSE(contains(messages, "not used"));
    return json_at(run, pointer);
  };
  const char* const states = "/training/optimizer_offload_fraction";
  CHECK(value(R"("zero_optimization": {"stage": 2, "cpu_offload": true})", states) == "1");
  CHECK(value(R"("zero_optimization": {"stage": 2, "cpu_offload": false})", states) == "none");
  const std::string part = R"(, "offload_optimizer": {"device": "cpu", "ratio": 0.5}})";
  CHECK(value(R"("zero_optimization": {"stage": 3)" + part, states) == "0.5");
  CHECK(value(R"("zero_optimization": {"stage": 2)" + part, states) == "1");  // of stage 3 alone
  const char* const group = "/parallel/zero_group";
  CHECK(value(R"("zero_optimization": {"stage": 3, "mics_shard_size": 8})", group) == "8");
  CHECK(value(R"("zero_optimization": {"stage": 3, "mics_shard_size": 16})", group) == "none");
  CHECK(value(R"("zero_optimization": {"stage": 3, "mics_shard_size": -1})", group) == "none");
  CHECK(value(R"("sequence_parallel_size": 4)", "/parallel/context") == "4");
  CHECK(value(R"("sequence_parallel_size": 4)", "/parallel/context_method") == "\"all_to_all\"");
  CHECK(value(R"("compile": {"enabled": true})", "/training/compile") == "none");
  CHECK(contains(messages, "warning: line 1: compile.enabled true cannot be simulated"));
  value(R"("compile": {"enabled": false})", "/training/compile");
  CHECK_FALSE(contains(messages, "compile"));
}

TEST_CASE("options of float8 that change its kernels are told, and a section of no converter") {
  const auto messages = [](const std::string& converters) {
    ImportRun run = launch("torchtitan");
    run.request.options.gpus = 8;
    run.with("run.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [" +
                             converters +
                             "]\n[float8]\nprecompute_float8_dynamic_scale_for_fsdp = true\n"
                             "filter_fqns = [\"output\", \"attention.wk\"]\n")
        .run();
    return run.messages;
  };
  const std::string with = messages("\"float8\"");
  CHECK(contains(with, "precompute_float8_dynamic_scale_for_fsdp true cannot be simulated"));
  CHECK(contains(with, "attention.wk\"] cannot be simulated"));
  CHECK(contains(messages(""), "[float8] has no effect: converters of [model] do not name it"));
  CHECK_FALSE(contains(messages(""), "float8."));
}

TEST_CASE("async tensor parallelism that torchtitan refuses to run uncompiled is left out") {
  std::string messages;
  const auto async = [&](const std::string& rest) {
    ImportRun run = launch("torchtitan");
    run.request.options.gpus = 8;
    run.with("run.toml",
             "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n"
             "enable_async_tensor_parallel = true\n" +
                 rest)
        .run();
    messages = run.messages;
    return json_at(run, "/parallel/async_tensor_parallel");
  };
  const std::string tensor = "tensor_parallel_degree = 8\n",
                    compiled = "[compile]\nenable = true\n";
  CHECK(async(tensor) == "none");
  CHECK(contains(messages, "warning: torchtitan refuses enable_async_tensor_parallel"));
  CHECK(async(tensor + compiled + "components = [\"loss\"]\n") == "none");
  CHECK(contains(messages, "warning: torchtitan refuses"));
  for (const std::string& rest : {compiled, std::string("[training]\ncompile = true\n")}) {
    CHECK(async(tensor + rest) == "true");
    CHECK_FALSE(contains(messages, "refuses"));
  }
  CHECK(async("") == "none");  // without tensor parallelism torchtitan does not look at it
  CHECK_FALSE(contains(messages, "refuses"));
}

TEST_CASE("DeepSpeed trains in fp32 where neither 16-bit format is enabled or left open") {
  const auto precision = [](const std::string& config) {
    ImportRun run = launch("deepspeed");
    run.request.options.model = "llama2-7b";
    run.request.options.gpus = 8;
    run.with("ds.json", config).run();
    return json_at(run, "/training/precision");
  };
  CHECK(precision(R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": false}})") == "\"bf16\"");
  CHECK(precision(R"({"bf16": {"enabled": false}, "fp16": {"enabled": false}})") == "\"fp32\"");
  CHECK(precision(R"({"fp16": {"enabled": true}})") == "\"fp16\"");
}

TEST_CASE("a launch script that does not say enough is refused with what to give") {
  CHECK(contains(launch("megatron").with("run.sh", "echo hello\n").problem(),
                 "no settings of a training program"));
  CHECK(contains(
      launch("megatron").with("run.sh", "#SBATCH --nodes=4\nsrun -N 4 hostname\n").problem(),
      "no settings of a training program"));
  CHECK(contains(launch("deepspeed").with("ds.json", "[1]").problem(), "holds no object"));
  const auto deepspeed_problem = [](const char* name, const char* text) {
    ImportRun run = launch("deepspeed");
    run.request.options.model = "llama2-7b";
    run.request.options.gpus = 8;
    return run.with(name, text).problem();
  };
  CHECK(contains(deepspeed_problem("package.json", R"({"name": "site", "private": true})"),
                 "package.json has no settings of a training program"));
  CHECK(contains(
      deepspeed_problem("hf.json", R"({"train_batch_size": "auto", "bf16": {"enabled": "auto"}})"),
      "are \"auto\": the program that calls DeepSpeed chooses them"));
  CHECK(contains(
      launch("megatron").with("run.sh", "torchrun --nproc-per-node 8 t.py --foo 1\n").problem(),
      "no settings of a training program"));
  CHECK(contains(launch("megatron").with("run.sh", "python t.py --num-layers 8\n").problem(),
                 "give --gpus N"));
  ImportRun run = launch("megatron");
  run.request.options.gpus = 8;
  CHECK(contains(run.with("run.sh", "python t.py --bf16\n").problem(), "give --model MODEL"));
  ImportRun few = launch("megatron");
  few.request.options.gpus = 4;
  CHECK(contains(few.with("run.sh", "python t.py --tensor-model-parallel-size 8\n").problem(),
                 "4 GPUs are no multiple of 8"));
}
