/** CPU of a request without engines, beside another build of the program: `bun bench/replicas/embedded.ts OTHER_BINARY`. */

import { startGateway } from '../../test/support/binary.ts';
import { cpuBetween, cpuSample } from '../process-usage.ts';
import { median, shuffled } from '../statistics.ts';

const ROUNDS = 9;
const REQUESTS = 3000;
const CONNECTIONS = 8;
const REPLY = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Fine.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
};

const other = process.argv[2];
if (other === undefined) throw new Error('the other binary is missing');
const vendor = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json(REPLY) });
const base_url = `http://127.0.0.1:${vendor.port}/v1`;
const config = {
  providers: { vendor: { protocol: 'openai-chat', base_url, keys: ['sk'], models: ['m1'] } },
  samples: { mode: 'off' },
};
const [own, before] = await Promise.all([
  startGateway(config, { patience: 60_000 }),
  startGateway(config, { patience: 60_000, program: other }),
]);

/** @returns microseconds of CPU a request */
async function round({ url, pid }: typeof own): Promise<number> {
  const cpu = cpuSample(pid);
  let next = 0;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (next++ < REQUESTS) {
        const answer = await fetch(`${url}/v1/chat/completions`, {
          method: 'POST',
          body: JSON.stringify({ model: 'm1', messages: [{ role: 'user', content: 'hi' }] }),
        });
        await answer.arrayBuffer();
        if (!answer.ok) throw new Error(`status ${answer.status}`);
      }
    }),
  );
  return cpuBetween(cpu, cpuSample(pid)) / 1000 / REQUESTS;
}

const times = { own: [] as number[], before: [] as number[] };
await round(own);
await round(before);
for (let i = 0; i < ROUNDS; i++) {
  for (const which of shuffled(['own', 'before'] as const)) {
    times[which].push(await round(which === 'own' ? own : before));
  }
}
const differences = times.own.map((one, i) => one - times.before[i]!);
console.log(
  `CPU a request, µs, median (least) of ${ROUNDS} rounds: the other ${median(times.before).toFixed(1)} (${Math.min(...times.before).toFixed(1)}), this one ${median(times.own).toFixed(1)} (${Math.min(...times.own).toFixed(1)}), difference in a round ${median(differences).toFixed(1)}`,
);
await Promise.all([own.stop(), before.stop(), vendor.stop(true)]);
