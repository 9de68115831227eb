/** Together: open models with their own chat templates. */

import { TEMPLATE } from '../servers/template.ts';
import { chat, type Vendor } from '../vendor.ts';

export const together: Vendor = {
  name: 'Together',
  presets: {
    together: chat({
      baseUrl: 'https://api.together.xyz/v1',
      profile: 'together',
      variables: ['TOGETHER_API_KEY'],
      models: ['*/*'],
      catalogue: 'togetherai',
      discovered: true,
    }),
  },
  hosts: [{ host: 'api.together.ai', catalogue: 'togetherai' }],
  profiles: { together: { ...TEMPLATE, reasoningField: 'reasoning', documents: false } },
  words: [
    {
      source: 'github.com/HeyPuter/puter/issues/3168',
      not_found: [
        /model_not_available|dedicated_endpoint_not_running|unable to access (?:non-serverless )?model/i,
      ],
    },
    {
      source: 'https://docs.together.ai/docs/error-codes',
      billing: [/credit limit exceeded|payment required/i],
    },
  ],
};
