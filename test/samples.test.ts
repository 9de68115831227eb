/** The samples of this repository replay: what was sent and what came back are what the files say. */

import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProtocolName } from '../src/conversation/types.ts';
import { scriptedGateway } from './gateway/scripted.ts';

const ROOT = join(import.meta.dir, '../samples');
const ENTRIES: readonly ProtocolName[] = ['anthropic-messages', 'openai-chat', 'openai-responses'];

interface Meta {
  readonly about: string;
  readonly provider_protocol: ProtocolName;
  readonly cut: boolean;
  readonly reset: boolean;
  readonly notes: readonly string[];
}

// The clock shows in these members where the vendor gave no time of its own.
const timeless = (text: string) => text.replace(/"(created|completed_at)":\d+/g, '"$1":0');

for (const entry of ENTRIES) {
  describe(entry, () => {
    const files = readdirSync(join(ROOT, entry)).filter((name) => name.endsWith('_meta.json'));
    for (const file of files) {
      const read = (stage: string) =>
        readFileSync(join(ROOT, entry, file.replace('meta.json', stage)), 'utf8');
      const meta = JSON.parse(read('meta.json')) as Meta;
      test(meta.about, async () => {
        const sse = [read('provider-response.sse')];
        const gateway = scriptedGateway(meta.provider_protocol, [{ sse, cut: meta.cut }]);
        const answer = await gateway.ask(entry, JSON.parse(read('client-request.json')));
        expect(gateway.sent).toEqual([JSON.parse(read('provider-request.json'))]);
        expect(timeless(answer.text)).toBe(timeless(read('client-response.sse')));
        expect(answer.reset).toBe(meta.reset);
        expect(gateway.summaries[0]?.notes.map(({ name }) => name)).toEqual([...meta.notes]);
      });
    }
  });
}
