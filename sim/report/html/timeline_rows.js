// The timeline of a run: one row a device and stream on a canvas. What is narrower than a pixel is drawn as shares of the
// pixel's time, so that nothing is lost however far out one looks.
const timelineKinds = ['forward', 'backward', 'weight_gradient', 'optimizer', 'other', 'tensor_comm', 'pipeline_comm',
  'data_comm', 'embedding_sync', 'codec', 'pipeline_bubble', 'expert_comm', 'context_comm', 'peer_wait'];
const kindOf = Object.fromEntries(timelineKinds.map((name, i) => [name, i]));
const partKinds = ['compute', 'tensor_comm', 'codec', 'optimizer', 'other', 'data_comm', 'expert_comm', 'context_comm'];  // in their order in an op
const streams = ['compute', 'comm:tensor', 'comm:pipeline', 'comm:data', 'codec'];
const streamOfTraffic = (traffic) => (traffic === 'tensor_activations' || traffic === 'context' ? 'comm:tensor' : traffic.startsWith('pipeline') ? 'comm:pipeline' : 'comm:data');

const unpack = async (data) => {
  const packed = Uint8Array.from(atob(data.bytes), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const columns = {};
  for (const [name, [offset, count]] of Object.entries(data.columns)) {
    const column = new Float64Array(count);
    let place = offset, value = 0;
    for (let i = 0; i < count; ++i) {
      let rest = 0, scale = 1, byte;
      do {
        byte = bytes[place++];
        rest += (byte & 127) * scale;
        scale *= 128;
      } while (byte & 128);
      value += rest % 2 ? -(rest + 1) / 2 : rest / 2;
      column[i] = value;
    }
    columns[name] = column;
  }
  return columns;
};

// Things side by side on one row (or half of one, where a stream sends and receives at the same time).
class Track {
  constructor() { this.things = []; }
  add(begin, end, kind, source, index) { if (end > begin) this.things.push([begin, end, kind, source, index]); }
  close() {
    const things = this.things.sort((a, b) => a[0] - b[0]);
    this.count = things.length;
    this.begin = Float64Array.from(things, (thing) => thing[0]);
    this.end = Float64Array.from(things, (thing) => thing[1]);
    this.kind = Uint8Array.from(things, (thing) => thing[2]);
    this.source = Uint8Array.from(things, (thing) => thing[3]);
    this.index = Uint32Array.from(things, (thing) => thing[4]);
    this.longest = things.reduce((most, thing) => Math.max(most, thing[1] - thing[0]), 0);
    this.things = null;
  }
  // The first thing that may reach beyond `time`.
  first(time) {
    let low = 0, high = this.count;
    for (time -= this.longest; low < high;) {
      const middle = (low + high) >> 1;
      if (this.begin[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }
}
const sources = {compute: 0, part: 1, bubble: 2, wait: 3, send: 4, receive: 5, collective: 6};

const buildRows = (data, columns) => {
  const rows = data.devices.map((device, i) => Object.fromEntries(streams.map((stream) =>
    [stream, {device: i, stream, tracks: stream === 'comm:pipeline' ? [new Track(), new Track()] : [new Track()]}])));
  const ops = data.ops.map(([stream, phase, kind, chunk, ...parts]) => ({stream, phase, chunk, parts, kind: kindOf[kind]}));
  const phaseKind = (phase) => kindOf[data.phases[phase][1]] ?? kindOf.other;
  for (let i = 0; i < columns.compute_begin.length; ++i) {
    const begin = columns.compute_begin[i], op = ops[columns.compute_op[i]], row = rows[columns.compute_device[i]];
    row[op.stream].tracks[0].add(begin, begin + columns.compute_duration[i], op.kind, sources.compute, i);
    if (op.stream !== 'compute') continue;
    let from = begin;
    op.parts.forEach((length, part) => {
      const stream = part === 1 ? 'comm:tensor' : part === 5 ? 'comm:data' : '';
      if (stream) row[stream].tracks[0].add(from, from + length, kindOf[partKinds[part]], sources.part, i);
      from += length;
    });
  }
  for (let i = 0; i < columns.wait_begin.length; ++i) {
    const begin = columns.wait_begin[i], track = rows[columns.wait_device[i]].compute.tracks[0];
    const kind = phaseKind(columns.wait_phase[i]), entered = begin + columns.wait_own[i], sent = begin + columns.wait_others[i];
    const isOfPipeline = kind === kindOf.pipeline_comm || kind === kindOf.embedding_sync;
    track.add(begin, entered, kind, sources.wait, i);
    track.add(entered, sent, isOfPipeline ? kindOf.pipeline_bubble : kindOf.peer_wait, sources.bubble, i);
    track.add(sent, begin + columns.wait_duration[i], kind, sources.wait, i);
  }
  for (let i = 0; i < columns.message_begin.length; ++i) {
    const [from, to] = data.channels[columns.message_channel[i]];
    const begin = columns.message_begin[i], end = begin + columns.message_duration[i];
    const kind = phaseKind(columns.message_phase[i]);
    if (from !== null) rows[from]['comm:pipeline'].tracks[0].add(begin, end, kind, sources.send, i);
    if (to !== null) rows[to]['comm:pipeline'].tracks[1].add(begin, end, kind, sources.receive, i);
  }
  for (let i = 0; i < columns.collective_begin.length; ++i) {
    const [members, , , traffic] = data.groups[columns.collective_group[i]];
    const begin = columns.collective_begin[i], kind = phaseKind(columns.collective_phase[i]);
    for (const member of members)
      rows[member][streamOfTraffic(traffic)].tracks[0].add(begin, begin + columns.collective_duration[i], kind, sources.collective, i);
  }
  for (const row of rows) for (const stream of streams) for (const track of row[stream].tracks) track.close();
  return {rows, ops};
};

