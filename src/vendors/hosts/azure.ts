/** Azure OpenAI: OpenAI's models in Microsoft's cloud. */

import { OPENAI_FACTS, OPENAI_MODELS } from '../makers/openai.ts';
import type { Vendor } from '../vendor.ts';

export const azure: Vendor = {
  name: 'Azure',
  topic: { section: '/platforms#azure', words: 'azure, entra id, foundry' },
  presets: {
    // https://learn.microsoft.com/azure/ai-foundry/openai/how-to/responses: at /openai/v1, without an api-version.
    azure: {
      platform: 'azure',
      protocol: 'openai-responses',
      profile: 'azure',
      profileOf: { 'openai-responses': 'azure-responses' },
      // The older addresses, one for each deployment.
      chatOnlyAt: '/openai/deployments/',
      endpoints: {},
      variables: ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'],
      models: OPENAI_MODELS,
      catalogue: 'azure',
      auth: 'api-key',
    },
  },
  hosts: [
    { host: '*.openai.azure.com', catalogue: 'azure', telemetry: 'azure.ai.openai' },
    { host: '*.services.ai.azure.com', catalogue: 'azure', telemetry: 'azure.ai.inference' },
    { host: '*.cognitiveservices.azure.com', catalogue: 'azure' },
  ],
  profiles: {
    // No `file` parts in Azure's Chat.
    azure: {
      ...OPENAI_FACTS,
      // Its asynchronous filter says its results in choices without a delta, at which clients throw:
      // https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-streaming
      exactStreams: undefined,
      documents: false,
      fileIds: false,
    },
    'azure-responses': {
      ...OPENAI_FACTS,
      storesResponses: true,
      exactStreams: true,
      hostedTools: [
        'web_search',
        'file_search',
        'code_execution',
        'image_generation',
        'computer_use',
        'mcp',
        'tool_search',
      ],
    },
  },
  words: [
    {
      source: 'github.com/microsoft/azurechat/issues/351',
      content_filter: [/content_filter|responsibleai|content management policy/i],
    },
    {
      source: 'https://learn.microsoft.com/azure/ai-foundry/openai/quotas-limits',
      capacity: [/\bnocapacity\b/i],
    },
    {
      source: 'github.com/SciSharp/BotSharp/issues/386',
      authentication: [/invalid subscription key/i],
    },
    {
      source: 'github.com/chatboxai/chatbox/issues/646',
      not_found: [/deploymentnotfound|api deployment for this resource does not exist/i],
    },
    {
      source: 'github.com/langchain-ai/langmem/issues/13',
      not_found: [/operationnotsupported|operation does not work with the specified model/i],
    },
  ],
};
