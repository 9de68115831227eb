/** Cohere, known by its address. */

import type { Vendor } from '../vendor.ts';

export const cohere: Vendor = {
  name: 'Cohere',
  hosts: [
    { host: 'api.cohere.ai', catalogue: 'cohere' },
    { host: '*.cohere.com', catalogue: 'cohere', telemetry: 'cohere' },
  ],
  words: [
    {
      source: 'https://docs.cohere.com/v1/reference/errors.md',
      context_overflow: [
        /too many tokens: (?:the )?(?:total number of tokens|size limit exceeded)/i,
      ],
    },
    {
      source: 'https://docs.cohere.com/docs/deprecations',
      not_found: [/model \S{1,90} was (?:removed|retired|deprecated|discontinued)/i],
    },
    {
      source: 'https://docs.cohere.com/docs/rate-limits',
      quota: [/limited to \d{1,9} api calls \/ month/i],
    },
  ],
};
