/** Texts of the file that name a target, `provider/model`: their schema, and checks against the providers. */

import { suggest } from '../../lib/text/did-you-mean.ts';
import { globTest, isGlob } from '../../lib/text/glob.ts';
import { type Findings, MAX_PROBLEMS, type Path } from '../file/problem.ts';
import { string } from '../file/schema.ts';

export const targetText = string('provider/model; provider/* keeps the name that was requested.', {
  pattern: '^[^/\\s]+/.+$',
  'x-mismatch': 'must be provider/model; provider/* keeps the name that was requested',
  'x-meant': '{}/*',
});

/** The names of the file's providers, including those of providers with a problem of their own. */
export type ProviderNames = ReadonlySet<string>;

/** Reports a target that is not `provider/model` or names no provider. */
export function checkTarget(
  target: string,
  path: Path,
  providers: ProviderNames,
  findings: Findings,
): void {
  const slash = target.indexOf('/');
  const provider = slash < 0 ? target : target.slice(0, slash);
  if (slash > 0 && slash < target.length - 1 && providers.has(provider)) return;
  // Problems beyond the limit are not shown, so they need no suggestion.
  const near = findings.problems.length < MAX_PROBLEMS ? suggest(provider, providers) : undefined;
  findings.problems.push({
    path,
    message:
      slash <= 0 || slash === target.length - 1
        ? 'must be provider/model'
        : `there is no provider "${provider}"`,
    suggestion: near === undefined ? undefined : `${near}${slash < 0 ? '/*' : target.slice(slash)}`,
  });
}

/** What each provider lists. */
export type ModelLists = Readonly<Record<string, { readonly models: readonly string[] }>>;

/** Warns of a target that is legal but probably a mistake. */
export function warnOfUnlikelyTarget(
  target: string,
  path: Path,
  lists: ModelLists,
  { warnings }: Findings,
): void {
  const slash = target.indexOf('/');
  const [provider, model] = [target.slice(0, slash), target.slice(slash + 1)];
  const [before = '', behind] = model.split('*');
  if (behind !== undefined) {
    // Some vendors put a path before the name ("anthropic/*").
    if (before === '' || before.endsWith('/')) return;
    const message = `the * stands for the whole name that was requested: "${before}x" becomes "${before}${before}x"`;
    warnings.push({ path, message, suggestion: `${provider}/*` });
    return;
  }
  const names: readonly string[] = Object.hasOwn(lists, provider) ? lists[provider]!.models : [];
  const known = names.some((name) =>
    isGlob(name) ? name !== '*' && globTest(name)(model) : name === model,
  );
  if (known || warnings.length >= MAX_PROBLEMS) return;
  const near = suggest(
    model,
    names.filter((name) => !isGlob(name)),
  );
  // Another version is another model, not a typing error.
  if (near === undefined || digits(near) !== digits(model)) return;
  const message = `${provider} does not list the model "${model}"`;
  warnings.push({ path, message, suggestion: `${provider}/${near}` });
}

const digits = (text: string) => text.replace(/\D/g, '');
