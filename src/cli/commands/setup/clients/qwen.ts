/** Qwen Code: a provider with its models in `~/.qwen/settings.json`. */

import { join } from 'node:path';
import type { Json } from '../../../../lib/json/json.ts';
import { type Client, namesFor } from '../client.ts';
import { applyEdits, type JsonEdit, stripEdits } from '../json-edits.ts';

const KEY_VARIABLE = 'HOPGATE_API_KEY';

export const qwen: Client = {
  name: 'qwen',
  title: 'Qwen Code',
  files: [
    {
      path: (environment) =>
        join(
          environment.variable('QWEN_HOME') ?? join(environment.userHome, '.qwen'),
          'settings.json',
        ),
      apply(text, plan) {
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
        const edits: JsonEdit[] = [
          [['env', KEY_VARIABLE], plan.key ?? 'hopgate'],
          [['modelProviders', 'hopgate'], models],
          [['providerProtocol', 'hopgate'], 'openai'],
          [['security', 'auth', 'selectedType'], 'openai'],
          [['model', 'name'], names[0]!],
        ];
        return applyEdits(text, edits);
      },
      strip: stripEdits,
    },
  ],
  hints: () => ['Start a new "qwen" session; one that is running keeps its old settings.'],
};
