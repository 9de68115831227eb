/** The section `routes`: rules that send a request to targets, the first one that matches deciding. */

import { type Static, Type } from '@sinclair/typebox';
import type { Findings, Path } from '../file/problem.ts';
import { choice, closed, listOf, oneOrMore, optional, text } from '../file/schema-types.ts';
import { resolveWhen, type WhenConfig, when } from './conditions.ts';
import { SAMPLE_MODES, type SampleMode } from './samples.ts';
import {
  checkTarget,
  type ModelLists,
  type ProviderNames,
  targetText,
  warnOfUnlikelyTarget,
} from './targets.ts';

const route = closed(
  {
    name: optional(text('A name for logs and explanations.'), '"route N"'),
    when: optional(when, 'always'),
    to: oneOrMore(
      Type.Union([
        targetText,
        closed(
          {
            target: targetText,
            weight: optional(
              Type.Number({
                minimum: 0,
                maximum: 1_000_000,
                description:
                  'Share of the requests that try this target first; the other targets are fallbacks.',
              }),
              '1 where another target of the route has a weight',
            ),
          },
          'A target with its weight.',
        ),
      ]),
      'Targets in fallback order.',
    ),
    samples: optional(
      choice(SAMPLE_MODES, "Which of the route's exchanges are kept on disk."),
      'as samples.mode says',
    ),
  },
  'A rule; the first one that matches decides.',
);

export const routes = Type.Array(route, {
  description: 'Rules; the first one that matches decides.',
});

export interface RouteConfig {
  /** `route 1` and so on when the file gives none. */
  readonly name: string;
  readonly when?: WhenConfig;
  readonly to: readonly RouteTo[];
  /** Which of its exchanges are kept; left out: as `samples.mode` says. */
  readonly samples?: SampleMode;
}

export interface RouteTo {
  /** `provider/model`; `provider/*` keeps the requested name. */
  readonly target: string;
  readonly weight?: number;
}

/** @param lists the models of each provider, for warnings about misspelt ones */
export function resolveRoutes(
  routes: readonly Static<typeof route>[],
  providers: ProviderNames,
  lists: ModelLists,
  findings: Findings,
): readonly RouteConfig[] {
  let catchAll: string | undefined;
  return routes.map(({ name: given, when, to: written, samples }, index) => {
    const path: Path = ['routes', index];
    const name = given ?? `route ${index + 1}`;
    if (catchAll !== undefined) {
      findings.warnings.push({ path, message: `is never reached: ${catchAll} takes everything` });
    }
    const conditions = when === undefined ? undefined : resolveWhen(when, path, findings);
    if (conditions === undefined || Object.keys(conditions).length === 0) catchAll ??= name;
    const to = (listOf(written) ?? []).map((one, at): RouteTo => {
      const target = typeof one === 'string' ? { target: one } : one;
      const entry: Path = Array.isArray(written) ? [...path, 'to', at] : [...path, 'to'];
      const place: Path = typeof one === 'string' ? entry : [...entry, 'target'];
      checkTarget(target.target, place, providers, findings);
      warnOfUnlikelyTarget(target.target, place, lists, findings);
      return target;
    });
    if (to.length > 0 && to.every((one) => one.weight === 0)) {
      findings.problems.push({ path: [...path, 'to'], message: 'needs one weight above 0' });
    }
    return {
      name,
      ...(conditions !== undefined && { when: conditions }),
      to,
      ...(samples !== undefined && { samples }),
    };
  });
}
