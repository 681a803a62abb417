// The table of a sweep's points: sorted by any column, a part of it at a time.
class PointTable {
  constructor(table, rows) {
    this.table = table;
    this.rows = rows.map((row, place) => ({row, place}));
    this.columns = [...table.querySelectorAll('th')].map((head) => ({...head.dataset, head}));
    this.body = table.tBodies[0];
    this.step = Number(table.dataset.shown);
    this.shown = Math.min(this.step, rows.length);
    this.more = make('button', {type: 'button', class: 'more'});
    this.more.addEventListener('click', () => { this.shown = Math.min(this.rows.length, this.shown + this.step); this.fill(); });
    table.parentElement.after(this.more);
    for (const column of this.columns) {
      const button = make('button', {type: 'button', title: 'Sort'}, ...column.head.childNodes);
      button.addEventListener('click', () => this.sort(column));
      column.head.replaceChildren(button);
    }
    this.tell();
  }

  sort(column) {
    const now = column.head.getAttribute('aria-sort');
    const ascending = now ? now === 'descending' : column.first !== 'descending';
    for (const other of this.columns) other.head.removeAttribute('aria-sort');
    column.head.setAttribute('aria-sort', ascending ? 'ascending' : 'descending');
    const value = ({row}) => row[column.key], sign = ascending ? 1 : -1;
    this.rows.sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined) || a.place - b.place;  // nothing last
      if (typeof x === 'number' && typeof y === 'number') return sign * (x - y) || a.place - b.place;
      return sign * String(x).localeCompare(String(y), 'en', {numeric: true}) || a.place - b.place;
    });
    this.fill();
  }

  cell(column, {row, place}) {
    const is_bound = row.memory_verdict === 'lower_bound', doubt = {lower_bound: 'not known', at_risk: 'at risk'}[row.memory_verdict];
    const value = row[column.key],
      cell = make('td', column.scale ? {class: 'n'} : {});
    if (value === undefined) return cell;
    if (column.scale) {
      const figure = (number, key) => {
        const text = (number / Number(column.scale)).toFixed(Number(column.digits));
        const grouped = column.digits === '0' ? text.replace(/\B(?=(\d{3})+$)/g, ',') : text;
        return make('span', {'data-of': 'sweep-points', 'data-at': `/${place}/${key}`, 'data-unit': column.unit}, grouped);
      };
      if (Array.isArray(value)) cell.append(figure(value[0], `${column.key}/0`), ' to ', figure(value[1], `${column.key}/1`));
      else cell.append(column.key === 'memory_max_bytes' && is_bound ? '≥ ' : '', figure(value, column.key));
    } else if (column.key === 'fits') cell.append(!value ? make('strong', {class: 'bad'}, 'NO') : doubt ?? 'yes');
    else cell.append(typeof value === 'string' ? value : JSON.stringify(value));
    return cell;
  }

  fill() {
    this.body.replaceChildren(...this.rows.slice(0, this.shown).map((entry) =>
      make('tr', {class: entry.row.fits === false ? 'large' : ''}, ...this.columns.map((column) => this.cell(column, entry)))));
    this.tell();
  }

  tell() {
    const left = this.rows.length - this.shown;
    this.more.hidden = left === 0;
    this.more.textContent = `${Math.min(left, this.step)} more of ${left}`;
  }
}

parts.push(() => {
  const table = document.querySelector('table.points-table'), rows = json('sweep-points');
  if (!table || !rows) return;
  const place = table.parentElement.previousElementSibling;
  const view = new PointTable(table, rows);
  place?.classList.contains('sort-hint') && (place.hidden = false);
  checks.push(() => {
    const column = view.columns.find((each) => each.key === 'tokens_per_s'), button = column.head.querySelector('button');
    const order = () => [...view.body.rows].map((row) => row.querySelector('[data-at$="/tokens_per_s"]')).filter(Boolean)
      .map((cell) => exactNumber(cell, {'sweep-points': rows}));
    const before = [...view.rows];
    button.click();
    const first = order();
    button.click();
    const second = order();
    const faults = [...view.body.querySelectorAll('[data-at]')].map((cell) => compareNumber(cell, {'sweep-points': rows})).filter(Boolean);
    view.rows = before;
    column.head.removeAttribute('aria-sort');
    view.fill();
    if (faults.length) return 'points: ' + faults[0];
    const is = (list, sign) => list.every((value, i) => i === 0 || sign * (value - list[i - 1]) >= 0);
    return is(first, -1) && is(second, 1) ? '' : 'points: the table is not sorted';
  });
});
