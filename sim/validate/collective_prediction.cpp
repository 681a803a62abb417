#include "cost/collective_cost.hpp"
#include "questions/collective.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {

PointPrediction predict_collective(const CollectiveRun& run, const JsonValue& scenario,
                                   const std::filesystem::path& folder, const Library& library,
                                   const ReadOptions& reading) {
  const Platform machine = read_platform(scenario, folder, library, reading);
  PointPrediction prediction;
  prediction.time = play_collective(run, machine).time;
  prediction.ideal_work = Flops{bus_bandwidth(run, Seconds{1}).value()};
  for (const auto& [key, source] : machine.sources)
    if (source.evidence == Evidence::fitted)
      prediction.fitted.push_back({"platform " + machine.name + ": " + key, source.text});
  return prediction;
}

}  // namespace windtunnel
