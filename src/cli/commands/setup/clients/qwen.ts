/** Qwen Code: a provider with its models in `~/.qwen/settings.json`. */

import type { Json } from '../../../../lib/json/json.ts';
import { type Client, namesFor } from '../client.ts';
import { inFolder, jsonFile } from '../settings-files.ts';

const KEY_VARIABLE = 'HOPGATE_API_KEY';

export const qwen: Client = {
  name: 'qwen',
  title: 'Qwen Code',
  files: [
    jsonFile(inFolder('QWEN_HOME', '.qwen', 'settings.json'), (plan) => {
      const names = namesFor(plan, 'Qwen Code');
      const models = names.map((id): Json => {
        const context = plan.contextOf(id);
        return {
          id,
          name: `hopgate: ${id}`,
          baseUrl: `${plan.url}/v1`,
          envKey: KEY_VARIABLE,
          ...(context === undefined ? {} : { generationConfig: { contextWindowSize: context } }),
        };
      });
      return [
        [['env', KEY_VARIABLE], plan.key ?? 'hopgate'],
        [['modelProviders', 'hopgate'], models],
        [['providerProtocol', 'hopgate'], 'openai'],
        [['security', 'auth', 'selectedType'], 'openai'],
        [['model', 'name'], names[0]!],
      ];
    }),
  ],
  hints: () => ['Start a new "qwen" session; one that is running keeps its old settings.'],
};
