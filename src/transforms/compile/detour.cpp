// The search from both ends.
#include "transforms/compile/detour.h"

namespace mlx::core::detail {

int DetourSearch::first_of(int node) const {
  int group = grouping_.group_of[node];
  return group < 0 ? node : grouping_.groups[group].nodes[0];
}

std::span<const int> DetourSearch::members(const int& node) const {
  int group = grouping_.group_of[node];
  if (group < 0) {
    return {&node, 1};
  }
  return grouping_.groups[group].nodes;
}

DetourSearch::End DetourSearch::start(int group) {
  int first = grouping_.groups[group].nodes[0];
  found_by_[first] = ++marks_;
  return {first, {first}, marks_};
}

// What the next step of an end would bring it to.
size_t DetourSearch::cost(const End& end) const {
  return end.looked_at + members(end.waiting.back()).size();
}

// Whether the ends met at this neighbour; if not, the search goes on from it.
bool DetourSearch::meets(End& end, const End& other, int from, int neighbour) {
  ++end.looked_at;
  int next = first_of(neighbour);
  if (found_by_[next] == other.mark) {
    bool directly = from == end.start && next == other.start;
    return !directly;
  }
  if (found_by_[next] != end.mark) {
    found_by_[next] = end.mark;
    end.waiting.push_back(next);
  }
  return false;
}

bool DetourSearch::go_down(End& down, const End& up, int last) {
  int from = down.waiting.back();
  down.waiting.pop_back();
  for (int member : members(from)) {
    for (int out : graph_.nodes[member].outputs) {
      for (int user : grouping_.users[out]) {
        if (user <= last && meets(down, up, from, user)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool DetourSearch::go_up(End& up, const End& down) {
  int from = up.waiting.back();
  up.waiting.pop_back();
  for (int member : members(from)) {
    for (int in : graph_.nodes[member].inputs) {
      int producer = graph_.values[in].node;
      if (producer >= 0 && meets(up, down, from, producer)) {
        return true;
      }
    }
  }
  return false;
}

bool DetourSearch::exists(int a, int b, int last) {
  End down = start(a);
  End up = start(b);
  while (!down.waiting.empty() && !up.waiting.empty()) {
    bool met =
        cost(down) < cost(up) ? go_down(down, up, last) : go_up(up, down);
    if (met) {
      return true;
    }
  }
  return false;
}

}  // namespace mlx::core::detail
