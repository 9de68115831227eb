import type { Config } from '../../../config/config.ts';
import { shownAt } from '../../../lib/json/pointer.ts';
import { bytesText } from '../../../lib/text/amounts.ts';
import { printableLines } from '../../../lib/text/printable-text.ts';
import {
  type BisectionResult,
  bisection,
  bisectionAsJson,
  DEFAULT_BUDGET,
} from '../../../samples/bisect/run.ts';
import type { ProbeReport } from '../../../samples/bisect/types.ts';
import { pricesOf } from '../../../samples/replay/cost.ts';
import { checkTarget } from '../../../samples/replay/known-target.ts';
import { outcomeOf } from '../../../samples/replay/outcome.ts';
import { planBisection } from '../../../samples/replay/plan.ts';
import type { ReplaySource } from '../../../samples/replay/source.ts';
import type { SampleStore } from '../../../samples/sample.ts';
import { type CommandSpec, type Invocation, JSON_OPTION, UsageError } from '../../command.ts';
import { loadOrReport } from '../../load-config.ts';
import type { Terminal } from '../../terminal.ts';
import { sourceNamed } from '../replay/source.ts';
import { agreed, planText } from '../replay/spend.ts';
import { openSampleStore } from '../samples/open-samples.ts';
import { BODY_PROTOCOL, NO_REPAIR, SAMPLES_DIR, STAGE, TO, YES } from '../samples/options.ts';

export const BISECT: CommandSpec = {
  name: 'bisect',
  group: 'debug',
  summary: 'find the smallest request that still fails the same way',
  description: [
    'Leaves out messages, tools, fields, texts and members of schemas, keeping every candidate valid for its protocol, until nothing more can be removed. Then it shows what the smallest failing request contains that the closest passing one does not. Works for errors, for streams that break off, and for empty answers.',
    'Failures that come and go are tried several times. Every probe is a request that the vendor may charge for; after 20 of them it asks before it sends more. Ctrl-C stops and shows what is known so far; the same command continues from there later. Both requests become samples.',
  ],
  arguments: [
    {
      name: 'what',
      summary: 'an id, or a file with a request',
      required: true,
      offers: 'samples',
    },
  ],
  options: {
    budget: {
      value: 'N',
      summary: 'send at most this many requests, and do not ask for more',
      default: '20',
      range: [1, 100_000],
    },
    to: TO,
    stage: STAGE,
    'no-repair': NO_REPAIR,
    yes: YES,
    full: { summary: 'print the smallest request in full, even if it is large' },
    fresh: { summary: 'start over instead of continuing an earlier run' },
    protocol: BODY_PROTOCOL,
    dir: SAMPLES_DIR,
    json: JSON_OPTION,
  },
  examples: {
    'hopgate bisect s7i9w6': 'What in this request makes the vendor fail?',
    'hopgate bisect s7i9w6 --stage provider-request --budget 40':
      'Bisects the request as the vendor got it, with at most 40 probes.',
    'hopgate bisect ./request.json --to glm/glm-4.7': 'Bisects a request in a file.',
  },
  exits: {
    0: 'found',
    1: 'it does not fail (any more), you did not answer yes, or the configuration cannot be used',
    3: 'the budget was used up before anything was found',
  },
  run: runBisect,
};

async function runBisect(invocation: Invocation): Promise<number> {
  const config = await loadOrReport(invocation);
  if (config === undefined) return 1;
  const store = openSampleStore(config, invocation);
  try {
    const named = invocation.arguments[0];
    if (named === undefined) throw new UsageError('"hopgate bisect" needs an id or a file.');
    const source = await sourceNamed(store, named, invocation);
    return await bisectSource(store, config, source, invocation);
  } finally {
    store.close();
  }
}

async function bisectSource(
  store: SampleStore,
  config: Config,
  source: ReplaySource,
  invocation: Invocation,
): Promise<number> {
  const { io, out, err, flag, number, text } = invocation;
  if (!(await mayBegin(config, source, invocation))) return 1;
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.on('SIGINT', interrupt);
  let found: BisectionResult;
  try {
    found = await bisection(
      {
        config,
        source,
        store,
        to: text('to'),
        repair: !flag('no-repair'),
        budget: number('budget') ?? DEFAULT_BUDGET,
        more: (spent) => mayGoOn(spent, invocation),
        fresh: flag('fresh'),
        signal: stop.signal,
        onResume: (known) =>
          err.line(
            `Going on with an earlier run: ${known} answers are known (--fresh forgets them).`,
          ),
        onProbe: (probe) => printProgress(probe, invocation),
      },
      { ...(await invocation.services()), environment: io.environment },
    );
  } finally {
    process.off('SIGINT', interrupt);
  }
  if (flag('json')) out.line(JSON.stringify(bisectionAsJson(found), null, 2));
  else printResult(found, source, invocation);
  const { result, cause } = found.report;
  if (result === 'does-not-fail') return 1;
  return cause === undefined && result === 'partial' ? 3 : 0;
}

function printProgress(
  { spent, verdict, phase, best }: ProbeReport,
  { err, flag, io }: Invocation,
): void {
  if (flag('json') && !io.stderr.isTTY) return;
  const words = { same: 'fails', passes: 'passes', other: 'fails otherwise' }[verdict];
  err.line(
    err.paint(
      'dim',
      `${String(spent).padStart(4)}  ${phase.padEnd(8)}  ${words.padEnd(15)}  smallest so far ${bytesText(best)}`,
    ),
  );
}

/** Says what the search may cost and asks; one that seeks a failure in a request that worked must be asked for. */
async function mayBegin(
  config: Config,
  source: ReplaySource,
  invocation: Invocation,
): Promise<boolean> {
  const { err, io, flag, number, text } = invocation;
  const { protocols } = await invocation.services();
  const to = text('to');
  if (to !== undefined) checkTarget(to, config);
  const { answer } = source;
  const worked =
    to === undefined &&
    answer !== undefined &&
    outcomeOf(protocols[source.protocol], answer).failure === undefined;
  if (worked && !flag('yes')) {
    err.line(`${source.name} did not fail when it was recorded (${answer.status}).`);
    if (!io.interactive) {
      err.line('Pass --yes to look for a failure that comes and goes.');
      return false;
    }
  }
  const budget = number('budget') ?? DEFAULT_BUDGET;
  const plan = planBisection(source, { to, budget }, pricesOf(config), protocols);
  err.line(planText(plan, true));
  return agreed('Begin?', invocation);
}

/** How many more requests may be sent after so many: a person is asked, `--budget` says it beforehand. */
async function mayGoOn(spent: number, invocation: Invocation): Promise<number> {
  const { flag, io, number } = invocation;
  if (number('budget') !== undefined || !io.interactive || flag('yes')) return 0;
  const more = await agreed(
    `${spent} requests were sent. Send up to ${DEFAULT_BUDGET} more?`,
    invocation,
  );
  return more ? DEFAULT_BUDGET : 0;
}

/** Characters that are printed on a terminal without --full. */
const SMALL = 4000;

function printResult(
  { report, samples, wanted, other }: BisectionResult,
  source: ReplaySource,
  { out, flag }: Invocation,
): void {
  const failure = wanted?.failure;
  if (report.result === 'does-not-fail') {
    out.line(`${source.name}: ${report.words}.`);
    if (other !== undefined) {
      out.line(`It fails differently now: ${other.status} ${other.failure?.message ?? ''}`);
      if (failure !== undefined) out.line(`Looked for was: ${wanted?.status} ${failure.message}`);
    }
    return;
  }
  out.line(out.paint('bold', report.words));
  out.line();
  if (failure !== undefined) {
    const rate =
      report.failure_rate < 1 ? `, ${Math.round(report.failure_rate * 100)} % of the time` : '';
    out.line(`fails with  ${wanted?.status} ${failure.message}${rate}`);
  }
  const partial =
    report.result === 'partial' ? ' (not the smallest yet: run it again to go on)' : '';
  out.line(`probes      ${report.probes}${partial}`);
  out.line(
    `minimal     ${bytesText(Buffer.byteLength(JSON.stringify(report.minimal)))}${samples.minimal === null ? '' : `  ${samples.minimal}`}`,
  );
  if (samples.passing !== null) out.line(`passes      ${samples.passing}`);
  const { cause, minimal } = report;
  if (cause !== undefined) {
    out.line(`in minimal  ${cause.in_minimal}`);
    out.line();
    out.line(out.paint('bold', 'The bytes that matter'));
    printWhole(shownAt(minimal, cause.in_minimal), out, flag('full'));
  }
  out.line();
  out.line(out.paint('bold', 'The smallest request that fails'));
  printWhole(JSON.stringify(minimal, null, 2), out, flag('full'));
}

/** The text; a long one on a terminal ends with how to see the rest. */
function printWhole(text: string, out: Terminal, full: boolean): void {
  if (full || out.columns === undefined || text.length <= SMALL) {
    out.line(printableLines(text));
    return;
  }
  out.line(printableLines(text.slice(0, SMALL)));
  out.line(out.paint('dim', `… ${text.length - SMALL} more characters; --full prints all`));
}
