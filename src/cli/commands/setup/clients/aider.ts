/** aider: the address and the model in `~/.aider.conf.yml`, the context windows in `~/.aider.model.metadata.json`. */

import { join } from 'node:path';
import type { JsonObject } from '../../../../lib/json/json.ts';
import { type Client, namesFor } from '../client.ts';
import { applyEdits, stripEdits } from '../json-edits.ts';
import { putMembers, takeLines } from '../yaml-lines.ts';

/** aider's name of a model behind an address of OpenAI's kind. */
const aiderName = (model: string) => `openai/${model}`;

export const aider: Client = {
  name: 'aider',
  title: 'aider',
  files: [
    {
      path: (environment) => join(environment.userHome, '.aider.conf.yml'),
      apply(text = '', plan) {
        const [model] = namesFor(plan, 'aider');
        const members = {
          model: aiderName(model!),
          'weak-model': aiderName(plan.smallModel ?? model!),
          'openai-api-base': `${plan.url}/v1`,
          'openai-api-key': plan.key ?? 'hopgate',
        };
        return { text: putMembers(text, 'aider', members), undo: [] };
      },
      strip: takeLines,
    },
    {
      path: (environment) => join(environment.userHome, '.aider.model.metadata.json'),
      apply(text, plan) {
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
        if (known.length === 0) return undefined;
        return applyEdits(
          text,
          known.map(([name, facts]) => [[name], facts]),
        );
      },
      strip: stripEdits,
    },
  ],
  hints: () => [
    'A .aider.conf.yml in the repository or the current folder wins over the one in your home.',
  ],
};
