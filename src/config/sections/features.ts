/** The schema of the keys that belong to one feature each: samples, server tools, limits. */

import { Type } from '@sinclair/typebox';
import {
  byDefault,
  choice,
  closed,
  count,
  credential,
  named,
  oneOrMore,
  optional,
  seconds,
  text,
} from '../file/schema-words.ts';
import { httpTools, mcpServers, webFetch } from './server-tools.ts';

export const DEFAULT_BODY_BYTES = 52_428_800;
export const DEFAULT_UNFINISHED_BYTES = 268_435_456;
export const DEFAULT_TOOL_TEXT = 8192;

export const SAMPLE_MODES = ['off', 'errors', 'all'] as const;

export const samples = closed(
  {
    mode: byDefault(
      choice(SAMPLE_MODES, 'Which exchanges are kept on disk, credentials masked.'),
      'errors',
    ),
    dir: optional(text('Where they are kept.'), '$HOPGATE_HOME/samples'),
    keep_days: byDefault(count('Older ones are deleted; 0 = never.'), 14),
    keep_failed_days: byDefault(
      count('The same for exchanges in which something failed; 0 = never.'),
      90,
    ),
    max_bytes: byDefault(
      count(
        'The oldest are deleted above this size, failed ones last; under a flood it is passed by a tenth at most, and by what is being written. 0 = no limit.',
      ),
      2 ** 31,
    ),
    max_count: byDefault(
      count(
        'The oldest are deleted above this number, failed ones counted apart; under a flood it is passed by a tenth and a few hundred at most. 0 = no limit.',
      ),
      20_000,
    ),
    redact: byDefault(
      Type.Array(choice(['texts', 'images'], 'A kind of content.'), {
        description: 'What is blanked in kept bodies, structure and lengths left as they are.',
      }),
      [],
    ),
  },
  'Recorded exchanges.',
);

export const SEARCH_ENGINES = [
  'searxng',
  'tavily',
  'brave',
  'exa',
  'serper',
  'jina',
  'zhipu',
  'duckduckgo',
  'model',
  'docs',
] as const;

const engine = closed(
  {
    type: choice(SEARCH_ENGINES, 'What kind of engine; docs = this manual.'),
    name: optional(text('A name for logs.'), 'its type'),
    base_url: optional(
      Type.String({ pattern: '^https?://.+$', description: 'Where it is.' }),
      "the vendor's address; searxng needs one",
    ),
    keys: optional(
      oneOrMore(credential('A key.'), 'Keys, used in turn.'),
      'the usual environment variable of the engine',
    ),
    target: optional(
      text('type model: the provider/model that searches with its own hosted tool.'),
      'none',
    ),
    options: byDefault(
      named(
        Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
        "Further parameters of the engine's API.",
      ),
      {},
    ),
  },
  'A search engine.',
);

export const serverTools = closed(
  {
    web_search: optional(
      closed(
        {
          inject: byDefault(
            choice(
              ['force', 'selective', 'declared'],
              'When the tool is offered: always, where the request seems to need it, or where the client declared it.',
            ),
            'declared',
          ),
          engines: byDefault(Type.Array(engine, { description: 'Engines in fallback order.' }), []),
          max_results: byDefault(count('Results handed to the model.', 1), 8),
          timeout: byDefault(seconds('Seconds for one search.'), 15),
        },
        'Web search for models that have none.',
      ),
      'off',
    ),
    vision: optional(
      closed(
        {
          target: text('The provider/model that looks at images for a text model.'),
          prompt: optional(text('What it is asked.'), 'a description of the image'),
          timeout: byDefault(seconds('Seconds for one image.'), 60),
        },
        'Eyes for text models.',
      ),
      'off',
    ),
    web_fetch: optional(webFetch, 'off'),
    http: httpTools,
    mcp: mcpServers,
  },
  'Tools that the gateway runs itself.',
);

/** The words of the conversation tools that can be replaced. */
const CONVERSATION_TEXTS = {
  mentioned: 'is_mentioned, when the model was mentioned.',
  not_mentioned: 'is_mentioned, when it was not.',
  no_messages: 'get_other_members_messages, when nobody has said anything.',
  recall_description: 'The description of recall_memory.',
  query_description: 'The description of its query.',
  messages_description: 'The description of get_other_members_messages.',
  mention_description: 'The description of is_mentioned.',
  recall_limit: 'The limit of recalls; {max} is the number.',
};

const replacement = (words: string) => optional(text(words), 'as the locale says it');

export const conversation = closed(
  {
    locale: byDefault(
      choice(
        ['auto', 'zh', 'en'],
        'The language in which models are told of their conversation tools; auto: that of the conversation.',
      ),
      'auto',
    ),
    texts: byDefault(
      closed(
        Object.fromEntries(
          Object.entries(CONVERSATION_TEXTS).map(([key, words]) => [key, replacement(words)]),
        ) as Record<keyof typeof CONVERSATION_TEXTS, ReturnType<typeof replacement>>,
        'Other words for single ones of them.',
      ),
      {},
    ),
  },
  'Conversation tools of chat apps.',
);

export const limits = closed(
  {
    tool_rounds: byDefault(
      count('Follow-up hops of server tools; the last one goes out without them.'),
      8,
    ),
    body_bytes: byDefault(count('The largest request body.', 1024), DEFAULT_BODY_BYTES),
    answer_bytes: byDefault(
      count(
        "The largest answer of an upstream that is read as a whole, and the most text of a stream that is translated. Counted decompressed; beyond it the upstream's connection is cut, and the client gets an error.",
        1024,
      ),
      DEFAULT_BODY_BYTES,
    ),
    frame_bytes: byDefault(
      count(
        "The largest single event of an upstream's stream, and the most bytes of a stream that say nothing (comments, pings, empty frames).",
        1024,
      ),
      33_554_432,
    ),
    header_bytes: byDefault(count("The most bytes of an upstream's headers.", 1024), 65_536),
    headers: byDefault(count("The most header lines of an upstream's answer.", 16), 256),
    tool_text: optional(
      count("Characters of a tool result's text, for vendors that need it short; 0 = no limit."),
      `$HOPGATE_TOOL_TEXT_LIMIT (or its older name $RCC_TOOL_TEXT_LIMIT), else ${DEFAULT_TOOL_TEXT}`,
    ),
    concurrency: byDefault(count('Requests at the same time over all providers; 0 = no limit.'), 0),
    idle_connection: byDefault(
      Type.Number({
        minimum: 0,
        maximum: 255,
        description:
          "Seconds after which a client's connection without a request is closed, or up to eight later; 0 = never.",
      }),
      75,
    ),
    idle_body: byDefault(
      Type.Number({
        minimum: 0,
        maximum: 255,
        description:
          'Seconds in which 64 KB of a request body (or all of it) must come, else its connection is closed (or up to eight later); 0 = no limit.',
      }),
      30,
    ),
    unfinished_bytes: byDefault(
      count(
        'Bytes of request bodies that are still coming or being decompressed, of all clients together; what would be more gets a 503. 0 = no limit.',
      ),
      DEFAULT_UNFINISHED_BYTES,
    ),
    drain_delay: byDefault(
      seconds(
        'Seconds that a stopping server goes on taking requests while /readyz says 503, so that a load balancer sees it.',
      ),
      0,
    ),
    drain: byDefault(seconds('Seconds that a stopping server waits for open streams.'), 30),
  },
  'Limits.',
);

export const auth = closed(
  {
    keys: byDefault(
      Type.Array(
        Type.Union([
          credential('A key that clients must send.'),
          closed(
            {
              name: text('Who it belongs to, for logs.'),
              key: credential('The key.'),
              sees: byDefault(
                choice(
                  ['own', 'all'],
                  "Whose recorded exchanges it is shown in the browser: those made with it, or everybody's.",
                ),
                'own',
              ),
              spaces: optional(
                Type.Array(text('A glob, case told apart.'), {
                  description: 'Memory spaces that it may use.',
                }),
                'all of them',
              ),
            },
            'A key with a name.',
          ),
        ]),
        { description: 'Keys that clients may use; none = everybody who reaches the port.' },
      ),
      [],
    ),
  },
  'Who may use the gateway.',
);

export const categories = closed(
  {
    longcontext_tokens: byDefault(count('Tokens above which a prompt is longcontext.', 1), 60_000),
    background_models: byDefault(
      Type.Array(text('A glob.'), { description: 'Names that agents use for small side jobs.' }),
      ['*haiku*', '*-nano*', '*-flash-lite*'],
    ),
    coding_tools: byDefault(
      Type.Array(text('A glob.'), {
        description: 'Tools by which an agent that edits code is known; case does not matter.',
      }),
      [
        'edit',
        'multiedit',
        'notebook*edit',
        'write',
        'editor',
        'apply_patch',
        'exec_command',
        'edit_file',
        'write_file',
        'create_file',
        'write_to_file',
        'replace',
        'replace_in_file',
        'search_replace',
        'str_replace*',
        'insert_edit_into_file',
      ],
    ),
  },
  'What the classifier behind `when: { category: … }` goes by.',
);
