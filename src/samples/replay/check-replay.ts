/** Checks a replay before a request is sent: its targets, settings and cost. */

import type { Config } from '../../config/config.ts';
import { invalid } from '../../conversation/errors.ts';
import type { Principal } from '../../keys/principal.ts';
import type { JsonObject } from '../../lib/json/json.ts';
import type { SampleServices } from '../in-process-gateway.ts';
import { checkEdited, withEdits } from './edits.ts';
import { checkRecorded, checkTarget } from './known-target.ts';
import type { ReplayedRequest } from './runs.ts';
import { type ReplaySetup, withSetting } from './settings.ts';
import { bodyOf, type ReplaySource } from './source.ts';
import type { RequestEdit } from './types.ts';

export interface ReplayOptions {
  readonly config: Config;
  readonly sources: readonly ReplaySource[];
  /** `provider/model`, one or several to compare; left out: the model of the request, or the target it went to. */
  readonly to?: readonly string[];
  /** Changes to the request before it is sent. */
  readonly edits?: readonly RequestEdit[];
  readonly repair: boolean;
  /** Settings to compare, `KEY=VALUE`; none: the configuration as it is. */
  readonly compare?: readonly string[];
  /** Requests for each source and setting. */
  readonly repeat: number;
  /** Called for every answer, with the number of answers so far and in total. */
  readonly onRun?: (run: ReplayedRequest, done: number, total: number) => void;
  /** Ends the replay early: the runs so far are the result. */
  readonly signal?: AbortSignal;
  /** The key that requests are sent as. */
  readonly as?: Principal;
}

/** Requests that a replay will send. */
export const countRuns = ({ sources, to = [], compare = [], repeat }: ReplayOptions) =>
  sources.length * Math.max(1, compare.length, to.length) * repeat;

/**
 * Everything that can be said before a request is sent, and so before it costs something.
 * @throws GatewayError invalid_request for an unknown setting or target, or an edit that makes no valid request
 */
export function checkReplay(
  options: ReplayOptions,
  { protocols }: Pick<SampleServices, 'protocols'>,
): readonly ReplaySetup[] {
  const setups = setupsOf(options);
  const { config, edits = [], sources } = options;
  for (const source of sources) {
    const { direct, target } = source;
    // It is sent to the target it went to.
    const back = direct && target !== undefined && setups.some(({ to }) => to === undefined);
    if (back) checkRecorded(target, config);
    if (edits.length === 0) continue;
    checkEdited(bodyOf(source), edits, protocols[source.protocol]);
    const { model } = withEdits(bodyOf(source), edits);
    // A name with an unknown provider would be sent elsewhere by a route for all names.
    const named = edits.some(({ at }) => at === '/model') && typeof model === 'string';
    if (named && model.includes('/')) checkTarget(model, config);
  }
  return setups;
}

function setupsOf({
  config,
  repair,
  to = [],
  compare = [],
  edits = [],
}: ReplayOptions): readonly ReplaySetup[] {
  for (const target of to) checkTarget(target, config);
  const several = to.length > 1;
  if (several && compare.length > 0) {
    throw invalid('Compare either several targets or several settings.', 'compare');
  }
  const edit = edits.length === 0 ? KEEP : (body: JsonObject) => withEdits(body, edits);
  const base: ReplaySetup = { name: '', config, repair, to: several ? undefined : to[0], edit };
  const settings = several ? to.map((target) => `to=${target}`) : compare;
  return settings.length === 0 ? [base] : settings.map((one) => withSetting(base, one));
}

/** Leaves the body as it is, unparsed. */
export const KEEP = (body: JsonObject) => body;
