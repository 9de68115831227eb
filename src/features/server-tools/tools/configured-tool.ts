/** Shared by HTTP and MCP tools of the configuration: when they are offered, and how their credentials are handled. */

import type { ServerTool } from '../tool.ts';

/** A credential from the configuration. It prints as nothing and is revealed only where it is sent. */
export interface Revealable {
  reveal(): string;
}

/** The values in the clear, to be used at once for sending. */
export const revealed = (
  values: Readonly<Record<string, Revealable>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.reveal()]));

/** When a tool with these keywords is offered; without keywords, always. Case is ignored. */
export function offeredFor(
  keywords: readonly string[] | undefined,
): Pick<ServerTool, 'inject' | 'wanted'> {
  if (keywords === undefined) return { inject: 'force' };
  const lowered = keywords.map((keyword) => keyword.toLowerCase());
  return {
    inject: 'selective',
    wanted: (userText) => {
      const text = userText.toLowerCase();
      return lowered.some((keyword) => text.includes(keyword));
    },
  };
}
