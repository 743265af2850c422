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
bool DetourSearch::goes_to(
    End& end, const End& other, int from, int neighbour) {
  ++end.looked_at;
  ++looked_at_;
  int next = first_of(neighbour);
  if (found_by_[next] == other.mark) {
    bool directly = from == end.start && next == other.start;
    return !directly;
  }
  if (found_by_[next] != end.mark) {
    found_by_[next] = end.mark;
    found_from_[next] = from;
    end.waiting.push_back(next);
  }
  return false;
}

// From all that the path went through it is known to lead to the last node
// before the lower group. `above` and `below` are where the ends met.
void DetourSearch::remember(
    const End& down, const End& up, int above, int below) {
  int last = below == up.start ? above : below;
  while (last != above && found_from_[last] != up.start) {
    last = found_from_[last];
  }
  for (int node = above;; node = found_from_[node]) {
    if (node != last) {
      jumps_[node] = last;
    }
    if (node == down.start) {
      return;
    }
  }
}

bool DetourSearch::go_down(End& down, const End& up, int last) {
  int from = down.waiting.back();
  down.waiting.pop_back();
  auto met = [&](int next) {
    if (!goes_to(down, up, from, next)) {
      return false;
    }
    remember(down, up, from, first_of(next));
    return true;
  };
  for (int member : members(from)) {
    for (int out : graph_.nodes[member].outputs) {
      for (int user : grouping_.users[out]) {
        if (user <= last && met(user)) {
          return true;
        }
      }
    }
    if (jumps_[member] >= 0 && met(jumps_[member])) {
      return true;
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
      if (producer >= 0 && goes_to(up, down, from, producer)) {
        remember(down, up, first_of(producer), from);
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
