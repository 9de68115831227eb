import type { Findings, Path } from '../file/problem.ts';
import {
  choice,
  closed,
  either,
  list,
  number,
  oneOrMore,
  type ProgramForm,
  text,
} from '../file/schema.ts';
import { when } from './conditions.ts';
import { SAMPLE_MODES } from './samples.ts';
import {
  checkTarget,
  type ModelLists,
  type ProviderNames,
  targetText,
  warnOfUnlikelyTarget,
} from './targets.ts';

const weighted = closed('A target with its weight.', {
  target: targetText,
  weight: number(
    'Share of the requests that try this target first; the other targets are fallbacks.',
    {
      minimum: 0,
      maximum: 1_000_000,
    },
  ).optional('1 where another target of the route has a weight'),
});

const route = closed('A rule; the first one that matches decides.', {
  name: text('A name for logs and explanations.').optional('"route N"'),
  when: when.optional('always'),
  to: oneOrMore(either([targetText, weighted]), 'Targets in fallback order.'),
  samples: choice(SAMPLE_MODES, "Which of the route's exchanges are kept on disk.").optional(
    'as samples.mode says',
  ),
});

export const routes = list(route, 'Rules; the first one that matches decides.');

/** `provider/model` with its weight; `provider/*` keeps the requested name. */
export type RouteTo = ProgramForm<typeof weighted>;

export interface RouteConfig extends Omit<ProgramForm<typeof route>, 'name' | 'to'> {
  /** `route 1` and so on when the file gives none. */
  readonly name: string;
  readonly to: readonly RouteTo[];
}

/** @param lists the models of each provider, for warnings about misspelt ones */
export function resolveRoutes(
  routes: readonly ProgramForm<typeof route>[],
  providers: ProviderNames,
  lists: ModelLists,
  findings: Findings,
): readonly RouteConfig[] {
  let catchAll: string | undefined;
  return routes.map((route, index) => {
    const path: Path = ['routes', index];
    const { name = `route ${index + 1}`, when = {} } = route;
    if (catchAll !== undefined) {
      findings.warnings.push({ path, message: `is never reached: ${catchAll} takes everything` });
    }
    if (Object.keys(when).length === 0) catchAll ??= name;
    const to = route.to.map((one, at): RouteTo => {
      const target = typeof one === 'string' ? { target: one } : one;
      const place: Path = [...path, 'to', at, ...(typeof one === 'string' ? [] : ['target'])];
      checkTarget(target.target, place, providers, findings);
      warnOfUnlikelyTarget(target.target, place, lists, findings);
      return target;
    });
    if (to.length > 0 && to.every((one) => one.weight === 0)) {
      findings.problems.push({ path: [...path, 'to'], message: 'needs one weight above 0' });
    }
    return { ...route, name, to };
  });
}
