/** `hopgate samples show`: one exchange as a timeline of its edges. */

import type { SampleBook, SampleEdge, SampleMeta } from '../../conversation/sample.ts';
import type { Invocation } from '../command.ts';
import { table } from '../terminal.ts';
import { sampleOf } from './folder.ts';
import { bytes, clock, millis } from './units.ts';

export async function runShow(
  book: SampleBook,
  [id]: readonly string[],
  { out, flag }: Invocation,
): Promise<number> {
  const meta = sampleOf(book, id, 'samples show');
  if (flag('json')) {
    const edges = meta.edges.map((edge) => ({ ...edge, path: book.path(meta, edge.stage) }));
    out.line(JSON.stringify({ ...meta, edges }, null, 2));
    return 0;
  }
  out.line(out.paint('bold', meta.id));
  for (const [name, value] of facts(meta)) out.line(`  ${name.padEnd(9)} ${value}`);
  out.line();
  const rows = meta.edges.map((edge) => row(edge));
  const [head, ...lines] = table(rows, ['AT', 'EDGE', 'STATUS', 'SIZE', 'TOOK', 'WHERE']);
  out.line(out.paint('bold', head!));
  lines.forEach((line, i) => {
    const failed = meta.edges[i]!.error !== undefined || (meta.edges[i]!.status ?? 0) >= 400;
    out.line(failed ? out.paint('red', line) : line);
  });
  for (const { name, hop, ms, error } of meta.tools ?? []) {
    const after = hop === undefined ? '' : ` after hop ${hop}`;
    out.line(`tool ${name}${after}, ${millis(ms)}${error === undefined ? '' : `: ${error}`}`);
  }
  if (meta.notes.length > 0) {
    out.line();
    out.line(out.paint('bold', 'NOTES'));
    for (const { name, where, what } of meta.notes) {
      out.line(
        `  ${name}${where === undefined ? '' : ` at ${where}`}${what === undefined ? '' : `: ${what}`}`,
      );
    }
  }
  return 0;
}

function facts(meta: SampleMeta): readonly (readonly [string, string])[] {
  const { error, usage } = meta;
  const all: (readonly [string, string | undefined])[] = [
    ['about', meta.about],
    ['time', clock(meta.time)],
    ['entry', meta.entry + (meta.stream === true ? ', streamed' : '')],
    ['model', meta.model],
    ['target', meta.target],
    [
      'status',
      meta.state === 'done' ? meta.status?.toString() : `${meta.state}: not all of it is here`,
    ],
    ['error', error === undefined ? undefined : `${error.kind}: ${error.message}`],
    ['tries', (meta.tries ?? 1) > 1 ? `${meta.tries} in ${meta.hops} hops` : undefined],
    ['took', millis(meta.total_ms)],
    ['usage', usage === undefined ? undefined : `${JSON.stringify(usage)}`],
    ['session', meta.session],
    ['masked', meta.masked > 0 ? `${meta.masked} credentials` : undefined],
  ];
  return all.filter((pair): pair is readonly [string, string] => Boolean(pair[1]));
}

function row(edge: SampleEdge): readonly string[] {
  const took = edge.at === undefined || edge.until === undefined ? undefined : edge.until - edge.at;
  return [
    millis(edge.at),
    edge.stage + (edge.cut === true ? ' (cut)' : ''),
    edge.made === true ? 'none' : String(edge.status ?? ''),
    bytes(edge.bytes),
    millis(took),
    edge.error?.message ?? edge.url ?? '',
  ];
}
