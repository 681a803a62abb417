// Which tensor size makes an iteration shortest?  tensor_sizes LIBRARY SCENARIO
#include <iostream>
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
      const Report report = simulate(scenario).report;
      std::cout << "tensor " << tensor << ", data " << scenario.plan.parallel.data << ": "
                << to_text(report.iteration_time)
                << (report.memory.fits ? "\n" : ", does not fit in memory\n");
    }
  } catch (const InputError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
