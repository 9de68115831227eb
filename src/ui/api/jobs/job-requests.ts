/** `POST /ui/api/replay` and `/ui/api/bisect`: what is asked for, checked, as jobs. */

import { GatewayError, invalid } from '../../../conversation/errors.ts';
import { readUpTo } from '../../../lib/http/read-up-to.ts';
import { isObject, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { secretBase36 } from '../../../lib/text/ids.ts';
import { bisectedAsJson, bisection, DEFAULT_BUDGET } from '../../../samples/bisect/run.ts';
import { checkTarget } from '../../../samples/replay/known-target.ts';
import { countRuns, replay } from '../../../samples/replay/replay.ts';
import { runAsJson, runsAsJson } from '../../../samples/replay/runs.ts';
import type { Caller } from '../../../samples/replay/settings.ts';
import { fromSample } from '../../../samples/replay/source.ts';
import type { SampleMeta, SampleStore } from '../../../samples/sample.ts';
import type { Viewer } from '../guard.ts';
import { LIMITS } from '../info.ts';
import type { UiParts } from '../parts.ts';
import { sampleFor } from '../sample.ts';
import type { JobSpec } from './jobs.ts';

/** Bytes of a request to this API. */
const BODY = 64 * 1024;

/** The JSON body of a request. @throws GatewayError invalid_request, too_large */
export async function readJson(request: Request): Promise<JsonObject> {
  const type = request.headers.get('content-type') ?? '';
  // A page of another site can send forms and plain text unasked, but no JSON.
  if (!/^application\/json\b/i.test(type)) {
    throw invalid('Send JSON, with "content-type: application/json".');
  }
  const large = () => new GatewayError('too_large', `The body is larger than ${BODY} bytes.`);
  if (Number(request.headers.get('content-length') ?? 0) > BODY) throw large();
  const { bytes, truncated } = await readUpTo(request.body, BODY);
  if (truncated) throw large();
  const value = tryParse(new TextDecoder().decode(bytes));
  if (!isObject(value)) throw invalid('The body is no JSON object.');
  return value;
}

interface Asked {
  readonly text: (name: string) => string | undefined;
  readonly count: (name: string, otherwise: number, most: number) => number;
  readonly flag: (name: string, otherwise: boolean) => boolean;
}

function asked(body: JsonObject): Asked {
  const wrong = (name: string, kind: string) => invalid(`"${name}" must be ${kind}.`, name);
  return {
    text(name) {
      const value = body[name];
      if (value === undefined || value === null || value === '') return undefined;
      if (typeof value !== 'string' || value.length > 500) throw wrong(name, 'a text');
      return value;
    },
    count(name, otherwise, most) {
      const value = body[name] ?? otherwise;
      if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > most) {
        throw wrong(name, `a whole number from 1 to ${most}`);
      }
      return value;
    },
    flag(name, otherwise) {
      const value = body[name] ?? otherwise;
      if (typeof value !== 'boolean') throw wrong(name, 'true or false');
      return value;
    },
  };
}

// Settings of the command line that change where keys are sent are for who can edit the file.
const SETTING = /^(?:profile|profile(?:\.\w+)+|to|repair|body(?:\.[\w-]+)+)=/;

function settingsIn(body: JsonObject, parts: UiParts): readonly string[] {
  const list = body.compare ?? [];
  const texts = Array.isArray(list) && list.every((one) => typeof one === 'string');
  if (!texts || list.length > 8) throw invalid('"compare" must be a list of settings.', 'compare');
  const settings = list as readonly string[];
  for (const one of settings) {
    if (!SETTING.test(one) || one.length > 10_000) {
      const known = 'profile=…, profile.FACT=…, to=…, repair=on|off, body.MEMBER=…';
      throw invalid(`"${one.slice(0, 100)}" cannot be compared here: write ${known}.`, 'compare');
    }
    if (one.startsWith('to=')) checkTarget(one.slice(3), parts.config());
  }
  return settings;
}

/** Sends in the viewer's own name: what their key may not do, a replay may not either. */
const callerFor = ({ key }: Viewer): Caller | undefined =>
  key === '' ? undefined : { name: key, password: secretBase36(40) };

interface Common {
  readonly meta: SampleMeta;
  readonly stage: string;
  readonly to: string | undefined;
  readonly repair: boolean;
}

function common(body: JsonObject, book: SampleStore, viewer: Viewer, parts: UiParts): Common {
  const { text, flag } = asked(body);
  const meta = sampleFor(book, text('id') ?? '', viewer);
  const to = text('to');
  if (to !== undefined) checkTarget(to, parts.config());
  return { meta, stage: text('stage') ?? 'client-request', to, repair: flag('repair', true) };
}

/** @throws GatewayError for what is not there or not possible */
export function replayJob(
  body: JsonObject,
  book: SampleStore,
  viewer: Viewer,
  parts: UiParts,
): JobSpec {
  const { meta, stage, to, repair } = common(body, book, viewer, parts);
  const options = {
    config: parts.config(),
    sources: [fromSample(book, meta, stage)],
    to,
    repair,
    compare: settingsIn(body, parts),
    repeat: asked(body).count('repeat', 1, LIMITS.runs),
    as: callerFor(viewer),
  };
  const total = countRuns(options);
  if (total > LIMITS.runs) {
    throw invalid(`That would be ${total} requests; ${LIMITS.runs} are the most.`, 'repeat');
  }
  return {
    kind: 'replay',
    sample: meta.id,
    stage,
    total,
    async run({ signal, progress }) {
      const { runs, comparison } = await replay(
        { ...options, signal, onRun: (run) => progress({ type: 'run', run: runAsJson(run) }) },
        parts,
      );
      return { kind: 'replay', result: runsAsJson(runs, comparison) };
    },
  };
}

/**
 * @param kept told of the ids of both requests, once they are samples
 * @throws GatewayError for what is not there or not possible
 */
export function bisectJob(
  body: JsonObject,
  book: SampleStore,
  viewer: Viewer,
  parts: UiParts,
  kept: (ids: readonly string[]) => void,
): JobSpec {
  const { meta, stage, to, repair } = common(body, book, viewer, parts);
  const source = fromSample(book, meta, stage);
  const budget = asked(body).count('budget', DEFAULT_BUDGET, LIMITS.budget);
  return {
    kind: 'bisect',
    sample: meta.id,
    stage,
    total: budget,
    async run({ signal, progress, note }) {
      const found = await bisection(
        {
          config: parts.config(),
          source,
          book,
          to,
          repair,
          budget,
          signal,
          as: callerFor(viewer),
          onResume: (known) => note(`Going on with an earlier run: ${known} answers are known.`),
          onProbe: ({ verdict, spent, phase, bytes, best }) =>
            progress({ type: 'probe', probe: { verdict, spent, phase, bytes, best } }),
        },
        parts,
      );
      kept(Object.values(found.samples).filter((id) => id !== null));
      return { kind: 'bisect', result: bisectedAsJson(found) };
    },
  };
}
