/** Cline, the command line program: the provider "OpenAI compatible" in its `providers.json`. */

import { join } from 'node:path';
import { type Client, modelFor } from '../client.ts';
import { jsonFile } from '../settings-files.ts';

const PROVIDER = 'openai-compatible';
// Required by Cline. A time of its own would make each setup another change.
const UPDATED = '2000-01-01T00:00:00.000Z';

export const cline: Client = {
  name: 'cline',
  title: 'Cline',
  files: [
    jsonFile(
      (environment) =>
        environment.variable('CLINE_PROVIDER_SETTINGS_PATH') ??
        join(
          environment.variable('CLINE_DATA_DIR') ??
            join(environment.variable('CLINE_DIR') ?? join(environment.userHome, '.cline'), 'data'),
          'settings',
          'providers.json',
        ),
      (plan) => {
        const model = modelFor(plan, 'Cline');
        const context = plan.contextOf(model);
        const output = plan.limitsOf(model)?.output;
        const settings = {
          provider: PROVIDER,
          apiKey: plan.key ?? 'hopgate',
          model,
          baseUrl: `${plan.url}/v1`,
          ...(context === undefined ? {} : { contextWindow: context }),
          ...(output === undefined ? {} : { maxTokens: output }),
        };
        return [
          [['version'], 1],
          [['lastUsedProvider'], PROVIDER],
          [['providers', PROVIDER], { settings, updatedAt: UPDATED, tokenSource: 'manual' }],
        ];
      },
    ),
  ],
  hints: (plan) => [
    `This sets up the command "cline". In VS Code, choose the provider "OpenAI Compatible" and the base URL ${plan.url}/v1 in Cline's own settings, which are in no file.`,
  ],
};
