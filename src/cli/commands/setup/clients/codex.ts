/** Codex: a provider in `~/.codex/config.toml`, and the keys that choose it. */

import { type Client, modelFor } from '../client.ts';
import { inFolder, tomlFile } from '../settings-files.ts';

const KEY_VARIABLE = 'HOPGATE_API_KEY';

export const codex: Client = {
  name: 'codex',
  title: 'Codex',
  files: [
    tomlFile(
      'codex',
      inFolder('CODEX_HOME', '.codex', 'config.toml'),
      {
        tables: ['model_providers.hopgate'],
        keys: { '': ['model', 'model_provider', 'model_context_window'] },
      },
      (plan) => [
        {
          path: [],
          keys: {
            model: modelFor(plan, 'Codex'),
            model_provider: 'hopgate',
            ...(plan.context === undefined ? {} : { model_context_window: plan.context }),
          },
        },
        {
          path: ['model_providers', 'hopgate'],
          keys: {
            name: 'hopgate',
            base_url: `${plan.url}/v1`,
            // Codex supports no other protocol for custom providers.
            wire_api: 'responses',
            // Codex refuses to start when the variable is unset, so it is named only where a key is needed.
            ...(plan.key === undefined ? {} : { env_key: KEY_VARIABLE }),
          },
        },
      ],
    ),
  ],
  hints(plan, text = '') {
    const hints: string[] = [];
    if (plan.key !== undefined) {
      hints.push(
        `Codex takes the key from a variable: export ${KEY_VARIABLE}=… in your shell profile.`,
      );
    }
    if (/^\s*profile\s*=/m.test(text)) {
      hints.push(
        'The file chooses a profile; what the profile sets wins over the model chosen here.',
      );
    }
    return hints;
  },
};
