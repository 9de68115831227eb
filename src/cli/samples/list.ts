/** `hopgate samples`: the newest exchanges as a table. */

import type { SampleBook, SampleRow } from '../../conversation/sample.ts';
import type { Invocation } from '../command.ts';
import { table } from '../terminal.ts';
import { filterOf } from './book.ts';
import { bytes, clock, millis } from './units.ts';

export async function runList(
  book: SampleBook,
  _rest: readonly string[],
  invocation: Invocation,
): Promise<number> {
  const { out, err, flag, number } = invocation;
  const filter = { ...filterOf(invocation, Date.now()), limit: number('limit') ?? 50 };
  const rows = book.list(filter);
  if (flag('json')) {
    out.line(JSON.stringify({ dir: book.root, samples: rows }, null, 2));
    return 0;
  }
  if (rows.length === 0) {
    err.line(`No samples in ${book.root} that fit. samples.mode decides what is kept.`);
    return 0;
  }
  const head = [
    'TIME',
    'ID',
    'STATUS',
    'ERROR',
    'MODEL',
    'TARGET',
    'IN',
    'OUT',
    'TOTAL',
    'SIZE',
    'NOTES',
  ];
  const [first, ...lines] = table(rows.map(cells), head);
  out.line(out.paint('bold', first!));
  lines.forEach((line, i) => {
    out.line(rows[i]!.failed ? out.paint('red', line) : line);
  });
  return 0;
}

const shorter = (text: string, most: number) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

function cells(row: SampleRow): readonly string[] {
  const status = row.state === 'done' ? String(row.status || '–') : row.state;
  return [
    clock(row.time),
    row.id,
    status,
    row.error || (row.failed && row.state === 'done' ? 'retried' : ''),
    shorter(row.model, 28),
    shorter(row.target, 32),
    row.input_tokens === null ? '' : String(row.input_tokens),
    row.output_tokens === null ? '' : String(row.output_tokens),
    millis(row.total_ms),
    bytes(row.bytes),
    shorter(row.notes, 40),
  ];
}
