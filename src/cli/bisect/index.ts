/** `hopgate bisect`: finds the smallest request that still fails in the same way, and says what is in it. */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '../../config/config.ts';
import type { BisectReport, ProbeReport } from '../../conversation/bisection.ts';
import type { SampleBook } from '../../conversation/sample.ts';
import type { JsonObject } from '../../lib/json.ts';
import { type Invocation, UsageError } from '../command.ts';
import { loadOrTell } from '../load-config.ts';
import { outcomeOf } from '../replay/outcome.ts';
import { probing } from '../replay/settings.ts';
import { bodyOf, type Source, sourceOf, withModel } from '../replay/source.ts';
import { bookOf } from '../samples/folder.ts';
import { bytes } from '../samples/units.ts';
import { type Asking, asking } from './asking.ts';
import { openWork, type Work } from './work.ts';

const BUDGET = 100;

/** Exit 0 when a cause was found; 1 when it does not fail, 3 when the search was ended early without one. */
export async function runBisect(invocation: Invocation): Promise<number> {
  const config = await loadOrTell(invocation);
  const book = config === undefined ? undefined : await bookOf(invocation);
  if (config === undefined || book === undefined) return 1;
  try {
    const named = invocation.arguments[0];
    if (named === undefined) throw new UsageError('"hopgate bisect" needs an id or a file.');
    return await bisectSource(book, config, sourceOf(book, named, invocation), invocation);
  } finally {
    book.close();
  }
}

async function bisectSource(
  book: SampleBook,
  config: Config,
  source: Source,
  invocation: Invocation,
): Promise<number> {
  const { deps, io, out, err, flag, number, text } = invocation;
  const repair = !flag('no-repair') && !source.straight;
  // One target: a fallback would hide the failure that is looked for.
  const to = text('to') ?? source.target;
  const body = bodyOf(source);
  const work = openWork(join(io.environment.home, 'bisect'), [body, to, repair], flag('fresh'));
  const gateway = deps.gateway({
    config: probing(config, { ...config.samples, mode: 'all', dir: work.samples, redact: [] }),
    environment: io.environment,
    repair,
  });
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.on('SIGINT', interrupt);
  const protocol = deps.protocols[source.protocol];
  const recorded = source.answer && outcomeOf(protocol, source.answer);
  const asked = asking({
    gateway,
    protocol,
    like: source,
    bytes: (candidate) => sent(candidate, body, source, to),
    recorded: recorded?.failure === undefined ? undefined : recorded,
    signal: stop.signal,
  });
  const known = [...work.known.values()].reduce((sum, verdicts) => sum + verdicts.length, 0);
  if (known > 0)
    err.line(`Going on with an earlier run: ${known} answers are known (--fresh forgets them).`);
  let report: BisectReport;
  try {
    report = await deps.bisect({
      body,
      protocol: source.protocol,
      budget: number('budget') ?? BUDGET,
      known: work.known,
      signal: stop.signal,
      ask: (candidate) => asked.ask(candidate),
      onProbe: (probe) => {
        work.add(probe.key, probe.verdict, asked.last?.id ?? '');
        progress(probe, invocation);
      },
    });
  } finally {
    process.off('SIGINT', interrupt);
    await gateway.close();
  }
  const samples = keep(book, work, report, source, deps);
  if (report.result !== 'partial') work.remove();
  if (flag('json')) {
    const { minimal, probes, cause, words, ...rest } = report;
    const shown = { minimal, probes, cause: cause ?? null, words, ...rest };
    out.line(
      JSON.stringify(
        {
          ...shown,
          passing: report.passing ?? null,
          samples,
          failure: asked.wanted?.failure ?? null,
        },
        null,
        2,
      ),
    );
  } else tell(report, samples, asked, source, invocation);
  if (report.result === 'does-not-fail') return 1;
  return report.cause === undefined && report.result === 'partial' ? 3 : 0;
}

/** The very bytes for the whole request; the target put in where there is one. */
function sent(
  candidate: JsonObject,
  whole: JsonObject,
  source: Source,
  to: string | undefined,
): Uint8Array {
  const own = candidate === whole ? source.body : Buffer.from(JSON.stringify(candidate));
  return to === undefined ? own : withModel(own, to);
}

function progress(
  { spent, verdict, phase, best }: ProbeReport,
  { err, flag, io }: Invocation,
): void {
  if (flag('json') && !io.stderr.isTTY) return;
  const words = { same: 'fails', passes: 'passes', other: 'fails otherwise' }[verdict];
  err.line(
    err.paint(
      'dim',
      `${String(spent).padStart(4)}  ${phase.padEnd(8)}  ${words.padEnd(15)}  smallest so far ${bytes(best)}`,
    ),
  );
}

const keyOf = (body: JsonObject) =>
  createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 16);

interface Kept {
  readonly minimal: string | null;
  readonly passing: string | null;
}

/** Both requests become samples, with everything that was recorded of their probes. */
function keep(
  book: SampleBook,
  work: Work,
  report: BisectReport,
  source: Source,
  deps: Invocation['deps'],
): Kept {
  const probes = deps.samples(work.samples);
  const carry = (id: string | undefined, about: string): string | null => {
    const meta = id === undefined ? undefined : probes.find(id);
    if (meta === undefined) return null;
    const exported = probes.export(meta, false);
    return book.import({ ...exported, meta: { ...exported.meta, about } }).id;
  };
  try {
    if (report.result === 'does-not-fail') return { minimal: null, passing: null };
    const { minimal, passing } = report;
    return {
      minimal: carry(
        work.idOf(keyOf(minimal), 'same'),
        `The smallest request that fails as ${source.name} does.`,
      ),
      passing:
        passing === undefined
          ? null
          : carry(
              work.idOf(keyOf(passing), 'passes'),
              `The nearest request to it that passes (${source.name}).`,
            ),
    };
  } finally {
    probes.close();
  }
}

function tell(
  report: BisectReport,
  samples: Kept,
  asked: Asking,
  source: Source,
  { out }: Invocation,
): void {
  const { failure } = asked.wanted ?? {};
  if (report.result === 'does-not-fail') {
    out.line(`${source.name}: ${report.words}.`);
    if (asked.other !== undefined) {
      const { status, failure: now } = asked.other;
      out.line(`It fails differently now: ${status} ${now?.message ?? ''}`);
      if (failure !== undefined)
        out.line(`Looked for was: ${asked.wanted?.status} ${failure.message}`);
    }
    return;
  }
  out.line(out.paint('bold', report.words));
  out.line();
  if (failure !== undefined) {
    const rate =
      report.failure_rate < 1 ? `, ${Math.round(report.failure_rate * 100)} % of the time` : '';
    out.line(`fails with  ${asked.wanted?.status} ${failure.message}${rate}`);
  }
  const partial =
    report.result === 'partial' ? ' (not the smallest yet: run it again to go on)' : '';
  out.line(`probes      ${report.probes}${partial}`);
  out.line(
    `minimal     ${bytes(Buffer.byteLength(JSON.stringify(report.minimal)))}${samples.minimal === null ? '' : `  ${samples.minimal}`}`,
  );
  if (samples.passing !== null) out.line(`passes      ${samples.passing}`);
  if (report.cause !== undefined) out.line(`in minimal  ${report.cause.in_minimal}`);
}
