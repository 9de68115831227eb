/** Model servers that people run themselves. */

import type { Vendor } from '../vendor.ts';
import { llamacpp } from './llamacpp.ts';
import { lmstudio } from './lmstudio.ts';
import { ollama } from './ollama.ts';
import { sglang } from './sglang.ts';
import { vllm } from './vllm.ts';

export const SERVERS: readonly Vendor[] = [ollama, lmstudio, llamacpp, vllm, sglang];
