#include "codec/codec_command.hpp"

#include <algorithm>
#include <ostream>

#include "codec/codec_bench.hpp"
#include "codec/measured_codec.hpp"
#include "codec/npy.hpp"
#include "codec/synthetic.hpp"
#include "core/option_error.hpp"
#include "core/problem.hpp"
#include "core/work_note.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t default_side = 1024;  ///< of a synthetic tensor

std::string suggestion_for(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = closest_match(word, known);
  if (!nearest.empty()) return "did you mean \"" + nearest + "\"?";
  std::string list = "there are";
  for (const std::string& name : known) list += (&name == &known.front() ? " " : ", ") + name;
  return list;
}

SyntheticKind synthetic_kind(const std::string& name) {
  if (name == "gradient") return SyntheticKind::gradient;
  if (name == "activation") return SyntheticKind::activation;
  throw option_error("--synthetic", name, "there is no synthetic tensor \"" + name + "\"",
                     suggestion_for(name, {"gradient", "activation"}));
}

Tensor synthetic_of(const CodecRequest& request, std::uint64_t seed) {
  const auto or_default = [](std::size_t side) { return side == 0 ? default_side : side; };
  if (or_default(request.rows) > most_tensor_values / or_default(request.columns))
    throw option_error("--rows", std::to_string(request.rows),
                       "a tensor of " + std::to_string(or_default(request.rows)) + " x " +
                           std::to_string(or_default(request.columns)) +
                           " has more than 2^27 numbers",
                       "ask for a smaller one");
  return synthetic_tensor(synthetic_kind(request.synthetic), or_default(request.rows),
                          or_default(request.columns), seed);
}

std::vector<std::string> measured_names() {
  std::vector<std::string> names;
  for (const MeasuredCodec& codec : measured_codecs()) names.emplace_back(codec.name);
  return names;
}

std::vector<std::string> names_of(const CodecRequest& request, std::ostream& messages) {
  std::vector<std::string> names;
  const bool all =
      request.codecs.empty() || std::count(request.codecs.begin(), request.codecs.end(), "all") > 0;
  const std::vector<std::string> known = measured_names();
  for (const std::string& name : all ? known : request.codecs) {
    if (std::count(known.begin(), known.end(), name) == 0)
      throw option_error("--codec", name, "there is no codec \"" + name + "\" to measure",
                         suggestion_for(name, known));
    const char* missing = measured_codec(name).missing_package;
    if (all && missing != nullptr)
      messages << "note: this build has no " << name << " (" << missing << "), which is left out\n";
    else if (std::count(names.begin(), names.end(), name) == 0)
      names.push_back(name);
  }
  return names;
}

std::vector<CodecChoice> choices_of(const CodecRequest& request, std::ostream& messages) {
  std::vector<CodecChoice> choices;
  for (const std::string& name : names_of(request, messages)) {
    const CodecKey* key = setting_of(name);
    const auto given = key == nullptr ? request.settings.end() : request.settings.find(key->name);
    const bool by_default = given == request.settings.end() || given->second.empty();
    for (const double setting : by_default ? measured_codec(name).settings : given->second)
      choices.push_back({name, setting});
  }
  return choices;
}

/// The messages that are added up: the file's tensor again and again, or a synthetic one drawn anew each time.
class Messages {
 public:
  Messages(const CodecRequest& request, const Tensor& tensor) : tensor_(&tensor) {
    if (request.synthetic.empty()) return;
    const auto count = static_cast<std::size_t>(request.feedback_messages);
    if (count > most_numbers / tensor.size())
      throw option_error(
          "--error-feedback", std::to_string(request.feedback_messages),
          "so many messages of " + std::to_string(tensor.size()) + " numbers are more than 2^28",
          "ask for fewer messages, or a smaller tensor");
    for (std::size_t t = 1; t < count; ++t)
      drawn_.push_back(synthetic_of(request, request.seed + t));
  }
  const Tensor& operator()(int t) const {
    return t == 0 || drawn_.empty() ? *tensor_ : drawn_[static_cast<std::size_t>(t) - 1];
  }

 private:
  static constexpr std::size_t most_numbers = std::size_t{1} << 28;  ///< 1 GiB of them
  const Tensor* tensor_;
  std::vector<Tensor> drawn_;
};

std::vector<FeedbackMeasurement> feedback_of(const std::vector<CodecChoice>& choices,
                                             const CodecRequest& request, const Tensor& tensor) {
  const Messages messages(request, tensor);
  std::vector<FeedbackMeasurement> measured;
  for (const CodecChoice& choice : choices) {
    const auto send = [&](ErrorFeedback feedback) {
      return send_with(feedback, *make_codec(choice, request.seed), request.feedback_messages,
                       messages);
    };
    measured.push_back({choice, send(ErrorFeedback::off), send(ErrorFeedback::on)});
  }
  return measured;
}

}  // namespace

document::Document run_codec(const CodecRequest& request, std::ostream& messages) {
  const WorkNoteScope measuring("measuring codecs");
  const std::vector<CodecChoice> choices = choices_of(request, messages);
  CodecReport report;
  report.seed = request.seed;
  report.tensor =
      request.synthetic.empty() ? read_npy(request.file) : synthetic_of(request, request.seed);
  for (const CodecChoice& choice : choices)
    report.codecs.push_back(measure_codec(choice, report.tensor, request.seed));
  report.feedback_messages = request.feedback_messages;
  if (request.feedback_messages > 0) report.feedback = feedback_of(choices, request, report.tensor);
  return codec_document(report);
}

}  // namespace windtunnel
