/** The built-in classifier: gives every request one category, such as vision or coding. */

import type { Category, CategorySettings } from '../config/sections/categories.ts';
import { anyGlob } from '../lib/text/glob.ts';
import type { Fact, RouteRequest } from './request.ts';

/** The facts that the classifier may read. */
export const CATEGORY_FACTS: readonly Fact[] = [
  'model',
  'images',
  'hostedTools',
  'toolNames',
  'tokens',
  'background',
  'thinking',
];

/**
 * The first of these that holds:
 *
 * 1. `vision`: an image since the user's last message; a text model could not see it
 * 2. `websearch`: a hosted search tool, and no tools that edit code (coding agents offer search in every
 *    turn)
 * 3. `longcontext`: more tokens than `categories.longcontext_tokens`
 * 4. `background`: a title request or another side job, or a model named in `categories.background_models`
 * 5. `thinking`: reasoning is on
 * 6. `coding`: a tool named in `categories.coding_tools`
 * 7. `tools`: any tool
 * 8. `default`
 */
export function classifier(settings: CategorySettings): (request: RouteRequest) => Category {
  const isBackground = anyGlob(settings.backgroundModels);
  const isCoding = anyGlob(settings.codingTools);
  const codes = (request: RouteRequest) => request.toolNames.some(isCoding);
  const classify = (request: RouteRequest): Category => {
    if (request.images > 0) return 'vision';
    if (request.hostedTools.includes('web_search') && !codes(request)) return 'websearch';
    if (request.tokens > settings.longcontextTokens) return 'longcontext';
    if (isBackground(request.model) || request.background) return 'background';
    if (request.thinking) return 'thinking';
    if (codes(request)) return 'coding';
    return request.toolNames.length + request.hostedTools.length > 0 ? 'tools' : 'default';
  };
  // Several rules use the category of one request, and computing it may read every tool.
  const known = new WeakMap<RouteRequest, Category>();
  return (request) => {
    let category = known.get(request);
    if (category === undefined) {
      category = classify(request);
      known.set(request, category);
    }
    return category;
  };
}
