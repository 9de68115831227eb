/** Hugging Face's router, known by its address. */

import type { Vendor } from '../vendor.ts';

export const huggingface: Vendor = {
  name: 'Hugging Face',
  hosts: [{ host: 'router.huggingface.co', catalogue: 'huggingface' }],
  words: [
    {
      source: 'https://huggingface.co/docs/inference-providers',
      not_found: [/gated (?:repo|model)|not allowed to access model/i],
    },
  ],
};
