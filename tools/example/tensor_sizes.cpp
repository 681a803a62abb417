// Which tensor size makes an iteration shortest?  tensor_sizes LIBRARY SCENARIO
#include <iostream>
#include <variant>
#include <windtunnel.hpp>

using namespace windtunnel;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: tensor_sizes LIBRARY SCENARIO\n";
    return 2;
  }
  try {
    const Library library{argv[1]};
    for (const char* tensor : {"1", "2", "4", "8"}) {
      ReadOptions options;
      options.overrides = {{"/parallel/tensor", tensor}, {"/parallel/data", "null"}};
      const Scenario scenario = read_scenario(argv[2], library, options);
      const IsolatedOutcome outcome = simulate_isolated(scenario);
      std::cout << "tensor " << tensor << ", data " << scenario.plan.parallel.data << ": ";
      if (const auto* failure = std::get_if<ChildFailure>(&outcome)) {
        std::cout << failure->text << "\n";
        continue;
      }
      const KeyFigures& figures = std::get<IsolatedResult>(outcome).figures;
      std::cout << to_text(figures.iteration_time)
                << (figures.fits ? "\n" : ", does not fit in memory\n");
    }
  } catch (const InputError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
