/** aider: the address and the model in `~/.aider.conf.yml`, the context windows in `~/.aider.model.metadata.json`. */

import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import type { JsonObject } from '../../../../lib/json/json.ts';
import { type Client, modelFor, namesFor } from '../client.ts';
import { jsonFile, yamlFile } from '../settings-files.ts';

/** aider's name of a model behind an address of OpenAI's kind. */
const aiderName = (model: string) => `openai/${model}`;

const inHome = (file: string) => (environment: Environment) => join(environment.userHome, file);

export const aider: Client = {
  name: 'aider',
  title: 'aider',
  files: [
    yamlFile('aider', inHome('.aider.conf.yml'), (plan) => {
      const model = modelFor(plan, 'aider');
      return {
        model: aiderName(model),
        'weak-model': aiderName(plan.smallModel ?? model),
        'openai-api-base': `${plan.url}/v1`,
        'openai-api-key': plan.key ?? 'hopgate',
      };
    }),
    jsonFile(inHome('.aider.model.metadata.json'), (plan) => {
      const known = namesFor(plan, 'aider').flatMap((model): [string, JsonObject][] => {
        const context = plan.contextOf(model);
        if (context === undefined) return [];
        const output = plan.limitsOf(model)?.output;
        const limits = {
          max_input_tokens: context,
          ...(output === undefined ? {} : { max_tokens: output, max_output_tokens: output }),
        };
        return [[aiderName(model), { ...limits, litellm_provider: 'openai', mode: 'chat' }]];
      });
      return known.length === 0 ? undefined : known.map(([name, facts]) => [[name], facts]);
    }),
  ],
  hints: () => [
    'A .aider.conf.yml in the repository or the current folder wins over the one in your home.',
  ],
};
