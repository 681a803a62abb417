// How long does one iteration take, and why?  one_iteration LIBRARY SCENARIO
#include <iostream>
#include <windtunnel.hpp>
using namespace windtunnel;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const Library library{argv[1]};
    const Scenario scenario = read_scenario(argv[2], library);
    const Report report = simulate(scenario, {.evidence = &library}).report;
    std::cerr << to_text(report.iteration_time) << "\n";
    std::cout << to_json(report);
  } catch (const InputError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
