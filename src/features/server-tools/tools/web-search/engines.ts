/** The list of all search engines behind HTTP. */

import type { HttpEngine } from './engine.ts';
import { brave } from './engines/brave.ts';
import { duckduckgo } from './engines/duckduckgo.ts';
import { exa } from './engines/exa.ts';
import { jina } from './engines/jina.ts';
import { searxng } from './engines/searxng.ts';
import { serper } from './engines/serper.ts';
import { tavily } from './engines/tavily.ts';
import { zhipu } from './engines/zhipu.ts';

export const HTTP_ENGINES: readonly HttpEngine[] = [
  searxng,
  tavily,
  brave,
  exa,
  serper,
  jina,
  zhipu,
  duckduckgo,
];
