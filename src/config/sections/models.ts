/** The keys `aliases`, `model_list` and `answer_model`: other names for models, what GET /v1/models shows, and what answers say. */

import type { Findings, Path } from '../file/problem.ts';
import { choice, closed, flag, named, text } from '../file/schema.ts';
import type { ProviderNames } from './targets.ts';

export const aliases = named(
  text('provider/model, a model name, or another alias.'),
  'Other names for models.',
);

export const modelList = closed('The list at GET /v1/models.', {
  claude_aliases: flag(
    'Also list every model as claude-<provider>/<model>, for clients that show only names that begin with claude.',
  ).byDefault(false),
});

export const answerModel = choice(
  ['vendor', 'requested'],
  'The model name in answers: that of the vendor, or the one that the client asked for (requested), for agents that know no other.',
).byDefault('vendor');

/** Name that a client may ask for → `provider/model`, a plain model name, or another alias. */
export type Aliases = Readonly<Record<string, string>>;

/** Reports circles, and names that can have no effect. */
export function checkAliases(aliases: Aliases, providers: ProviderNames, findings: Findings): void {
  const circular = namesInCircles(aliases);
  for (const name of Object.keys(aliases)) {
    const path: Path = ['aliases', name];
    if (circular.has(name)) {
      findings.problems.push({ path, message: 'goes round in a circle' });
    } else if (name.includes('/') && providers.has(name.slice(0, name.indexOf('/')))) {
      findings.warnings.push({
        path,
        key: true,
        message: 'has no effect: provider/model always addresses the provider',
      });
    }
  }
}

/** The names that lead into a circle. Each name is visited once. */
function namesInCircles(aliases: Aliases): ReadonlySet<string> {
  const circular = new Set<string>();
  const visited = new Set<string>();
  for (const name of Object.keys(aliases)) {
    const path = new Set<string>();
    let next: string | undefined = name;
    while (next !== undefined && Object.hasOwn(aliases, next) && !visited.has(next)) {
      if (path.has(next)) break;
      path.add(next);
      next = aliases[next];
    }
    const inCircle = next !== undefined && (path.has(next) || circular.has(next));
    for (const one of path) {
      visited.add(one);
      if (inCircle) circular.add(one);
    }
  }
  return circular;
}
