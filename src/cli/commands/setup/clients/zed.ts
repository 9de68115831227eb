/** Zed: a provider with its models in `settings.json`. */

import { join } from 'node:path';
import { isObject, type Json } from '../../../../lib/json/json.ts';
import { type Client, namesFor } from '../client.ts';
import { applyEdits, type JsonEdit, stripEdits } from '../json-edits.ts';
import { getAt } from '../jsonc.ts';

// Zed needs a window for each model; half of the vendors' models have at least this much.
const CAUTIOUS_CONTEXT = 128_000;

export const zed: Client = {
  name: 'zed',
  title: 'Zed',
  files: [
    {
      path: (environment) => join(environment.configHome, 'zed', 'settings.json'),
      apply(text, plan) {
        const names = namesFor(plan, 'Zed');
        const models = names.map((name): Json => {
          const known = plan.limitsOf(name);
          return {
            name,
            max_tokens: plan.contextOf(name) ?? CAUTIOUS_CONTEXT,
            ...(known?.output === undefined ? {} : { max_output_tokens: known.output }),
            capabilities: {
              tools: true,
              images: known?.input?.includes('image') === true,
              parallel_tool_calls: true,
              prompt_cache_key: false,
            },
          };
        });
        const provider = { api_url: `${plan.url}/v1`, available_models: models };
        const edits: JsonEdit[] = [[['language_models', 'openai_compatible', 'hopgate'], provider]];
        const model =
          text === undefined || text.trim() === ''
            ? undefined
            : getAt(text, ['agent', 'default_model']);
        if (plan.modelChosen || model === undefined || isOurs(model)) {
          edits.push([['agent', 'default_model'], { provider: 'hopgate', model: names[0]! }]);
        }
        return applyEdits(text, edits);
      },
      strip: stripEdits,
    },
  ],
  hints: (plan) => [
    plan.key === undefined
      ? 'Zed uses a provider only with a key: export HOPGATE_API_KEY=hopgate before you start it, or type any text as its key in Zed.'
      : 'Zed takes the key from its own settings page or from a variable: export HOPGATE_API_KEY=… before you start it.',
  ],
};

const isOurs = (model: Json): boolean => isObject(model) && model.provider === 'hopgate';
