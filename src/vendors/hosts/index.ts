/** Vendors of others' models, in the order of the manual. */

import type { Vendor } from '../vendor.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { BY_ADDRESS } from './by-address.ts';
import { groq } from './groq.ts';
import { huggingface } from './huggingface.ts';
import { nvidia } from './nvidia.ts';
import { openrouter } from './openrouter.ts';
import { siliconflow } from './siliconflow.ts';
import { together } from './together.ts';
import { vertex } from './vertex.ts';

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
