// The critical path on the timeline: a strip that says for each time what the end of the iteration waited for, and the things on
// the path alone on each row, so that they can be drawn over a faded rest.
const pathStep = 7;  // source of what is on the strip
const pathSources = [[sources.compute, sources.part], [sources.send, sources.receive], [sources.collective]];

const buildPath = (data, columns, rows) => {
  const strip = new Track(), runs = [], onPath = [0, 1, 2].map(() => new Set());
  for (let i = 0; i < columns.path_begin.length; ++i) {
    const begin = columns.path_begin[i], kind = kindOf[data.path[columns.path_name[i]][1]] ?? kindOf.other;
    const name = data.path[columns.path_name[i]][0], last = runs[runs.length - 1];
    strip.add(begin, begin + columns.path_duration[i], kind, pathStep, i);
    if (last && last.name === name) last.end = begin + columns.path_duration[i];
    else runs.push({name, begin, end: begin + columns.path_duration[i]});
    if (columns.path_index[i] >= 0) onPath[columns.path_kind[i]].add(columns.path_index[i]);
  }
  strip.close();
  const isOn = (source, index) => pathSources.some((list, kind) => list.includes(source) && onPath[kind].has(index));
  for (const row of rows) {
    for (const stream of streams) {
      for (const track of row[stream].tracks) {
        const path = track.path = new Track();
        for (let i = 0; i < track.count; ++i)
          if (isOn(track.source[i], track.index[i])) path.add(track.begin[i], track.end[i], track.kind[i], track.source[i], track.index[i]);
        path.close();
      }
    }
  }
  return {strip, runs, isOn};
};

// What is said of a thing: on the path, or how much later it could end.
const slackLine = (view, track, i) => {
  const source = track.source[i], name = ['compute', 'message', 'collective'][pathSources.findIndex((list) => list.includes(source))];
  if (!name) return [];
  if (view.path.isOn(source, track.index[i])) return ['on the critical path'];
  const slack = view.columns[name + '_slack'][track.index[i]];
  return [slack > 0 ? `could end ${timeText(slack)} later` : 'no slack: on another longest path'];
};
