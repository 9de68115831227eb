/** Grok Build: models in `~/.grok/config.toml`, and the default that is one of them. */

import { type Client, namesFor } from '../client.ts';
import { inFolder, tomlFile } from '../settings-files.ts';

const BACKENDS: Readonly<Record<string, string>> = {
  'openai-chat': 'chat_completions',
  'openai-responses': 'responses',
  'anthropic-messages': 'messages',
};

export const grok: Client = {
  name: 'grok',
  title: 'Grok Build',
  protocols: ['openai-responses', 'openai-chat', 'anthropic-messages'],
  files: [
    tomlFile(
      'grok',
      inFolder('GROK_HOME', '.grok', 'config.toml'),
      { tables: ['model.hopgate/'], keys: { models: ['default'] } },
      (plan) => {
        const names = namesFor(plan, 'Grok Build');
        return [
          { path: ['models'], keys: { default: `hopgate/${names[0]}` } },
          ...names.map((model) => {
            const context = plan.contextOf(model);
            return {
              path: ['model', `hopgate/${model}`],
              keys: {
                model,
                name: `hopgate: ${model}`,
                base_url: `${plan.url}/v1`,
                api_key: plan.key ?? 'hopgate',
                api_backend: BACKENDS[plan.protocol ?? 'openai-responses']!,
                ...(context === undefined ? {} : { context_window: context }),
              },
            };
          }),
        ];
      },
    ),
  ],
  hints: () => [
    'A .grok/config.toml in a project cannot change the model; "grok inspect" shows what is read.',
  ],
};
