/** `hopgate samples`: the newest exchanges as a table. */

import type { Config } from '../../../config/config.ts';
import { runInSlices } from '../../../lib/loop/steps.ts';
import { bytesText } from '../../../lib/text/amounts.ts';
import { suggest } from '../../../lib/text/did-you-mean.ts';
import { isGlob } from '../../../lib/text/glob.ts';
import { printableLine } from '../../../lib/text/printable-text.ts';
import {
  endOf,
  isFailure,
  type SampleFilter,
  type SampleRow,
  type SampleStore,
} from '../../../samples/sample.ts';
import { sentIn } from '../../../ui/api/bodies/said.ts';
import { type Found, TextSearch } from '../../../ui/api/search/text-search.ts';
import { askedIn as asked, firstWords } from '../../../ui/api/stories.ts';
import type { Invocation } from '../../command.ts';
import { runningExchanges } from '../../running-gateway.ts';
import { type Columns, plural, printTable, prose } from '../../terminal.ts';
import { filterOf, filtersGiven, readingParts } from './open-samples.ts';
import { clock, millis } from './units.ts';

export async function runList(
  store: SampleStore,
  _rest: readonly string[],
  invocation: Invocation,
  config?: Config,
): Promise<number> {
  const { out, err, flag, number } = invocation;
  const said = invocation.text('search')?.trim() ?? '';
  const found = said === '' ? undefined : await search(store, said, invocation);
  const filter = {
    ...filterOf(invocation, Date.now()),
    ...(found !== undefined && { q: said, found: found.ids }),
    limit: number('limit') ?? 50,
  };
  const rows = await rowsOf(store, filter, invocation, config);
  if (found?.partial === true) err.line('Very many texts match: only the newest were looked at.');
  if (flag('json')) {
    const samples =
      found === undefined
        ? rows
        : rows.map((row) => ({ ...row, hit: found.snippet(row.id) ?? null }));
    out.line(JSON.stringify({ dir: store.root, samples }, null, 2));
    return 0;
  }
  if (flag('ids')) {
    for (const { id } of rows) out.line(id);
    return 0;
  }
  if (rows.length === 0) {
    const hint = await noteHint(store, filter.note);
    if (hint !== undefined) err.line(hint);
    for (const line of prose(nothingFound(store.root, filter, config), err)) err.line(line);
    return 0;
  }
  const shown: ShownRow[] = [];
  for (const row of rows) shown.push({ ...row, asked: await askedIn(store, row, invocation) });
  const style = (row: ShownRow) => (isFailure(endOf(row)) ? 'red' : undefined);
  printTable(out, shown, COLUMNS, NARROWER, style, ({ id }) => {
    const hit = found?.snippet(id);
    if (hit === undefined) return;
    const [before, said, after] = [hit.before, hit.hit, hit.after].map((text) =>
      printableLine(text, MAX_HIT),
    );
    out.line(`    ${before}${out.paint('bold', said!)}${after}`);
  });
  return 0;
}

type ShownRow = SampleRow & { readonly asked: string };

/** Rows whose bodies are read for what was asked: each takes a millisecond or more. */
async function askedIn(
  store: SampleStore,
  row: SampleRow,
  { services }: Invocation,
): Promise<string> {
  const meta = row.state === 'open' ? undefined : store.find(row.id);
  if (meta === undefined) return '';
  const parts = readingParts(await services());
  const conversation = await runInSlices(sentIn({ store, meta, parts }));
  return conversation === undefined ? '' : printableLine(firstWords(asked(conversation)), MAX_HIT);
}

/** Reads what is not in the index yet, and finds the exchanges that said all these words. */
async function search(
  store: SampleStore,
  said: string,
  { services, err }: Invocation,
): Promise<Found> {
  const texts = new TextSearch({
    store: () => store,
    recent: undefined,
    parts: readingParts(await services()),
    share: 1,
  });
  try {
    await texts.read();
    const found = await texts.find(said);
    if (found.unread > 0) {
      err.line(
        `${plural(found.unread, 'exchange')} could not be read yet: the search may miss them.`,
      );
    }
    return found;
  } finally {
    await texts.close();
  }
}

/** Samples on disk, and the exchanges that run in the gateway which records there. */
async function rowsOf(
  store: SampleStore,
  filter: SampleFilter & { readonly limit: number },
  invocation: Invocation,
  config: Config | undefined,
): Promise<readonly SampleRow[]> {
  const { text, io } = invocation;
  const rows = store.list(filter);
  const asksForOpen = filter.status === undefined || /\bopen\b/i.test(filter.status);
  if (config === undefined || text('dir') !== undefined || !asksForOpen) return rows;
  const made = text('made');
  const asked = { ...filtersGiven(invocation), ...(made !== undefined && { made }) };
  const running = await runningExchanges(config, io.fetch, asked);
  const onDisk = new Set(rows.map(({ id }) => id));
  return [...running.filter(({ id }) => !onDisk.has(id)), ...rows]
    .sort((a, b) => b.time - a.time)
    .slice(0, filter.limit);
}

/** Why a table may be empty, by `samples.mode`. */
export const RECORDED = {
  errors:
    'Only failures are recorded (samples.mode: errors); "samples: { mode: all }" in the configuration records every exchange. The page of a running gateway also shows the newest ones that are not on disk ("hopgate ui").',
  all: 'Every exchange is recorded (samples.mode: all).',
  off: 'Nothing is recorded (samples.mode: off).',
};

/** What an empty table means. @param config undefined where only the folder is known */
function nothingFound(root: string, filter: SampleFilter, config: Config | undefined): string {
  const isFiltered = Object.entries(filter).some(
    ([name, value]) => name !== 'limit' && value !== undefined,
  );
  const none = isFiltered ? `No samples in ${root} match.` : `There are no samples in ${root}.`;
  return config === undefined ? none : `${none} ${RECORDED[config.samples.mode]}`;
}

/** Characters of a part of a hit. */
const MAX_HIT = 200;

/** Time, id, status and error stay to the last: they say which exchange failed, and why. */
const NARROWER = {
  spare: ['SIZE', 'CLIENT', 'CACHED', 'IN', 'OUT', 'NOTES', 'TARGET', 'TOTAL', 'ASKED', 'MODEL'],
  cut: { STATUS: 7, MODEL: 12, TARGET: 14, CLIENT: 8, NOTES: 16, ERROR: 10, ASKED: 20 },
  right: ['IN', 'CACHED', 'OUT', 'TOTAL', 'SIZE'],
};

/** A hint for a note name that is in neither the manual nor a sample; undefined for a known one. */
async function noteHint(store: SampleStore, note: string | undefined): Promise<string | undefined> {
  if (note === undefined || isGlob(note)) return undefined;
  const { PAGES } = await import('../../../manual/pages.ts');
  const manual = PAGES.find(({ name }) => name === 'notes')?.text ?? '';
  const known = new Set([...manual.matchAll(/^### ([a-z0-9_]+)$/gim)].map(([, name]) => name!));
  for (const row of store.list({ limit: 1000 })) {
    for (const one of row.notes.split(',')) known.add(one.split('=')[0]!);
  }
  known.delete('');
  if (known.has(note)) return undefined;
  const meant = suggest(note, known);
  return `There is no note "${note}"${meant === undefined ? '.' : `: did you mean "${meant}"?`}`;
}

const stateWord = (state: SampleRow['state']) => (state === 'cut' ? 'unfinished' : state);

/** The kind of the error, or what else there is to say of the end. */
function errorOf(row: SampleRow): string {
  switch (endOf(row)) {
    case 'cut':
      return row.error === 'upstream' ? 'cut off' : `cut off (${row.error})`;
    case 'left':
      return 'client left';
    case 'retried':
      return 'retried';
    default:
      return row.error;
  }
}

function statusOf({ state, status, made_by }: SampleRow): string {
  const word = state === 'done' ? String(status || '–') : stateWord(state);
  return made_by === '' ? word : `${word} (${made_by})`;
}

const COLUMNS: Columns<ShownRow> = {
  TIME: ({ time }) => clock(time),
  ID: ({ id }) => id,
  STATUS: statusOf,
  ERROR: errorOf,
  MODEL: ({ model }) => model,
  TARGET: ({ target }) => target,
  CLIENT: ({ client }) => client,
  IN: (row) => String(row.input_tokens ?? ''),
  CACHED: (row) => String(row.cached_tokens ?? ''),
  OUT: (row) => String(row.output_tokens ?? ''),
  TOTAL: (row) => millis(row.total_ms),
  SIZE: (row) => bytesText(row.bytes),
  NOTES: ({ notes }) => notes,
  ASKED: (row) => row.asked,
};
