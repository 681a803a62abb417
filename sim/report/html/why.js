// "Why this long?": its numbers against the explanation that stands in the page.
checks.push(() => {
  const root = json('explanation');
  if (!root) return '';
  const numbers = [...document.querySelectorAll('[data-why]')];
  const report = json('report');
  for (const element of numbers) {
    const fault = compareNumber({textContent: element.textContent, dataset: {at: element.dataset.why, of: 'explanation'}}, {explanation: root});
    if (fault) return 'why: ' + fault;
  }
  if (numbers.length < 3) return `why: only ${numbers.length} numbers are shown`;
  if (root.iteration_time_s !== report.iteration_time_s) return 'why: another iteration time than the report';
  return '';
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
