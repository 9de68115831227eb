/** `hopgate replay`: sends recorded requests again and lays what comes of it side by side. */

import type { Config } from '../../config/config.ts';
import type { SampleBook } from '../../conversation/sample.ts';
import type { JsonObject } from '../../lib/json.ts';
import { type Invocation, UsageError } from '../command.ts';
import { loadOrTell } from '../load-config.ts';
import { bookOf, filterWhere } from '../samples/folder.ts';
import { outcomeOf } from './outcome.ts';
import { compareRuns, type Run, runsAsJson, tellRuns } from './runs.ts';
import { type Sendable, send } from './send.ts';
import { probing, type Setup, withSetting } from './settings.ts';
import { bodyOf, fromSample, type Source, sourceOf, withModel } from './source.ts';

/** Exit 0; 1 when the configuration cannot be used. */
export async function runReplay(invocation: Invocation): Promise<number> {
  const config = await loadOrTell(invocation);
  const book = config === undefined ? undefined : await bookOf(invocation);
  if (config === undefined || book === undefined) return 1;
  try {
    const [targets, compared] = split(invocation);
    const sources = sourcesOf(book, targets, invocation);
    const setups = setupsOf(config, compared, invocation);
    const runs = await runAll(sources, setups, invocation);
    const comparison = compareRuns(
      setups.map(({ name }) => name),
      runs,
    );
    const { out, flag } = invocation;
    if (flag('json')) out.line(JSON.stringify(runsAsJson(runs, comparison), null, 2));
    else tellRuns(out, runs, comparison);
    return 0;
  } finally {
    book.close();
  }
}

/** Arguments are what to send, and with --compare further settings. */
function split({ arguments: words, text }: Invocation): readonly [string[], string[]] {
  const first = text('compare');
  const setting = (word: string) => /^[A-Za-z_.]+=/.test(word);
  if (first === undefined) return [[...words], []];
  if (!setting(first)) throw new UsageError(`"${first}" is no setting: write KEY=VALUE.`);
  return [words.filter((word) => !setting(word)), [first, ...words.filter(setting)]];
}

function sourcesOf(
  book: SampleBook,
  named: readonly string[],
  invocation: Invocation,
): readonly Source[] {
  const { number, text } = invocation;
  const last =
    number('last') ?? (named.length === 0 && text('where') !== undefined ? 1 : undefined);
  if (last !== undefined) {
    const filter = filterWhere(text('where') ?? '', Date.now());
    const stage = text('edge') ?? 'client-request';
    const found = book.list(filter).flatMap(({ id }) => {
      const meta = book.find(id);
      return meta?.edges.some((edge) => edge.stage === stage) === true ? [meta] : [];
    });
    if (found.length === 0) throw new UsageError(`No sample in ${book.root} fits.`);
    return found.slice(0, last).map((meta) => fromSample(book, meta, stage));
  }
  if (named.length === 0)
    throw new UsageError('"hopgate replay" needs an id, a file, or --last N.');
  return named.map((name) => sourceOf(book, name, invocation));
}

function setupsOf(
  config: Config,
  compared: readonly string[],
  { flag, text }: Invocation,
): readonly Setup[] {
  const base: Setup = {
    name: '',
    config,
    repair: !flag('no-repair'),
    to: text('to'),
    edit: KEEP,
  };
  return compared.length === 0 ? [base] : compared.map((one) => withSetting(base, one));
}

/** Each source under each setting, by turns, so that a vendor's bad minute hits all settings alike. */
async function runAll(
  sources: readonly Source[],
  setups: readonly Setup[],
  { number, deps, io, err }: Invocation,
): Promise<readonly Run[]> {
  const repeat = number('repeat') ?? 1;
  const runs: Run[] = [];
  const total = sources.length * setups.length * repeat;
  // What went straight to a vendor goes there again without passing any repair.
  const kinds = setups.map((setup) => ({
    setup,
    whole: deps.gateway({
      config: probing(setup.config, undefined),
      environment: io.environment,
      repair: setup.repair,
    }),
    straight: deps.gateway({
      config: probing(setup.config, undefined),
      environment: io.environment,
      repair: false,
    }),
  }));
  try {
    for (const source of sources) {
      for (let i = 0; i < repeat; i++) {
        for (const { setup, whole, straight } of kinds) {
          const gateway = source.straight ? straight : whole;
          const sent = await send(
            gateway,
            deps.protocols[source.protocol],
            sendable(source, setup),
          );
          const { answer } = source;
          const before = answer && outcomeOf(deps.protocols[source.protocol], answer);
          runs.push({ source: source.name, setting: setup.name, number: i + 1, sent, before });
          if (io.stderr.isTTY) err.line(`${runs.length}/${total} ${source.name} ${sent.status}`);
        }
      }
    }
  } finally {
    await Promise.all(kinds.flatMap(({ whole, straight }) => [whole.close(), straight.close()]));
  }
  return runs;
}

/** The recorded bytes, as long as neither the target nor the body is changed. */
export function sendable(source: Source, setup: Pick<Setup, 'to' | 'edit'>): Sendable {
  const to = setup.to ?? (source.straight ? source.target : undefined);
  const value = setup.edit === KEEP ? undefined : bodyOf(source);
  const edited = value === undefined ? undefined : setup.edit(value);
  const body =
    edited === undefined || edited === value ? source.body : Buffer.from(JSON.stringify(edited));
  const { protocol, headers, search } = source;
  return { protocol, headers, search, body: to === undefined ? body : withModel(body, to) };
}

/** Leaves the body as it is, unparsed. */
export const KEEP = (body: JsonObject) => body;
