/** Continue: models in `~/.continue/config.yaml`. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../../../config/environment.ts';
import type { JsonObject } from '../../../../lib/json/json.ts';
import { type Client, namesFor } from '../client.ts';
import { putItems, takeLines } from '../yaml-lines.ts';

const folder = (environment: Environment) =>
  environment.variable('CONTINUE_GLOBAL_DIR') ?? join(environment.userHome, '.continue');

const EMPTY = 'name: My configuration\nversion: 0.0.1\nschema: v1\n';

export const continueDev: Client = {
  name: 'continue',
  title: 'Continue',
  files: [
    {
      path(environment) {
        const file = join(folder(environment), 'config.yaml');
        const older = join(folder(environment), 'config.json');
        if (!existsSync(file) && existsSync(older)) {
          throw new Error(
            `Continue still reads ${older}, and would no longer do so beside a config.yaml; let Continue convert it first`,
          );
        }
        return file;
      },
      apply(text = '', plan) {
        const models = namesFor(plan, 'Continue').map((model): JsonObject => {
          const context = plan.contextOf(model);
          const known = plan.limitsOf(model);
          const images = known?.input?.includes('image') === true;
          const limits = {
            ...(context === undefined ? {} : { contextLength: context }),
            ...(known?.output === undefined ? {} : { maxTokens: known.output }),
          };
          return {
            name: `hopgate: ${model}`,
            provider: 'openai',
            model,
            apiBase: `${plan.url}/v1`,
            apiKey: plan.key ?? 'hopgate',
            roles: ['chat', 'edit', 'apply'],
            capabilities: images ? ['tool_use', 'image_input'] : ['tool_use'],
            ...(Object.keys(limits).length === 0 ? {} : { defaultCompletionOptions: limits }),
          };
        });
        const base = text.trim() === '' ? EMPTY : text;
        return { text: putItems(base, 'continue', 'models', models), undo: [] };
      },
      strip(text) {
        const left = takeLines(text);
        return left === EMPTY ? '' : left;
      },
    },
  ],
  hints: () => ['Choose the model in Continue: its list of models has it as "hopgate: …".'],
};
