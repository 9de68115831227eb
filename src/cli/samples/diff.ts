/** `hopgate samples diff`: what happened to a body between two edges, and which rule did it. */

import type { ExplainedChange, SampleBook, SampleMeta } from '../../conversation/sample.ts';
import { type Json, tryParse } from '../../lib/json.ts';
import { diffJson } from '../../lib/json-diff.ts';
import { SseParser } from '../../lib/sse.ts';
import { type Invocation, UsageError } from '../command.ts';
import { explainChanges } from './explain.ts';
import { sampleOf } from './folder.ts';

export async function runDiff(
  book: SampleBook,
  [id, first, second]: readonly string[],
  { out, flag }: Invocation,
): Promise<number> {
  const meta = sampleOf(book, id, 'samples diff');
  const from = first ?? 'client-request';
  const to =
    second ??
    (first === undefined || /request$/.test(first) ? lastRequest(meta) : 'client-response');
  const [a, b] = [bodyOf(book, meta, from), bodyOf(book, meta, to)];
  const changes = explainChanges(diffJson(a, b), meta.notes);
  const identical = Buffer.from(book.read(meta, from)!).equals(book.read(meta, to)!);
  if (flag('json')) {
    out.line(JSON.stringify({ id: meta.id, a: from, b: to, identical, changes }, null, 2));
    return 0;
  }
  out.line(out.paint('bold', `${from} → ${to}`));
  if (identical) out.line('byte for byte the same');
  else if (changes.length === 0) out.line('the same values, written differently');
  for (const change of changes) {
    const style = change.kind === 'added' ? 'green' : change.kind === 'removed' ? 'red' : 'yellow';
    out.line(out.paint(style, inWords(change, out.width)));
    if (change.rules.length > 0) out.line(out.paint('dim', `    by ${change.rules.join(', ')}`));
  }
  return 0;
}

/** The request that led to the answer: that of the last hop. */
const lastRequest = (meta: SampleMeta) =>
  meta.edges.findLast(({ stage }) => /^(hop\d+-)?provider-request$/.test(stage))?.stage ??
  'provider-request';

/** A body as JSON: an event stream as the list of its events. @throws UsageError */
function bodyOf(book: SampleBook, meta: SampleMeta, stage: string): Json {
  const bytes = book.read(meta, stage);
  if (bytes === undefined) {
    const names = meta.edges.map((edge) => edge.stage).join(', ');
    throw new UsageError(`${meta.id} has no edge "${stage}". It has: ${names}.`);
  }
  if (book.path(meta, stage).endsWith('.sse')) {
    const parser = new SseParser();
    return [...parser.push(bytes), ...parser.end()]
      .filter(({ data }) => data !== undefined)
      .map(({ event, data }) => ({
        ...(event !== '' && { event }),
        data: tryParse(data!) ?? data!,
      }));
  }
  const text = new TextDecoder().decode(bytes);
  return tryParse(text) ?? text;
}

const SIGNS = { added: '+', removed: '-', changed: '~' } as const;

function inWords({ kind, at, to, before, after }: ExplainedChange, width: number): string {
  const short = (value: Json | undefined) => {
    const text = JSON.stringify(value) ?? '';
    const most = Math.max(30, Math.floor(width / 2) - 10);
    return text.length > most ? `${text.slice(0, most)}… (${text.length} characters)` : text;
  };
  const place = `${SIGNS[kind]} ${at || '/'}${to === undefined ? '' : ` → ${to}`}`;
  if (kind === 'changed') return `${place}: ${short(before)} → ${short(after)}`;
  return `${place}: ${short(kind === 'added' ? after : before)}`;
}
