/** Vendors of models of their own, in the order of the manual. */

import type { Vendor } from '../vendor.ts';
import { anthropic } from './anthropic.ts';
import { cohere } from './cohere.ts';
import { deepseek } from './deepseek.ts';
import { google } from './google.ts';
import { minimax } from './minimax.ts';
import { mistral } from './mistral.ts';
import { moonshot } from './moonshot.ts';
import { openai } from './openai.ts';
import { qwen } from './qwen.ts';
import { volcengine } from './volcengine.ts';
import { xai } from './xai.ts';
import { zhipu } from './zhipu.ts';

export const MAKERS: readonly Vendor[] = [
  anthropic,
  openai,
  zhipu,
  deepseek,
  moonshot,
  qwen,
  minimax,
  volcengine,
  google,
  xai,
  mistral,
  cohere,
];
