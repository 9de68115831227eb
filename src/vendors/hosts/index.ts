/** Vendors of others' models, in the order of the manual. */

import type { Vendor } from '../vendor.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { groq } from './groq.ts';
import { huggingface } from './huggingface.ts';
import { nvidia } from './nvidia.ts';
import { openrouter } from './openrouter.ts';
import { siliconflow } from './siliconflow.ts';
import { together } from './together.ts';
import { vertex } from './vertex.ts';

/** Vendors without a preset: prices, windows and telemetry know them by the address of a provider. */
const BY_ADDRESS: readonly Vendor[] = [
  { name: 'StepFun', hosts: [{ host: 'api.stepfun.com', catalogue: 'stepfun' }] },
  { name: 'Inception', hosts: [{ host: 'api.inceptionlabs.ai', catalogue: 'inception' }] },
  {
    name: 'Perplexity',
    hosts: [{ host: '*.perplexity.ai', catalogue: 'perplexity', telemetry: 'perplexity' }],
  },
  { name: 'Cerebras', hosts: [{ host: 'api.cerebras.ai', catalogue: 'cerebras' }] },
  {
    name: 'Fireworks',
    // https://docs.fireworks.ai/guides/prompt-caching
    hosts: [
      {
        host: 'api.fireworks.ai',
        catalogue: 'fireworks-ai',
        sessionHeader: 'x-session-affinity',
      },
    ],
  },
  {
    name: 'Cloudflare Workers AI',
    // https://developers.cloudflare.com/workers-ai/features/prompt-caching
    hosts: [{ host: 'api.cloudflare.com', sessionHeader: 'x-session-affinity' }],
  },
  {
    name: 'OpenCode Zen and Go',
    // 400 MissingSessionID without it (https://opencode.ai/docs/go/#where-can-i-use-it)
    hosts: [{ host: 'opencode.ai', sessionHeader: 'x-opencode-session' }],
  },
  { name: 'DeepInfra', hosts: [{ host: 'api.deepinfra.com', catalogue: 'deepinfra' }] },
  { name: 'ModelScope', hosts: [{ host: 'api-inference.modelscope.cn', catalogue: 'modelscope' }] },
  { name: 'watsonx', hosts: [{ host: '*.ibm.com', telemetry: 'ibm.watsonx.ai' }] },
];

export const HOSTS: readonly Vendor[] = [
  groq,
  openrouter,
  together,
  siliconflow,
  azure,
  vertex,
  bedrock,
  nvidia,
  huggingface,
  ...BY_ADDRESS,
];
