/** A fetched page as the result of the Messages protocol's `web_fetch` tool. */

import type { OpaqueBlock } from '../../../../conversation/types.ts';
import type { JsonObject } from '../../../../lib/json/json.ts';

export interface FetchedPage {
  readonly url: string;
  readonly title: string;
  readonly text: string;
  /** There are more characters than are wanted, or more than were read. */
  readonly truncated: boolean;
  /** A remark about a page with little text. */
  readonly remark?: string | undefined;
}

/**
 * The content of a `web_fetch_tool_result`.
 * @param at ISO 8601 time of the fetch
 * @see https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-fetch-tool
 */
export function webFetchResult(page: FetchedPage, at: string, citations = false): JsonObject {
  return {
    type: 'web_fetch_result',
    url: page.url,
    content: {
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: page.text },
      ...(page.title === '' ? {} : { title: page.title }),
      ...(citations ? { citations: { enabled: true } } : {}),
    },
    retrieved_at: at,
  };
}

/** The block to which that content decodes, for {@link ToolOutcome.shown}. */
export function webFetchBlock(content: JsonObject, page: FetchedPage): OpaqueBlock {
  return {
    type: 'opaque',
    name: 'web_fetch_result',
    text: [page.url, page.title, page.text].filter((part) => part !== '').join('\n'),
    wire: { protocol: 'anthropic-messages', value: content },
  };
}
