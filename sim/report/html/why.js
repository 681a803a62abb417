// "Why this long?": its numbers, which are of the explanation that stands in the page, are there, and are of this report.
checks.push(() => {
  const root = json('explanation');
  if (!root) return '';
  const numbers = document.querySelectorAll('[data-of="explanation"]');
  if (numbers.length < 3) return `why: only ${numbers.length} numbers are shown`;
  return root.iteration_time_s === json('report').iteration_time_s ? '' : 'why: another iteration time than the report';
});
// The shares and the segments of the critical path both add up to the iteration time.
checks.push(() => {
  const root = json('explanation');
  if (!root) return '';
  const whole = root.iteration_time_s, near = (a, b) => Math.abs(a - b) <= 1e-9 * whole;
  const sum = root.critical_path.reduce((all, share) => all + share.time_s, 0);
  if (!near(sum, whole)) return `why: the shares add up to ${sum} s, not ${whole} s`;
  let time = 0;
  for (const segment of root.segments) {
    if (!near(segment.begin_s, time)) return `why: a gap in the critical path at ${time} s`;
    time = segment.end_s;
  }
  return near(time, whole) ? '' : `why: the critical path ends at ${time} s`;
});
