/** Kimi Code CLI, and the Kimi CLI that it replaced: a provider with its models in `config.toml`. */

import { type Client, namesFor } from '../client.ts';
import { firstOf, inFolder, tomlFile } from '../settings-files.ts';
import type { TomlTable } from '../toml-block.ts';

/** Kimi needs a window for each model; half of the vendors' models have at least this much. */
const CAUTIOUS_CONTEXT = 128_000;

/** Both programs know these types; the ones for Chat Completions have other names in the older one. */
const TYPES: Readonly<Record<string, string>> = {
  'openai-responses': 'openai_responses',
  'anthropic-messages': 'anthropic',
};

export const kimi: Client = {
  name: 'kimi',
  title: 'Kimi Code CLI',
  protocols: ['openai-responses', 'anthropic-messages'],
  files: [
    tomlFile(
      'kimi',
      firstOf(
        inFolder('KIMI_CODE_HOME', '.kimi-code', 'config.toml'),
        inFolder('KIMI_SHARE_DIR', '.kimi', 'config.toml'),
        inFolder('KIMI_CODE_HOME', '.kimi-code', 'config.toml'),
      ),
      {
        tables: ['providers.hopgate', 'models.hopgate/'],
        keys: { '': ['default_model'] },
      },
      (plan): readonly TomlTable[] => {
        const names = namesFor(plan, 'Kimi Code CLI');
        const protocol = plan.protocol ?? 'openai-responses';
        return [
          { path: [], keys: { default_model: `hopgate/${names[0]}` } },
          {
            path: ['providers', 'hopgate'],
            keys: {
              type: TYPES[protocol]!,
              base_url: protocol === 'anthropic-messages' ? plan.url : `${plan.url}/v1`,
              api_key: plan.key ?? 'hopgate',
            },
          },
          ...names.map((model) => ({
            path: ['models', `hopgate/${model}`],
            keys: {
              provider: 'hopgate',
              model,
              max_context_size: plan.contextOf(model) ?? CAUTIOUS_CONTEXT,
              ...(plan.limitsOf(model)?.input?.includes('image') === true
                ? { capabilities: ['image_in'] }
                : {}),
            },
          })),
        ];
      },
    ),
  ],
  hints: (plan) => [
    `Try it: kimi -m hopgate/${plan.model ?? plan.models[0] ?? 'MODEL'} -p "hello"`,
  ],
};
