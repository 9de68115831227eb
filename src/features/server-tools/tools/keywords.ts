/** Tools that are offered always, or where the user's words call for them. */

import type { ServerTool } from '../tool.ts';

/** When a tool with these keywords is offered; without any, always. Case does not matter. */
export function offeredFor(
  keywords: readonly string[] | undefined,
): Pick<ServerTool, 'inject' | 'wanted'> {
  if (keywords === undefined) return { inject: 'force' };
  const words = keywords.map((word) => word.toLowerCase());
  return {
    inject: 'selective',
    wanted: (text) => {
      const said = text.toLowerCase();
      return words.some((word) => said.includes(word));
    },
  };
}
