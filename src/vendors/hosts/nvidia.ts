/** NVIDIA's hosted models, known by their address. */

import type { Vendor } from '../vendor.ts';

export const nvidia: Vendor = {
  name: 'NVIDIA',
  hosts: [{ host: 'integrate.api.nvidia.com', catalogue: 'nvidia' }],
  words: [
    {
      source: 'github.com/NVIDIA/NemoClaw/issues/11902',
      not_found: [/reached its end of life|end-of-life/i],
    },
    {
      source: 'https://forums.developer.nvidia.com, "DEGRADED function cannot be invoked"',
      overloaded: [/degraded function cannot be invoked/i],
    },
  ],
};
