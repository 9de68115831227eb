/** The settings that `setup` writes for a client, from the configuration and the flags. */

import type { Config } from '../../../config/config.ts';
import { models as listed, plainRequest, route, routingTable } from '../../../routing/index.ts';
import { type Invocation, UsageError } from '../../command.ts';
import { claudeTarget, isServed, modelNames, reachableUrl } from '../../served-models.ts';
import { type Client, isClaude, type SetupPlan } from './client.ts';
import { limitsIn } from './model-limits.ts';

/** @throws UsageError when a flag contradicts the configuration */
export function planFor(
  client: Client,
  config: Config,
  { text, number }: Pick<Invocation, 'text' | 'number'>,
): SetupPlan {
  const url = (text('url') ?? reachableUrl(config.listen)).replace(/\/+(v1\/?)?$/, '');
  if (!URL.canParse(url)) throw new UsageError(`Option "--url" is no URL: "${url}".`);
  if (text('url') === undefined && config.listen.port === 0) {
    throw new UsageError('The configuration listens on a free port; say which with --url URL.');
  }
  const chosen = text('model');
  if (chosen !== undefined) requireServed(chosen, config);
  const names = modelNames(config);
  const asksForClaude = client.asksForClaude === true;
  const behind = asksForClaude && chosen === undefined ? claudeTarget(config) : undefined;
  const model = chosen ?? (behind === undefined ? names[0] : undefined);
  if (asksForClaude && model === undefined && behind === undefined) {
    throw new UsageError(
      'No route takes claude-* and no provider names its models; pass --model NAME.',
    );
  }
  const answering = model ?? behind;
  const limitsOf = limitsIn(config);
  const knownContext = (name: string) => limitsOf(name)?.context;
  const given = number('context');
  return {
    url,
    key: text('key') ?? config.auth.keys[0]?.key.reveal(),
    model,
    answeringModel: answering,
    smallModel: text('small-model'),
    models: names,
    serves: (name) => isServed(config, name, 'anthropic-messages'),
    claudeNameOf: (name) =>
      isClaude(name)
        ? name
        : listed(config).find(
            ({ id, kind, target }) =>
              kind === 'claude' && (target?.model === name || id === `claude-${name}`),
          )?.id,
    limitsOf,
    contextOf: (name) => (name === model ? given : undefined) ?? knownContext(name),
    context: given ?? (answering === undefined ? undefined : knownContext(answering)),
    checksTools: checksTools(model, config),
    protocol: protocolFor(client, text('protocol')),
    modelChosen: chosen !== undefined,
  };
}

function requireServed(model: string, config: Config): void {
  if (isServed(config, model, 'openai-chat')) return;
  const names = modelNames(config);
  const list = names.length === 0 ? '' : ` It serves ${names.slice(0, 8).join(', ')}.`;
  throw new UsageError(`The gateway does not serve "${model}" as configured.${list}`);
}

/** Is it a model of Claude at a vendor that speaks Messages? What is converted loses `safeguards`. */
function checksTools(model: string | undefined, config: Config): boolean {
  const asked = plainRequest(model ?? 'claude-sonnet-5-5', 'anthropic-messages', Date.now());
  const decision = route(asked, routingTable(config));
  const target = decision.ok ? decision.targets[0]?.target : undefined;
  return target?.protocol === 'anthropic-messages' && isClaude(target.model);
}

/** @throws UsageError when the client does not speak it */
function protocolFor({ title, protocols }: Client, chosen: string | undefined) {
  if (chosen === undefined) return undefined;
  const found = protocols?.find((one) => one === chosen);
  if (found !== undefined) return found;
  const words = protocols === undefined ? 'one protocol only' : protocols.join(', ');
  throw new UsageError(`${title} speaks ${words}; "--protocol ${chosen}" is not among them.`);
}
