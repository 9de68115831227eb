/** Models that a configuration names and that are gone, end soon, or are newer than the file of models. */

import { isGlob } from '../../lib/text/glob.ts';
import type { Config } from '../config.ts';
import type { Problem } from '../file/problem.ts';
import { modelAt, modelsDate, predecessorOf } from './model-facts.ts';

/** A model that ends within so many days is worth a word. */
const SOON_DAYS = 30;

/** Warnings about models that end, each with a remedy. Makes no request. @param now milliseconds since 1970 */
export function modelWarnings(
  { providers, routes, aliases }: Config,
  now: number,
): readonly Problem[] {
  const today = dayOf(now);
  const soon = dayOf(now + SOON_DAYS * 86_400_000);
  const found: Problem[] = [];
  const seen = new Set<string>();
  const look = (path: string, provider: string, model: string) => {
    const own = providers[provider];
    if (own === undefined || isGlob(model) || seen.has(`${provider}/${model}`)) return;
    seen.add(`${provider}/${model}`);
    const warn = (message: string) => found.push({ path, line: 0, column: 0, message });
    const known = modelAt(own.vendor, model);
    const next = known?.next === undefined ? '' : `: ${known.next} is its successor`;
    if (known?.ends !== undefined && known.ends <= today) {
      warn(`${provider}/${model} is gone since ${known.ends}${next}`);
    } else if (known?.ends !== undefined && known.ends <= soon) {
      warn(`${provider}/${model} ends on ${known.ends}${next}`);
    }
    const before = predecessorOf(own.vendor, model);
    if (before !== undefined) {
      warn(
        `${provider}/${model} is newer than the model facts of ${modelsDate()}: it is treated, and its price estimated, as ${before.id} (hopgate models update)`,
      );
    }
  };
  for (const [name, { models }] of Object.entries(providers)) {
    for (const model of models) look(`providers.${name}.models`, name, model);
  }
  const target = (path: string, written: string) => {
    const slash = written.indexOf('/');
    if (slash > 0) look(path, written.slice(0, slash), written.slice(slash + 1));
  };
  for (const [index, { to }] of routes.entries()) {
    for (const one of to) target(`routes[${index}].to`, one.target);
  }
  for (const [alias, written] of Object.entries(aliases)) target(`aliases.${alias}`, written);
  return found;
}

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
