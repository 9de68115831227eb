/** pi: a provider with its models in `~/.pi/agent/models.json`, and the default in `settings.json`. */

import type { Json } from '../../../../lib/json/json.ts';
import { type Client, namesFor } from '../client.ts';
import { inFolder, jsonFile } from '../settings-files.ts';

const APIS: Readonly<Record<string, string>> = {
  'openai-chat': 'openai-completions',
  'openai-responses': 'openai-responses',
  'anthropic-messages': 'anthropic-messages',
  'google-gemini': 'google-generative-ai',
};

/** The base path for pi by protocol; it appends its own paths. */
const BASES: Readonly<Record<string, string>> = {
  'anthropic-messages': '',
  'google-gemini': '/v1beta',
};

const inAgent = (file: string) => inFolder('PI_CODING_AGENT_DIR', '.pi/agent', file);

export const pi: Client = {
  name: 'pi',
  title: 'pi',
  protocols: ['openai-responses', 'openai-chat', 'anthropic-messages', 'google-gemini'],
  files: [
    jsonFile(inAgent('models.json'), (plan) => {
      // pi asks again after a failure in the middle of an answer, but not with Chat Completions.
      const protocol = plan.protocol ?? 'openai-responses';
      const models = namesFor(plan, 'pi').map((id): Json => {
        const context = plan.contextOf(id);
        const known = plan.limitsOf(id);
        return {
          id,
          name: `hopgate: ${id}`,
          input: known?.input?.includes('image') === true ? ['text', 'image'] : ['text'],
          ...(known?.reasoning === true ? { reasoning: true } : {}),
          ...(context === undefined ? {} : { contextWindow: context }),
          ...(known?.output === undefined ? {} : { maxTokens: known.output }),
        };
      });
      const provider = {
        baseUrl: plan.url + (BASES[protocol] ?? '/v1'),
        api: APIS[protocol]!,
        apiKey: plan.key ?? 'hopgate',
        models,
      };
      return [[['providers', 'hopgate'], provider]];
    }),
    jsonFile(inAgent('settings.json'), (plan) => [
      [['defaultProvider'], 'hopgate'],
      [['defaultModel'], namesFor(plan, 'pi')[0]!],
    ]),
  ],
  hints: () => [
    'A credential for "hopgate" in ~/.pi/agent/auth.json would win over the key that was written.',
  ],
};
